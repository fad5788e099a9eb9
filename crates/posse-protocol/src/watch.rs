//! Watching: what can be watched how closely, and what only viewers are told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::AgentId;

/// How much of an agent a viewer sees.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// What it does and waits for, without what it says.
    News,
    /// Everything: also its entries, its replies while they arrive, and what its tools print.
    All,
}

/// What a viewer can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchTarget {
    /// One agent.
    Agent(AgentId),
    /// All agents of a session that live in the same process, named by its main agent.
    Session(AgentId),
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It has no run.
    Idle,
    /// It calls the model, or its tools run.
    Working,
    /// Its run waits.
    Waiting(WaitReason),
    /// It does not live in this process any more.
    Gone,
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A place among those that call the model at once, or the sibling that writes the prompt cache.
    Place,
    /// Money that calls in progress have reserved.
    Budget,
    /// The provider, which has failed or wants to be left alone for a while.
    Rate,
    /// Agents and commands that it has started.
    Children,
    /// A person's answer.
    Person,
}
