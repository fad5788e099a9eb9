//! The protocol as other programs see it: lines and their schema.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod any;
mod kept;
mod lines;
mod round_trip;
mod schema;
mod version;
