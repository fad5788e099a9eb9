//! What is raced and killed from outside: stores, trees and teams in processes of their own; and the scripted model.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
#![expect(clippy::expect_used, reason = "a test that cannot set itself up fails")]

mod claimers;
mod fleet;
mod mcp_client;
mod mcp_server;
mod postgres;
mod sdks;
mod store;
mod strictness;
mod trees;

/// How often a long form is to be done: as `cargo xtask faults` was asked to, or as often as it is published.
#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to tell a test anything"
)]
fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(usual)
}
