//! A real terminal: what is written to it, and how it is left as it was.

mod inline;
mod pen;

pub use inline::{Frame, InlineTerminal, region};
