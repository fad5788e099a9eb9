//! The protocol between posse and programs outside of its process: one JSON object per line.

#[macro_use]
mod tagged;
#[macro_use]
mod both_ways;

mod content;
mod error;
pub mod line;
mod run;
mod spending;
mod team;
mod version;

pub use error::{RefusedLine, WireError};
pub use version::{BadVersion, VERSION, Version};
