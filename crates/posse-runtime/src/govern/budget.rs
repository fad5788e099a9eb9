//! Budgets of an agent and of the agents it starts.

use std::time::Duration;

use posse_protocol::Cost;

/// Limits on what may be used; none is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Cost>,
    /// Model calls.
    pub turns: Option<u32>,
    /// Time since the account was opened.
    pub time: Option<Duration>,
}

/// Budgets of an agent: for itself, and together with all it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// The agent's own calls.
    pub alone: Budget,
    /// Its calls and those of all agents below it.
    pub subtree: Budget,
}
