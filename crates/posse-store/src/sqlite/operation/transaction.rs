//! The transaction that an operation writes in, and the look-ups that several operations share.

use posse_port::store::Refusal;
use posse_protocol::{AgentId, Name, Owner, RealmId};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::{Changes, DatabasePlace, OperationError, SqliteFailure, USER, column};
use crate::sqlite::free;
use crate::sqlite::list::ListReader;

/// The writer's open transaction, and on whose behalf it writes. Every operation is given one.
pub(in crate::sqlite) struct WriteTransaction<'a> {
    pub(in crate::sqlite) place: &'a DatabasePlace,
    pub(in crate::sqlite) connection: &'a Connection,
    pub(in crate::sqlite) realm: RealmId,
    /// The agent that acts; none for a person.
    pub(in crate::sqlite) actor: Option<AgentId>,
    pub(in crate::sqlite) at_ms: i64,
    pub(in crate::sqlite) changes: &'a mut Changes,
}

impl WriteTransaction<'_> {
    /// Returns the realm as it is stored.
    pub(super) fn realm_key(&self) -> [u8; 16] {
        self.realm.uuid().into_bytes()
    }

    /// Returns the task list of a team, or of the session. Refuses a team that does not exist.
    pub(super) fn list<'t>(&self, team: Option<&'t Name>) -> Result<ListReader<'t>, OperationError>
    where
        Self: 't,
    {
        if let Some(team) = team {
            self.must_exist(team)?;
        }
        Ok(ListReader::new(self.connection, self.realm, team))
    }

    /// Refuses a team that does not exist.
    pub(super) fn must_exist(&self, team: &Name) -> Result<(), OperationError> {
        match self.exists(team)? {
            true => Ok(()),
            false => Err(OperationError::Refused(Refusal::NoSuchTeam {
                team: team.clone(),
            })),
        }
    }

    /// Returns true if there is such a team.
    pub(super) fn exists(&self, team: &Name) -> Result<bool, SqliteFailure> {
        let sql = "SELECT 1 FROM team WHERE realm = ?1 AND name = ?2";
        Ok(self
            .connection
            .prepare_cached(sql)?
            .exists(params![self.realm_key(), team.as_str()])?)
    }

    /// Returns the agent that leads a team, if the team exists.
    pub(super) fn lead(&self, team: &str) -> Result<Option<AgentId>, SqliteFailure> {
        let sql = "SELECT lead FROM team WHERE realm = ?1 AND name = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row(params![self.realm_key(), team], |row| column::id(row, 0));
        Ok(found.optional()?.map(AgentId::from))
    }

    /// Returns the agent that has a name in a team; `team-lead` is the agent that leads it.
    pub(super) fn member(&self, team: &str, name: &str) -> Result<Option<AgentId>, SqliteFailure> {
        if name == Name::LEAD {
            return self.lead(team);
        }
        let sql = "SELECT agent FROM member WHERE realm = ?1 AND team = ?2 AND name = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), team, name];
        Ok(statement
            .query_row(key, |row| column::id(row, 0))
            .optional()?
            .map(AgentId::from))
    }

    /// Returns the name of an agent in a team, if it is a member.
    pub(super) fn name_in(
        &self,
        team: &str,
        agent: AgentId,
    ) -> Result<Option<String>, SqliteFailure> {
        let sql = "SELECT name FROM member INDEXED BY member_agent WHERE realm = ?1 AND agent = ?2 AND team = ?3 ORDER BY nth LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes(), team];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// Returns the name of an agent in the first team that it is a member of, if any.
    pub(super) fn name_in_any(&self, agent: AgentId) -> Result<Option<String>, SqliteFailure> {
        let sql = "SELECT name FROM member INDEXED BY member_agent WHERE realm = ?1 AND agent = ?2 ORDER BY team, nth LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// Returns the name of an agent outside teams, if it is in the store: the name it is registered
    /// under, else its path.
    pub(super) fn registered(&self, agent: AgentId) -> Result<Option<String>, SqliteFailure> {
        let sql = "SELECT coalesce(name, path) FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// Returns the path of an agent, if it is in the store.
    pub(super) fn path(&self, agent: AgentId) -> Result<Option<String>, SqliteFailure> {
        let sql = "SELECT path FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// Returns the host that holds an agent.
    pub(super) fn host(&self, agent: AgentId) -> Result<Option<Uuid>, SqliteFailure> {
        let sql = "SELECT host FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement
            .query_row(key, |row| column::maybe_id(row, 0))
            .optional()?
            .flatten())
    }

    /// Returns true if a host is dead or stalled. The actor's own host is never gone, however many
    /// heartbeats it has missed.
    pub(super) fn gone(&self, host: Uuid) -> Result<bool, SqliteFailure> {
        let mine = match self.actor {
            Some(agent) => self.host(agent)?,
            None => None,
        };
        Ok(mine != Some(host) && free::gone(self.place, host))
    }

    /// Returns the actor as an owner of tasks and an author of notes.
    pub(super) fn me(&self, team: &str) -> Result<Owner, SqliteFailure> {
        let Some(agent) = self.actor else {
            return Ok(Owner {
                agent: None,
                name: USER.into(),
            });
        };
        let name = match self.name_in(team, agent)? {
            Some(name) => name,
            None => self.path(agent)?.unwrap_or_else(|| agent.to_string()),
        };
        Ok(Owner {
            agent: Some(agent),
            name,
        })
    }
}
