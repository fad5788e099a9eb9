//! Terms of a teammate, and its identity in its team.

use posse_protocol::{Cost, MemberChange, MemberUpdate, Name, PermissionMode, Takes};
use serde::{Deserialize, Serialize};

/// Terms of a teammate, besides those of every sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeammateTerms {
    /// Its team.
    pub(crate) team: Name,
    /// True if it submits a plan before it changes anything.
    pub(crate) plan: bool,
    /// Its mode once the plan is approved, if not its parent's.
    pub(crate) then: Option<PermissionMode>,
    /// Budget for it and all that it starts.
    #[serde(default)]
    pub(crate) budget: Option<Cost>,
}

/// Identity of a member in its team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TeamIdentity {
    pub(crate) team: Name,
    pub(crate) name: Name,
    pub(crate) color: String,
    /// Tasks that it claims by itself.
    pub(crate) takes: Takes,
    /// Backend that runs it.
    pub(crate) backend: String,
}

impl TeamIdentity {
    /// Returns its name with its team, as people and other teams write it.
    pub(crate) fn address(&self) -> String {
        format!("{}@{}", self.name, self.team)
    }

    /// Returns the event for a change.
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
