//! The binary as people and programs run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
#![expect(clippy::disallowed_methods, reason = "the tests run the binary")]

mod account;
mod agents;
mod ask;
mod ask_model;
mod attach;
mod attach_screen;
mod attachments;
mod background_crash;
mod binary;
mod board;
mod board_review;
mod bypasses;
mod cache;
mod clean;
mod completion;
mod consumer;
mod conversation;
mod conversation_rules;
mod conversation_runs;
mod cost;
mod crash;
mod definitions;
mod doctor;
mod earlier;
mod flags;
mod foreign_files;
mod git_programs;
mod git_reads;
mod guardian;
mod held;
mod help;
mod hooks;
mod hosts;
mod hour;
mod mail;
mod mcp;
mod memory;
mod model;
mod panes;
mod person_only;
mod plan;
mod postgres;
mod question_crash;
mod random_commands;
mod read_again;
mod readme;
mod requests;
mod run;
mod sandbox;
mod scripted_model;
mod sdk;
mod secrets;
mod sessions;
mod skills;
mod stop;
mod store_command;
mod stories;
mod story;
mod task;
mod team;
mod team_crash;
mod team_declared;
mod team_faults;
mod team_once;
mod team_run;
mod terminal;
mod tmux;
mod trust;
mod turns;
mod worker;
mod worktrees;

/// How often a long form is to be done: as `cargo xtask faults` was asked to, or as often as it is published.
fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(usual)
}
