//! A real terminal: what is written to it, and how it is left as it was.

mod full;
mod inline;
mod input;
mod pen;
mod raw;
mod writer;

use base64::Engine as _;
pub use full::FullScreen;
pub use inline::{Frame, InlineTerminal, region};
pub use input::TerminalInput;
pub use ratatui_core::buffer::Buffer;
pub use ratatui_core::layout::Position;
pub use raw::{RESTORE, RawTerminal};
pub use writer::FrameWriter;

/// Number of lines that one step of the mouse's wheel is.
pub(crate) const WHEEL: usize = 3;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its columns.
    pub columns: u16,
    /// Its rows.
    pub rows: u16,
}

/// Returns the bytes that ask a terminal to put a text into the clipboard. Only a person's key may
/// cause it.
pub fn copied(text: &str) -> Vec<u8> {
    let text = base64::engine::general_purpose::STANDARD.encode(text);
    format!("\x1b]52;c;{text}\x07").into_bytes()
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

/// Returns lines with their styles, each with its end, for a terminal that is not drawn on. Nothing
/// but printable characters and the sequences of styles is in them.
pub fn styled_text(lines: &[ratatui_core::text::Line<'_>]) -> String {
    let mut pen = pen::Pen::for_lines();
    for line in lines {
        pen.line(line);
        pen.down(1);
    }
    pen.into_text()
}
