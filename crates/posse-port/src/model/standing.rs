//! Who makes a call, for those who decide which of many calls is next.

/// Who makes a call, and how urgent it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whose share of the account it uses.
    pub lineage: Lineage,
    /// Whether a person waits for it.
    pub priority: CallPriority,
    /// Estimated tokens of the prompt, if more is known of it than its bytes.
    pub prompt: Option<u64>,
    /// Tokens of the prompt that the provider's cache is known to hold; zero for a cold prefix.
    /// They do not count against limits, and their cache entries expire while the call waits.
    pub cached: u64,
}

/// The agents that share what an account gives: sessions share equally, and in a session its teams
/// and the subtrees of its main agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The session.
    pub session: String,
    /// The team, if the agent belongs to one. Its members share equally.
    pub team: Option<String>,
    /// The agent below the main agent from which the caller descends; empty for the main agent.
    pub subtree: String,
}

impl Lineage {
    /// Returns the subtree of the agent at a path of a session, such as `/main/review/2`.
    pub fn subtree_of(path: &str) -> &str {
        path.split('/').nth(2).unwrap_or_default()
    }
}

/// Whether a person waits for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallPriority {
    /// The call answers a person's own words.
    Person,
    /// Any other call.
    #[default]
    Usual,
}

/// Why a call waits before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallWait {
    /// The account's limit of requests or tokens is reached.
    Limit,
    /// The provider has asked for a wait.
    RetryAfter,
    /// The provider fails, or cannot be reached.
    Outage,
}
