//! A real terminal: what is written to it, and how it is left as it was.

mod inline;
mod input;
mod pen;
mod raw;
mod writer;

pub use inline::{Frame, InlineTerminal, region};
pub use input::TerminalInput;
pub use raw::{RESTORE, RawTerminal};
pub use writer::FrameWriter;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its columns.
    pub columns: u16,
    /// Its rows.
    pub rows: u16,
}

/// Returns the text of lines, each with its end, and nothing else: no style, and no sequence.
pub fn text_bytes(lines: &[ratatui_core::text::Line<'_>]) -> Vec<u8> {
    let mut text = String::new();
    for line in lines {
        let spans = line.spans.iter().flat_map(|span| span.content.chars());
        text.extend(spans.filter(|c| !c.is_control()));
        text.push('\n');
    }
    text.into_bytes()
}
