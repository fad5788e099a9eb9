//! The words of posse: what passes between its rooms, and between the runtime and its front ends.
//!
//! This crate owns names and shapes. It decides nothing, reads nothing and starts nothing.

pub mod content;
pub mod cost;
pub mod usage;

pub use content::{ContentBlock, Message, RawJson, Role, StopReason, ToolSpec};
pub use cost::Cost;
pub use usage::Usage;
