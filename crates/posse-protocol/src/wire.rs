//! The protocol between posse and programs outside of its process: one JSON object per line.

mod error;
pub mod line;
mod version;

pub use error::{RefusedLine, WireError};
pub use version::{BadVersion, VERSION, Version};
