//! Operations on mail, tasks and teams, in the open transaction.
//!
//! An operation looks first, and writes when nothing can refuse it any more: what is refused has changed
//! nothing, and needs no savepoint.

mod change;
mod claim;
mod create;
mod import;
mod note;
mod request;
mod send;
mod team;

use posse_port::store::{
    Charge, Done, METADATA_DEPTH, Op, OpResult, Order, Refusal, TEXT_BYTES, depth,
};
use posse_protocol::{AgentId, Name, Owner, RealmId, Response};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::error::Failure;
use super::free;
use super::list::List;
use super::news::News;
use super::place::Place;
use super::{charge, column};

#[cfg(test)]
pub(super) use claim::DOES;
pub(super) use import::import;
#[cfg(test)]
pub(super) use team::HIGHEST;

/// What the person is called.
const USER: &str = "user";

/// Does what a person asks for.
pub(super) fn order(
    place: &Place,
    connection: &Connection,
    order: &Order,
    news: &mut News,
) -> Result<Vec<OpResult>, Failure> {
    let (realm, at_ms) = (order.realm, order.at_ms);
    let mut acting = Acting {
        place,
        connection,
        realm,
        actor: None,
        at_ms,
        news,
    };
    order.ops.iter().map(|op| acting.perform(op)).collect()
}

/// Who does something, where and when.
pub(super) struct Acting<'a> {
    pub(super) place: &'a Place,
    pub(super) connection: &'a Connection,
    pub(super) realm: RealmId,
    /// The agent; none for a person.
    pub(super) actor: Option<AgentId>,
    pub(super) at_ms: i64,
    pub(super) news: &'a mut News,
}

/// Why an operation stops.
enum Stop {
    Refused(Refusal),
    Failed(Failure),
}

