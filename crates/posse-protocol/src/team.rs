//! Teams: who works together.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentId, Name, RealmId, Takes};

/// A team, with its members in the order of joining. The member called `team-lead` began as its lead, if it
/// still is there; who leads it now is `lead`.
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
    /// Names of those who have left, by name: they are not given again.
    #[serde(default)]
    pub former: Vec<Name>,
}

impl Team {
    /// The agent whose session the team belongs to: the one who led it first, if that still is a member.
    pub fn session(&self) -> AgentId {
        self.members.first().map_or(self.lead, |first| first.agent)
    }
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
    /// The role that it was declared with.
    #[serde(default)]
    pub role: Option<String>,
    /// Which tasks it takes by itself.
    #[serde(default)]
    pub takes: Takes,
    /// How it stands now.
    #[serde(default)]
    pub state: MemberState,
    /// How many messages wait for it.
    #[serde(default)]
    pub waiting: u64,
    /// Whether a process has it.
    #[serde(default)]
    pub held: bool,
}

/// How a member stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It is there, and has done nothing yet.
    Created,
    /// It works.
    Running,
    /// It waits: for what it has started, for a person, for a place.
    Waiting,
    /// It has nothing to do.
    #[default]
    Idle,
    /// A budget or an outage stopped it for now.
    Paused,
    /// It has ended.
    ShutDown,
}

impl MemberState {
    /// The word in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
            Self::Paused => "paused",
            Self::ShutDown => "shut_down",
        }
    }

    /// Whether it does something, or will without being told.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Created | Self::Running | Self::Waiting)
    }
}

/// The colour of the `nth` member, none like another's: names first, then shades.
pub fn color(nth: usize) -> String {
    const NAMED: [&str; 8] = [
        "blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red",
    ];
    match NAMED.get(nth) {
        Some(name) => (*name).to_owned(),
        // Steps of the golden angle through the hues: neighbours differ most, and none comes back.
        None => {
            let hue = (nth as f64 * 137.507_764) % 360.0;
            let part = |at: f64| {
                let along = (at + hue / 30.0) % 12.0;
                let shade = 0.6 - 0.35 * (along - 3.0).min(9.0 - along).clamp(-1.0, 1.0);
                (shade * 255.0) as u8
            };
            format!("#{:02x}{:02x}{:02x}", part(0.0), part(8.0), part(4.0))
        }
    }
}

/// The first colour that is not taken.
pub fn free_color(taken: &BTreeSet<String>) -> String {
    // Two numbers may give the same shade, but there are far more shades than members.
    let most = 8 * taken.len() + 64;
    (0..most)
        .map(color)
        .find(|color| !taken.contains(color))
        .unwrap_or_else(|| color(most))
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
