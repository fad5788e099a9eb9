//! The server over HTTP, on a clock that advances only when told to.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod client;
mod limits;
mod outages;
