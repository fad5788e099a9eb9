//! Scenarios: adapters against the scripted model, over real HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
#![expect(clippy::expect_used, reason = "a test that cannot set itself up fails")]

mod agents;
mod aside;
mod cache;
mod calls;
mod cancels;
mod claimers;
mod compaction;
mod cuts;
mod faults;
mod fleet;
mod forks;
mod limits;
mod messages;
mod openai;
mod postgres;
mod prefix;
mod recovery;
mod requests;
mod reuse;
mod sdks;
mod store;
mod strictness;
mod teams;
mod trees;
mod turns;

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
