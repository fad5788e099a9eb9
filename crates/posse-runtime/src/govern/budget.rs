//! Budgets: what an agent, and what it starts, may use.

use std::time::Duration;

use posse_protocol::Cost;

/// How much may be used. What is none is not limited.
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

/// What an agent may use: itself, and together with all it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// The agent's own calls.
    pub alone: Budget,
    /// Its calls and those of all agents below it.
    pub subtree: Budget,
}
