//! Teammates: what is agreed with one besides what is with every sub-agent.

use posse_protocol::{Cost, MemberChange, MemberUpdate, Name, PermissionMode, Takes};
use serde::{Deserialize, Serialize};

/// What is agreed with a teammate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeammateTerms {
    /// Its team.
    pub(crate) team: Name,
    /// Whether it hands in a plan before it changes anything.
    pub(crate) plan: bool,
    /// Its mode once the plan is approved, if not its parent's.
    pub(crate) then: Option<PermissionMode>,
    /// What it may spend, with all that it starts.
    #[serde(default)]
    pub(crate) budget: Option<Cost>,
}

/// Who somebody is in its team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TeamIdentity {
    pub(crate) team: Name,
    pub(crate) name: Name,
    pub(crate) color: String,
    /// Which tasks it takes by itself.
    pub(crate) takes: Takes,
    /// What runs it.
    pub(crate) backend: String,
}

impl TeamIdentity {
    /// What people and other teams call it.
    pub(crate) fn address(&self) -> String {
        format!("{}@{}", self.name, self.team)
    }

    /// That something has happened to it.
    pub(crate) fn news(&self, what: MemberChange) -> Box<MemberUpdate> {
        let Self {
            team, name, color, ..
        } = self.clone();
        Box::new(MemberUpdate {
            team,
            name,
            color,
            what,
        })
    }
}
