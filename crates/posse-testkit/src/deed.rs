//! The work of the processes of fault runs, in terms that they and the tests share.

#![expect(clippy::unwrap_used, reason = "fixed words that are right")]

use std::ops::RangeInclusive;
use std::str::FromStr;

use posse_protocol::Name;

/// Number of repetitions in a deed.
pub const TIMES: u64 = 5;
/// The agent that leads the team.
pub const LEAD: u64 = 1;
/// The other member.
pub const MEMBER: u64 = 2;
/// Agents of a host that has died.
pub const STRAYS: RangeInclusive<u64> = 11..=15;

/// The team.
pub fn crew() -> Name {
    "crew".parse().unwrap()
}

/// One protocol of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The lead writes to the member.
    Send,
    /// The member takes the messages into its transcript.
    Take,
    /// The lead makes tasks.
    Create,
    /// The lead claims the next task.
    Claim,
    /// The lead changes tasks.
    Update,
    /// The lead completes tasks.
    Complete,
    /// The lead's transcript grows.
    Append,
    /// The agents of a dead host are taken over.
    TakeOver,
}

impl Deed {
    /// All deeds.
    pub const ALL: [Self; 8] = [
        Self::Send,
        Self::Take,
        Self::Create,
        Self::Claim,
        Self::Update,
        Self::Complete,
        Self::Append,
        Self::TakeOver,
    ];

    /// Its name on a command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Take => "take",
            Self::Create => "create",
            Self::Claim => "claim",
            Self::Update => "update",
            Self::Complete => "complete",
            Self::Append => "append",
            Self::TakeOver => "take-over",
        }
    }
}

impl FromStr for Deed {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|deed| deed.as_str() == word)
            .ok_or_else(|| format!("`{word}` is no deed"))
    }
}
