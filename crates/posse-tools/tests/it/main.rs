//! The tools with real files, real processes and real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod answers;
mod background;
mod bypasses;
mod files;
mod guardian;
mod hooks;
mod isolated;
mod live_output;
mod panes;
mod processes;
mod race;
mod search;
mod shell;
mod web;
mod worktree;
mod world;
