//! Markdown as styled lines, whole or while it streams.
//!
//! `units` finds where top-level blocks begin, `cursor` walks over them and keeps what must be
//! remembered between two calls, `stream` buffers text that is still arriving, `block` renders the
//! source of one block, `inline` and `table` what stands inside. A whole text takes the same way as
//! a streamed one: this is why both give the same lines.

mod block;
mod cursor;
mod fence;
mod inline;
mod stream;
mod table;
mod units;

use ratatui_core::text::Line;

pub use stream::MarkdownStream;

/// Renders Markdown for a terminal of the given width.
///
/// Prose and tables are wrapped. Each line of code is one line, however long it is. One blank line
/// stands between top-level blocks. A link reference is resolved within its block only, so that a
/// definition that arrives later cannot change lines that are printed already.
pub fn render(source: &str, width: u16) -> Vec<Line<'static>> {
    let mut stream = MarkdownStream::default();
    stream.push(source);
    stream.finish(width)
}

#[cfg(test)]
mod tests;
