//! A team as it is declared: who belongs to it, and what it begins with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Name, PermissionMode};

/// A declared team. Kept with the team, so that what is missing of it can be raised after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamPlan {
    /// What the team is for.
    pub description: String,
    /// Who belongs to it beside the lead, by the names of their roles.
    pub roles: BTreeMap<Name, Role>,
    /// The tasks to begin with; the first has the number 1.
    pub tasks: Vec<PlannedTask>,
}

/// A role in a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// The type of agent; general-purpose if absent.
    pub agent: Option<String>,
    /// What it is told first, before the goal.
    pub prompt: String,
    /// Its model, if not the type's.
    pub model: Option<String>,
    /// How hard it tries, if not as hard as the type says.
    pub effort: Option<String>,
    /// Its mode. `plan`: it hands in a plan before it changes anything.
    pub mode: Option<PermissionMode>,
    /// Whether each has a checkout of its own.
    pub worktree: bool,
    /// What each may spend, all its model calls together.
    pub budget: Option<crate::Cost>,
    /// How many there are. Of several each has a number: `dev-1`, `dev-2`.
    pub count: u32,
    /// Only tasks that are marked with one of these words are taken; without it those that are not marked, or
    /// marked with the name of the role.
    pub takes: Option<Vec<String>>,
}

impl Default for Role {
    /// One general-purpose agent that is told nothing first.
    fn default() -> Self {
        Self {
            agent: None,
            prompt: String::new(),
            model: None,
            effort: None,
            mode: None,
            worktree: false,
            budget: None,
            count: 1,
            takes: None,
        }
    }
}

/// A task to begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// What is to be done, in a line.
    pub subject: String,
    /// The same at length.
    pub description: String,
    /// Who may take it.
    pub role: Option<String>,
    /// The numbers of those before it.
    pub blocked_by: Vec<u64>,
    /// The command that must pass before it counts as completed.
    pub check: Option<String>,
}
