//! Money. Whole pico-dollars, so that the costs of many agents add up to the total exactly.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// An amount of US dollars, in units of 10⁻¹².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount in pico-dollars.
    pub fn from_pico_usd(pico: u64) -> Self {
        Self(pico)
    }

    /// The amount in pico-dollars.
    pub fn pico_usd(self) -> u64 {
        self.0
    }

    /// The amount in dollars, for people and for JSON.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl fmt::Display for Cost {
    /// `$0.0123` below ten cents, `$0.12` from there on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = if self.usd() < 0.1 { 4 } else { 2 };
        write!(f, "${:.places$}", self.usd())
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Add::add)
    }
}

/// What a model call was made for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's own work.
    #[default]
    Work,
    /// A summary that replaces its history.
    Compaction,
    /// A question about it that is no part of its conversation.
    Question,
    /// Where it stands, for those who look on.
    Progress,
    /// What of its work is worth remembering.
    Memory,
    /// A question of a hook.
    Hook,
    /// A call whose reply was never recorded, at its worst cost: it is in progress, or was cut off
    /// when its process died. Not part of what an agent is known to have spent.
    InFlight,
}

impl Purpose {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Work,
        Self::Compaction,
        Self::Question,
        Self::Progress,
        Self::Memory,
        Self::Hook,
        Self::InFlight,
    ];

    /// The word in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Compaction => "compaction",
            Self::Question => "question",
            Self::Progress => "progress",
            Self::Memory => "memory",
            Self::Hook => "hook",
            Self::InFlight => "in flight",
        }
    }
}
