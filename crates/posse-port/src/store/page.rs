//! Pages of lists. A page begins beyond a row that the caller knows, so that rows which come or go
//! meanwhile neither repeat nor hide others, and a page costs the same wherever it is.

use posse_protocol::AgentId;

use super::view::AgentRecord;

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<K> {
    /// The row that it begins beyond; `None` for the beginning or, backwards, for the end.
    pub from: Option<K>,
    /// True for the rows before instead of after. They are in the order of the list all the same.
    pub backwards: bool,
    /// Maximum number of rows.
    pub limit: usize,
}

impl<K> Page<K> {
    /// Returns the first rows.
    pub fn first(limit: usize) -> Self {
        Self {
            from: None,
            backwards: false,
            limit,
        }
    }

    /// Returns the rows after one.
    pub fn after(row: K, limit: usize) -> Self {
        Self {
            from: Some(row),
            ..Self::first(limit)
        }
    }

    /// Returns the last rows before one.
    pub fn before(row: K, limit: usize) -> Self {
        Self {
            backwards: true,
            ..Self::after(row, limit)
        }
    }
}

/// The place of a session in the list of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// Time of its last step.
    pub used_ms: i64,
    /// Its root agent.
    pub agent: AgentId,
}

impl SessionKey {
    /// Returns the place of a session.
    pub fn of(session: &AgentRecord) -> Self {
        Self {
            used_ms: session.used_ms,
            agent: session.agent,
        }
    }
}
