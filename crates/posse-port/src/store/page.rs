//! Pages of lists. A page begins beyond a row that the caller knows, so that rows which come or go
//! meanwhile neither repeat nor hide others, and a page costs the same wherever it is.

use posse_protocol::{AgentId, MailId, Name, RealmId, Team};

use super::view::{AgentRecord, AgentRow, OpenRequest};

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
    /// Returns the whole list.
    pub fn all() -> Self {
        Self::first(usize::MAX)
    }

    /// Returns the first rows.
    pub fn first(limit: usize) -> Self {
        Self {
            from: None,
            backwards: false,
            limit,
        }
    }

    /// Returns the last rows.
    pub fn last(limit: usize) -> Self {
        Self {
            backwards: true,
            ..Self::first(limit)
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

    /// Returns rows in the order of the list that were found in the direction of the page.
    pub fn in_order<T>(&self, mut rows: Vec<T>) -> Vec<T> {
        if self.backwards {
            rows.reverse();
        }
        rows
    }

    /// Returns the page of a list whose rows have another key.
    pub fn by<T>(self, key: impl FnOnce(K) -> T) -> Page<T> {
        Page {
            from: self.from.map(key),
            backwards: self.backwards,
            limit: self.limit,
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

/// The place of an agent in a list of agents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentKey {
    /// Its realm.
    pub realm: RealmId,
    /// Its path in the session.
    pub path: String,
    /// The agent. In a list of one agent's children, this alone is its place.
    pub agent: AgentId,
}

impl AgentKey {
    /// Returns the place of an agent.
    pub fn of(agent: &AgentRecord) -> Self {
        Self {
            realm: agent.realm,
            path: agent.path.clone(),
            agent: agent.agent,
        }
    }
}

impl AgentRow {
    /// Returns its place in the list of the agents of `realm`.
    pub fn key(&self, realm: RealmId) -> AgentKey {
        AgentKey {
            realm,
            path: self.path.clone(),
            agent: self.agent,
        }
    }
}

/// Which rows of a realm's agents are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFilter {
    /// A part of the list of all.
    Page(Page<AgentKey>),
    /// These, in this order; those that are not in the realm are left out.
    Agents(Vec<AgentId>),
}

/// The place of a team in a list of teams.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TeamKey {
    /// When it was created.
    pub created_ms: i64,
    /// Its realm.
    pub realm: RealmId,
    /// Its name.
    pub name: Name,
}

impl TeamKey {
    /// Returns the place of a team.
    pub fn of(team: &Team) -> Self {
        Self {
            created_ms: team.created_ms,
            realm: team.realm,
            name: team.name.clone(),
        }
    }
}

/// The place of a request in a list of open requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    /// Time of the request.
    pub asked_ms: i64,
    /// The request.
    pub id: MailId,
}

impl RequestKey {
    /// Returns the place of a request.
    pub fn of(request: &OpenRequest) -> Self {
        Self {
            asked_ms: request.asked_ms,
            id: request.id,
        }
    }
}
