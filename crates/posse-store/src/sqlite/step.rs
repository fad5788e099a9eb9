//! Writes one step into the open transaction.
//!
//! The first statement both checks the step against the agent's row and moves it on; a step that is
//! refused there has written nothing.

mod birth;

use posse_protocol::EntryKind;
use posse_runtime::port::store::{
    AgentState, CallChange, CallChangeKind, Charge, Committed, NewEntry, StateChange, Step, StoreError,
};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::column;
use super::error::Failure;
use super::news::News;
use super::place::Place;

/// Whose rows are written, and when.
#[derive(Clone, Copy)]
struct Writing<'a> {
    connection: &'a Connection,
    realm: &'a [u8],
    agent: &'a [u8],
    at_ms: i64,
}

/// Writes `step`; `host` holds an agent that it makes.
pub(super) fn write(
    _place: &Place,
    connection: &Connection,
    step: &Step,
    host: Option<Uuid>,
    _news: &mut News,
) -> Result<Committed, Failure> {
    let (realm, agent) = (step.realm.uuid(), step.agent.uuid());
    let writing = Writing { connection, realm: realm.as_bytes(), agent: agent.as_bytes(), at_ms: step.at_ms };
    if let Some(birth) = &step.birth {
        writing.birth(birth, step, host)?;
    }
    writing.advance(step)?;
    for (entry, seq) in step.entries.iter().zip(step.entries.first().map_or(0, |first| first.seq)..) {
        writing.entry(entry, seq)?;
    }
    for change in &step.calls {
        writing.call(change)?;
    }
    for charge in &step.charges {
        writing.charge(charge)?;
    }
    for file in &step.seen {
        let sql = "INSERT INTO seen (realm, agent, path, version) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO UPDATE SET version = excluded.version";
        let version = column::bits(file.version);
        let path = column::path(&file.path);
        connection.prepare_cached(sql)?.execute(params![writing.realm, writing.agent, path, version])?;
    }
    Ok(Committed::default())
}

