//! Teams: who works together.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentId, Name, RealmId};

/// A team, with its members in the order of joining; the first is its lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// The realm it lives in.
    pub realm: RealmId,
    /// Its name, unique in the realm.
    pub name: Name,
    /// What it is for.
    pub description: String,
    /// The agent that leads it.
    pub lead: AgentId,
    /// When it was made, in milliseconds of Unix time.
    pub created_ms: i64,
    /// Whatever else is to be kept with it.
    pub settings: Map<String, Value>,
    /// Who belongs to it.
    pub members: Vec<Member>,
}

/// One who belongs to a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name, unique in the team.
    pub name: Name,
    /// The agent. It need not be in the store: a team that was imported has members without transcripts.
    pub agent: AgentId,
    /// The type it was started as.
    pub agent_type: String,
    /// The model's name.
    pub model: String,
    /// What it was started with.
    pub prompt: String,
    /// The colour it is shown in.
    pub color: String,
    /// What runs it: `in-process`, `tmux`, …
    pub backend: String,
    /// Where it works.
    pub cwd: PathBuf,
    /// When it joined, in milliseconds of Unix time.
    pub joined_ms: i64,
}

/// A note on a team's scratchpad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its name, unique in the team.
    pub name: Name,
    /// How often it has been written; 1 when new.
    pub version: u64,
    /// Who wrote it last.
    pub author: String,
    /// The text.
    pub text: String,
    /// When it was written last, in milliseconds of Unix time.
    pub written_ms: i64,
}
