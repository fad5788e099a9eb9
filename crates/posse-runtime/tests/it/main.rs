//! Scenarios: a whole runtime against the scripted model, over real HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
#![expect(clippy::expect_used, reason = "a test that cannot set itself up fails")]

mod agents;
mod cache;
mod calls;
mod cancels;
mod compaction;
mod cuts;
mod examples;
mod faults;
mod forks;
mod governor;
mod instructions;
mod limits;
mod listing;
mod messages;
mod model;
mod openai;
mod person_shell;
mod plan;
mod prefix;
mod recovery;
mod repetition;
mod requests;
mod reuse;
mod side_query;
mod teams;
mod turns;
mod watching;
