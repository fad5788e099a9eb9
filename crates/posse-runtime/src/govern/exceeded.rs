//! Why a call is refused, as a message for people and models.

use std::fmt;
use std::time::Duration;

use posse_protocol::Cost;

/// A model call was refused because it could exceed a budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct Exceeded {
    /// Whose budget it is.
    pub whose: Whose,
    /// What is too short for the call.
    pub short: Short,
}

impl Exceeded {
    /// Returns true if only calls in progress are in the way: once they are settled, it may fit.
    /// `Account::freed` waits for that.
    pub fn may_pass(&self) -> bool {
        match self.short {
            Short::Tokens {
                budget, used, need, ..
            } => used.saturating_add(need) <= budget,
            Short::Cost {
                budget, used, need, ..
            } => used + need <= budget,
            Short::Turns { budget, used } => used < budget,
            Short::Price { .. } | Short::Time { .. } => false,
        }
    }

    /// Returns the message.
    fn words(&self) -> String {
        let whose = self.whose;
        let under_way = if self.may_pass() {
            " together with the calls in progress"
        } else {
            ""
        };
        match self.short {
            Short::Tokens {
                budget, used, need, ..
            } => format!(
                "{whose} is limited to {budget} tokens; {used} are used, and the next call could \
                 use {need}, which{under_way} is more than is left"
            ),
            Short::Cost {
                budget, used, need, ..
            } => format!(
                "{whose} is limited to {budget}; {used} is spent, and the next call could cost \
                 {need}, which{under_way} is more than is left"
            ),
            Short::Price { budget } => {
                format!(
                    "{whose} is limited to {budget}, and the cost of a call is unknown: its model \
                     has no price"
                )
            }
            Short::Turns { budget, .. } => {
                format!("{whose} is limited to {budget} model calls, and all are used")
            }
            Short::Time { budget } => {
                format!(
                    "{whose} is limited to {} seconds, and they have passed",
                    budget.as_secs_f64()
                )
            }
        }
    }
}

/// Whose budget it is, seen from the agent that wanted to make the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The agent's, for itself.
    Alone,
    /// The agent's and that of all it started.
    Subtree,
    /// The same of one of its ancestors: 1 is its parent.
    Above(usize),
    /// The session's.
    Session,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => f.write_str("the agent itself"),
            Self::Subtree => f.write_str("the agent with all it started"),
            Self::Above(1) => f.write_str("the agent's parent with all it started"),
            Self::Above(levels) => write!(
                f,
                "the agent's ancestor {levels} levels up with all it started"
            ),
            Self::Session => f.write_str("the session"),
        }
    }
}

/// What is too short for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Tokens.
    Tokens {
        /// What may be used.
        budget: u64,
        /// What is used.
        used: u64,
        /// What calls that are under way could use.
        held: u64,
        /// What the smallest useful call could use.
        need: u64,
    },
    /// Money.
    Cost {
        /// What may be spent.
        budget: Cost,
        /// What is spent.
        used: Cost,
        /// What calls that are under way could cost.
        held: Cost,
        /// What the smallest useful call could cost.
        need: Cost,
    },
    /// A price: there is a budget of money, and the cost of this call or of an earlier one is
    /// unknown.
    Price {
        /// Budget.
        budget: Cost,
    },
    /// Model calls.
    Turns {
        /// How many may be made.
        budget: u32,
        /// How many are made; the others are under way.
        used: u32,
    },
    /// Time.
    Time {
        /// How long it may take.
        budget: Duration,
    },
}