impl Acting<'_> {
    /// Does one thing, or says why not.
    pub(super) fn perform(&mut self, op: &Op) -> Result<OpResult, Failure> {
        let done = match op {
            Op::Send {
                id,
                to,
                kind,
                summary,
                body,
            } => {
                let always = send::always_fits(*kind);
                self.send(
                    to,
                    &send::Letter {
                        id: *id,
                        kind: *kind,
                        summary,
                        body,
                        always,
                    },
                )
            }
            Op::Charge { agent, charge } => self.charge(*agent, charge),
            Op::CreateTeam {
                team,
                description,
                settings,
                lead,
            } => self.create_team(team, description, settings, lead),
            Op::DeleteTeam { team } => self.delete_team(team),
            Op::Join {
                team,
                name,
                member,
                greeting,
            } => self.join(team, name, member, greeting.as_ref()),
            Op::HandOver { team, to } => self.hand_over(team, to),
            Op::Leave { team, name } => self.leave(team, name),
            Op::Request { id, to, kind, text } => self.request(*id, to, *kind, text),
            Op::Respond {
                id,
                request,
                kind,
                approve,
                text,
            } => {
                let response = Response {
                    request_id: *request,
                    approve: *approve,
                    text: text.clone(),
                };
                self.respond(*id, *kind, &response)
            }
            Op::WriteNote {
                team,
                name,
                text,
                expect,
            } => self.write_note(team, name, text, *expect),
            Op::CreateTask { team, task } => self.create_task(team.as_ref(), task),
            Op::UpdateTask {
                team,
                id,
                expect,
                change,
            } => self.update_task(team.as_ref(), *id, *expect, change),
            Op::Claim { team, id } => self.claim(team.as_ref(), *id),
            Op::ClaimNext { team, takes } => self.claim_next(team.as_ref(), takes),
        };
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
            Err(Stop::Failed(failure)) => Err(failure),
        }
    }

    /// Books what a call took that was made about an agent. It is no sign that somebody uses the agent.
    fn charge(&self, agent: AgentId, charge: &Charge) -> Outcome {
        if self.path(agent)?.is_none() {
            return Err(Stop::Refused(Refusal::NoSuchAgent { agent }));
        }
        charge::book(
            self.connection,
            &self.realm_key(),
            agent.uuid().as_bytes(),
            charge,
            self.at_ms,
        )?;
        Ok(Done::Charged)
    }

    fn realm_key(&self) -> [u8; 16] {
        self.realm.uuid().into_bytes()
    }

    /// The list of a team, which must be there, or of the session.
    fn list<'t>(&self, team: Option<&'t Name>) -> Result<List<'t>, Stop>
    where
        Self: 't,
    {
        if let Some(team) = team {
            self.must_exist(team)?;
        }
        Ok(List::new(self.connection, self.realm, team))
    }

    fn must_exist(&self, team: &Name) -> Result<(), Stop> {
        match self.exists(team)? {
            true => Ok(()),
            false => Err(Stop::Refused(Refusal::NoSuchTeam { team: team.clone() })),
        }
    }

    fn exists(&self, team: &Name) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM team WHERE realm = ?1 AND name = ?2";
        Ok(self
            .connection
            .prepare_cached(sql)?
            .exists(params![self.realm_key(), team.as_str()])?)
    }

    /// The agent that leads a team, if that is there.
    fn lead(&self, team: &str) -> Result<Option<AgentId>, Failure> {
        let sql = "SELECT lead FROM team WHERE realm = ?1 AND name = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row(params![self.realm_key(), team], |row| column::id(row, 0));
        Ok(found.optional()?.map(AgentId::from))
    }

    /// The agent that has a name in a team; `team-lead` is whoever leads it.
    fn member(&self, team: &str, name: &str) -> Result<Option<AgentId>, Failure> {
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

    /// What an agent is called in a team, if it belongs to it.
    fn name_in(&self, team: &str, agent: AgentId) -> Result<Option<String>, Failure> {
        let sql = "SELECT name FROM member INDEXED BY member_agent WHERE realm = ?1 AND agent = ?2 AND team = ?3 ORDER BY nth LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes(), team];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// What an agent is called in the first team that it belongs to, if there is one.
    fn name_in_any(&self, agent: AgentId) -> Result<Option<String>, Failure> {
        let sql = "SELECT name FROM member INDEXED BY member_agent WHERE realm = ?1 AND agent = ?2 ORDER BY team, nth LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// What an agent is called outside teams, if it is in the store: what it is registered under, else its
    /// path.
    fn registered(&self, agent: AgentId) -> Result<Option<String>, Failure> {
        let sql = "SELECT coalesce(name, path) FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// An agent's path, if it is in the store.
    fn path(&self, agent: AgentId) -> Result<Option<String>, Failure> {
        let sql = "SELECT path FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// The host that holds an agent.
    fn host(&self, agent: AgentId) -> Result<Option<Uuid>, Failure> {
        let sql = "SELECT host FROM agent WHERE realm = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), agent.uuid().into_bytes()];
        Ok(statement
            .query_row(key, |row| column::maybe_id(row, 0))
            .optional()?
            .flatten())
    }

    /// Whether a host is dead or stalled. The actor's own goes on, whatever it has missed.
    fn gone(&self, host: Uuid) -> Result<bool, Failure> {
        let mine = match self.actor {
            Some(agent) => self.host(agent)?,
            None => None,
        };
        Ok(mine != Some(host) && free::gone(self.place, host))
    }

    /// The actor as one who does tasks of a list and writes notes.
    fn me(&self, team: &str) -> Result<Owner, Failure> {
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

/// Refuses a text that is longer than what is kept of tasks and notes.
fn fits(bytes: usize) -> Result<(), Stop> {
    match bytes > TEXT_BYTES {
        true => Err(Stop::Refused(Refusal::TooLong {
            bytes,
            most: TEXT_BYTES,
        })),
        false => Ok(()),
    }
}

/// Refuses a task whose text is too long, or whose metadata nest too deep.
fn fits_task<'a>(
    texts: impl IntoIterator<Item = Option<&'a str>>,
    metadata: &Map<String, Value>,
) -> Result<(), Stop> {
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let more = if metadata.is_empty() {
        0
    } else {
        column::json(metadata)?.len()
    };
    fits(texts + more)?;
    if metadata.values().any(|value| depth(value) > METADATA_DEPTH) {
        return Err(Stop::Refused(Refusal::TooDeep {
            most: METADATA_DEPTH,
        }));
    }
    Ok(())
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

type Outcome = Result<Done, Stop>;
