//! The protocol between posse and programs outside of its process: one JSON object per line.
//!
//! [`ClientMessage`] and [`ServerMessage`] hold the inner words, [`Command`](crate::Command) and
//! [`Event`](crate::Event). What they look like on the wire is declared here once more, by types of
//! their own, so that the inner ones can change without a change of the protocol. Their doc comments
//! are the descriptions in the [`schema`](schema::schema).
//!
//! Ids, names and enums that are only words are the inner ones: to change one of them changes the
//! schema, which a test notices.

#[macro_use]
mod tagged;
#[macro_use]
mod both_ways;

mod command;
mod content;
mod ending;
mod envelope;
mod error;
mod event;
mod hook;
pub mod line;
mod message;
mod run;
pub mod schema;
mod spending;
mod team;
mod version;
mod watch;

pub use error::{RefusedLine, WireError};
pub use message::{ClientMessage, ServerMessage, ServerReader};
pub use version::{BadVersion, VERSION, Version};
pub use watch::ClientWatch;