impl Writing<'_> {
    /// Moves the agent's row on, if the step is its writer's next.
    fn advance(&self, step: &Step) -> Result<(), Failure> {
        let sql = "UPDATE agent SET used_ms = ?3, own = own + ?4, state = coalesce(?5, state),
                       mode = coalesce(?6, mode), prompt_seq = coalesce(prompt_seq, ?7),
                       prompt_agent = iif(prompt_seq IS NULL AND ?7 IS NOT NULL, id, prompt_agent)
                   WHERE realm = ?1 AND id = ?2 AND epoch = ?8 AND own = coalesce(?9, own)";
        let first = step.entries.first().map(|entry| column::bits(entry.seq));
        let prompt = step.entries.iter().find(|entry| entry.kind == EntryKind::Prompt);
        let moved = self.connection.prepare_cached(sql)?.execute(params![
            self.realm,
            self.agent,
            self.at_ms,
            step.entries.len() as i64,
            step.state.map(|change| match change {
                StateChange::To(state) => column::state(state),
                StateChange::IdleUnlessMail => column::state(AgentState::Idle),
            }),
            step.mode.map(|mode| mode.as_str()),
            prompt.map(|entry| column::bits(entry.seq)),
            column::bits(step.epoch.0),
            first,
        ])?;
        if moved == 1 { Ok(()) } else { Err(self.refusal(step)?) }
    }

    /// Why the agent's row is not what the step goes on from.
    fn refusal(&self, step: &Step) -> Result<Failure, Failure> {
        let sql = "SELECT epoch, own FROM agent WHERE realm = ?1 AND id = ?2";
        let found = self.connection.query_row(sql, [self.realm, self.agent], |row| {
            Ok((column::from_bits(row.get(0)?), column::from_bits(row.get(1)?)))
        });
        Ok(match found.optional()? {
            None => Failure::Refused(StoreError::NotFound { agent: step.agent }),
            Some((epoch, _)) if epoch != step.epoch.0 => {
                Failure::Refused(StoreError::Fenced { agent: step.agent })
            }
            Some((_, own)) => {
                let first = step.entries.first().map_or(own, |entry| entry.seq);
                Failure::bad_step(format!("its first entry is {first}, the next one is {own}"))
            }
        })
    }

    fn entry(&self, entry: &NewEntry, seq: u64) -> Result<(), Failure> {
        if entry.seq != seq {
            return Err(Failure::bad_step(format!("entry {} stands where {seq} belongs", entry.seq)));
        }
        let reply = entry.reply.as_ref().map(json).transpose()?;
        let sql = "INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, bytes)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.realm,
            self.agent,
            column::bits(seq),
            column::kind(entry.kind),
            self.at_ms,
            column::bits(entry.checksum),
            entry.piece.mark_at.map(|at| at as i64),
            reply,
            &entry.piece.bytes[..],
        ])?;
        Ok(())
    }

    fn call(&self, CallChange { key, change }: &CallChange) -> Result<(), Failure> {
        let (realm, agent, seq, ordinal) = (self.realm, self.agent, column::bits(key.seq), key.ordinal);
        let changed = match change {
            CallChangeKind::Asked { id, tool } => {
                let sql = "INSERT INTO call (realm, agent, seq, ordinal, id, tool, begun)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)";
                self.connection.prepare_cached(sql)?.execute(params![realm, agent, seq, ordinal, id, tool])?
            }
            CallChangeKind::Begun => {
                let sql = "UPDATE call SET begun = 1
                           WHERE realm = ?1 AND agent = ?2 AND seq = ?3 AND ordinal = ?4";
                self.connection.prepare_cached(sql)?.execute(params![realm, agent, seq, ordinal])?
            }
            CallChangeKind::Done(outcome) => {
                let sql = "UPDATE call SET is_error = ?5, content = ?6 WHERE realm = ?1 AND agent = ?2
                               AND seq = ?3 AND ordinal = ?4 AND content IS NULL";
                let (is_error, content) = (outcome.is_error, json(&outcome.content)?);
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![realm, agent, seq, ordinal, is_error, content])?
            }
        };
        let call = format_args!("call {} of entry {}", key.ordinal, key.seq);
        match changed {
            0 => Err(Failure::bad_step(format!("{call} was not asked for, or has its outcome"))),
            _ => Ok(()),
        }
    }

    /// Adds a charge, and adds it to the agent's total. One without a price makes a total without one:
    /// a sum of what is known would pass for the whole.
    fn charge(&self, charge: &Charge) -> Result<(), Failure> {
        let (realm, agent, model) = (self.realm, self.agent, charge.model.as_str());
        let sql = "SELECT calls, input, cache_read, cache_write_5m, cache_write_1h, output, thinking, cost
                   FROM total WHERE realm = ?1 AND agent = ?2 AND model = ?3";
        let before = self
            .connection
            .prepare_cached(sql)?
            .query_row(params![realm, agent, model], |row| {
                Ok((row.get::<_, i64>(0)?, column::spent(row, 1)?))
            })
            .optional()?;
        let (nth, usage, cost) = match before {
            None => (0, charge.usage, charge.cost),
            Some((calls, (usage, cost))) => {
                (calls, usage + charge.usage, cost.zip(charge.cost).map(|(total, more)| total + more))
            }
        };
        let [a, b, c, d, e, f, g] = column::spend(&usage, cost);
        let sql = match nth {
            0 => {
                "INSERT INTO total (realm, agent, model, calls, input, cache_read, cache_write_5m,
                     cache_write_1h, output, thinking, cost)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            }
            _ => {
                "UPDATE total SET calls = ?4, input = ?5, cache_read = ?6, cache_write_5m = ?7,
                     cache_write_1h = ?8, output = ?9, thinking = ?10, cost = ?11
                 WHERE realm = ?1 AND agent = ?2 AND model = ?3"
            }
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![realm, agent, model, nth + 1, a, b, c, d, e, f, g])?;
        let [a, b, c, d, e, f, g] = column::spend(&charge.usage, charge.cost);
        let sql = "INSERT INTO charge (realm, agent, model, nth, at_ms, input, cache_read,
                       cache_write_5m, cache_write_1h, output, thinking, cost)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![realm, agent, model, nth, self.at_ms, a, b, c, d, e, f, g])?;
        Ok(())
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::bad_step(error.to_string()))
}
