//! Text from outside, made into styled lines that are safe to put on a terminal.
//!
//! Everything here is pure: strings and widths in, [`Line`](ratatui_core::text::Line)s out. Where
//! the lines go, and when, is decided elsewhere.

pub mod code;
pub mod diff;
pub mod escapes;
mod grouped;
pub mod markdown;
mod replaced;
mod shortened;
pub mod tame;
pub mod wrap;

pub use code::code_line;
pub use diff::{changed_file, diff};
pub(crate) use diff::{
    changed_lines, diff_line, gap, line_count, more_lines, number_columns, numbered,
};
pub use escapes::without_escapes;
pub use grouped::grouped;
pub use markdown::{MarkdownStream, render};
pub use replaced::{ChangedPlace, replaced};
pub use shortened::shortened;
pub use tame::{escaped, is_spelt, one_line, tame};
pub(crate) use wrap::wrap_hard;
pub use wrap::{clip, columns, wrap};
