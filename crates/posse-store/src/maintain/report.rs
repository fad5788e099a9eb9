//! What maintenance finds in a store, and what it removes.

use std::path::PathBuf;

use uuid::Uuid;

/// How many faults of one kind are named.
pub(crate) const NAMED: usize = 20;

/// What a store is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// How many agents there are.
    pub agents: u64,
    /// How many entries of transcripts were verified.
    pub entries: u64,
    /// How many teams there are.
    pub teams: u64,
    /// How many tasks, deleted ones too.
    pub tasks: u64,
    /// How many messages, shown or waiting.
    pub messages: u64,
    /// What is wrong, for people.
    pub faults: Vec<String>,
}

/// What was removed, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Root agents.
    pub sessions: u64,
    /// All agents.
    pub agents: u64,
    /// Teams.
    pub teams: u64,
    /// In a file: by how much that is free in it has grown, in bytes. It does not shrink: what is free is used again.
    /// On a server: how many bytes of transcripts were removed; it uses their place again when it has swept.
    pub bytes: u64,
}

/// A realm that nobody uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// What it is called: its first session, else the lead of an imported team, else the realm itself.
    pub id: Uuid,
    /// How many root agents it has.
    pub sessions: u64,
    /// How many agents.
    pub agents: u64,
    /// The names of its teams.
    pub teams: Vec<String>,
    /// When something happened in it last, in milliseconds of Unix time.
    pub used_ms: i64,
    /// Where its first session works.
    pub cwd: Option<PathBuf>,
}
