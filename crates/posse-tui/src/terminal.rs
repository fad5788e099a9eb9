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
