//! What maintenance finds in a store, and what it removes.

use std::path::PathBuf;

use uuid::Uuid;

/// Number of faults of one kind that are listed individually; the rest are only counted.
pub(crate) const NAMED: usize = 20;

/// The result of an integrity check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Number of agents.
    pub agents: u64,
    /// Number of transcript entries that were verified.
    pub entries: u64,
    /// Number of teams.
    pub teams: u64,
    /// Number of tasks, including deleted ones.
    pub tasks: u64,
    /// Number of messages, read or waiting.
    pub messages: u64,
    /// Number of agents that an older posse has made, whose ids do not end like those of their
    /// realms. They are found by their rows, so that a store with them must be one database.
    pub misplaced: u64,
    /// Faults that were found, described for people.
    pub faults: Vec<String>,
}

/// What was removed, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Number of root agents.
    pub sessions: u64,
    /// Number of agents of any kind.
    pub agents: u64,
    /// Number of teams.
    pub teams: u64,
    /// In a file: the growth of its free space, in bytes. The file does not shrink, but free
    /// space is reused. On a server: bytes of transcripts removed; their space is reused after a
    /// vacuum.
    pub bytes: u64,
}

/// A realm that has not been used for a long time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its name for people: its first session, else the lead of an imported team, else the
    /// realm's id.
    pub id: Uuid,
    /// Number of root agents in it.
    pub sessions: u64,
    /// Number of agents in it.
    pub agents: u64,
    /// The names of its teams.
    pub teams: Vec<String>,
    /// Time of the last change in it, in milliseconds of Unix time.
    pub used_ms: i64,
    /// Length of its agents' entries.
    pub bytes: u64,
    /// Working directory of its first session.
    pub cwd: Option<PathBuf>,
}
