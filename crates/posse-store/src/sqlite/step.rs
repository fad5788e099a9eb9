//! Writes one step into the open transaction.
//!
//! The first statement both checks the step against the agent's row and advances the row; a step
//! that is refused there has written nothing. It also stores the step's id and result, by which a
//! second try is recognized. Only a step with operations, whose results are not known yet, writes
//! the row again.

mod birth;
mod mail;
mod question;
mod run;

use std::collections::BTreeMap;

use posse_port::confinement::Tier;
use posse_port::store::{
    CallChange, CallChangeKind, CallKey, Charge, Committed, NewEntry, OpResult, StateChange, Step,
    StoreError,
};
use posse_protocol::{AgentId, EntryKind, MemberState, RequestKind};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::changes::Changes;
use super::error::SqliteFailure;
use super::feed::NewFeedRow;
use super::free;
use super::operation::{self, WriteTransaction};
use super::place::DatabasePlace;
use super::{charge, column, content};
use crate::columns;

#[cfg(test)]
pub(super) use birth::{HAD, NAMED};

/// The agent whose rows are written, and when.
#[derive(Clone, Copy)]
struct StepWriter<'a> {
    connection: &'a Connection,
    realm: &'a [u8],
    agent: &'a [u8],
    at_ms: i64,
}

/// Writes `step`. If it creates an agent, `host` holds it.
pub(super) fn write(
    place: &DatabasePlace,
    connection: &Connection,
    step: &Step,
    host: Option<Uuid>,
    changes: &mut Changes,
) -> Result<Committed, SqliteFailure> {
    let (realm, agent) = (step.realm.uuid(), step.agent.uuid());
    let writer = StepWriter {
        connection,
        realm: realm.as_bytes(),
        agent: agent.as_bytes(),
        at_ms: step.at_ms,
    };
    if let (Some(birth), Some(host)) = (&step.birth, host) {
        if let Some(before) = writer.born_before(step)? {
            return Ok(before);
        }
        if let Some(why) = step.misplaced() {
            return Err(SqliteFailure::bad_step(why));
        }
        writer.birth(birth, step, host, changes)?;
    }
    let mut committed = Committed::default();
    // Before the row is advanced, which needs to know if the state changes. Mail that the step
    // itself takes does not count.
    if let Some(StateChange::UnlessMail(_)) = step.state {
        committed.mail_waits = writer.mail_waiting()? > step.mail.len() as u64;
    }
    if let Some(before) = writer.advance(step, &committed)? {
        return Ok(before);
    }
    // After the row: a repeated step has returned by now, and needs no checks.
    writer.must_make_sense(step)?;
    let first = step.entries.first().map_or(0, |first| first.seq);
    changes.feed(
        step.realm,
        NewFeedRow {
            agent: Some(step.agent),
            topics: step.topics(),
            seq: first,
            count: step.entries.len() as u64,
        },
    );
    for (entry, seq) in step.entries.iter().zip(first..) {
        let is_last = seq + 1 == first + step.entries.len() as u64;
        writer.entry(entry, seq, step.reserved.as_deref().filter(|_| is_last))?;
    }
    for change in &step.calls {
        writer.call(change)?;
    }
    for charge in &step.charges {
        charge::book(connection, writer.realm, writer.agent, charge, step.at_ms)?;
    }
    for file in &step.seen {
        let sql = "INSERT INTO seen (realm, agent, path, version) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO UPDATE SET version = excluded.version";
        let version = column::bits(file.version);
        let path = column::path(&file.path);
        connection.prepare_cached(sql)?.execute(params![
            writer.realm,
            writer.agent,
            path,
            version
        ])?;
    }
    if !step.mail.is_empty() {
        writer.take_mail(step)?;
    }
    for change in &step.questions {
        question::change(&writer, change)?;
    }
    if !step.operations.is_empty() && !committed.mail_waits {
        let (realm, actor, at_ms) = (step.realm, Some(step.agent), step.at_ms);
        committed = writer.operate(
            step,
            WriteTransaction {
                place,
                connection,
                realm,
                actor,
                at_ms,
                changes,
            },
        )?;
    }
    if let Some(StateChange::To(state) | StateChange::UnlessMail(state)) = step.state
        && !committed.mail_waits
        && state.of_member() == MemberState::ShutDown
    {
        writer.close_requests()?;
        question::withdraw_all(&writer)?;
        let (realm, actor, at_ms) = (step.realm, Some(step.agent), step.at_ms);
        let mut transaction = WriteTransaction {
            place,
            connection,
            realm,
            actor,
            at_ms,
            changes,
        };
        operation::stop_leading(&mut transaction, step.agent)?;
        free::tasks(connection, realm, step.agent, None, changes)?;
        free::unassign(connection, realm, step.agent, None, changes)?;
    }
    for change in &step.runs {
        writer.run(change)?;
    }
    Ok(committed)
}

impl StepWriter<'_> {
    /// Advances the agent's row, if the step is its writer's next one. Returns the earlier result
    /// if the step was the last one already.
    fn advance(
        &self,
        step: &Step,
        committed: &Committed,
    ) -> Result<Option<Committed>, SqliteFailure> {
        let sql = "UPDATE agent SET used_ms = ?3, own = own + ?4, state = coalesce(?5, state),
                       mode = coalesce(?6, mode), prompt_seq = coalesce(prompt_seq, ?7),
                       prompt_agent = iif(prompt_seq IS NULL AND ?7 IS NOT NULL, id, prompt_agent),
                       step = ?10, result = ?11, starter = coalesce(?12, starter),
                       ended = iif(?5 IS NULL, ended, ?13), types = coalesce(?14, types),
                       since = coalesce(?15, since), model = coalesce(?16, model)
                   WHERE realm = ?1 AND id = ?2 AND epoch = ?8 AND own = coalesce(?9, own)
                       AND step IS NOT ?10";
        let first = step.entries.first().map(|entry| column::bits(entry.seq));
        let prompt = step
            .entries
            .iter()
            .find(|entry| entry.kind == EntryKind::Prompt);
        let since = step
            .entries
            .iter()
            .rfind(|entry| entry.kind == EntryKind::Compaction);
        let model = step.entries.iter().rev().find_map(NewEntry::model);
        let state = match step.state {
            Some(StateChange::To(state)) => Some(state),
            Some(StateChange::UnlessMail(state)) if !committed.mail_waits => Some(state),
            _ => None,
        };
        let starter = step.starter.map(|starter| starter.uuid().into_bytes());
        let ended = step.ended.as_ref().map(column::json).transpose()?;
        let moved = self.connection.prepare_cached(sql)?.execute(params![
            self.realm,
            self.agent,
            self.at_ms,
            step.entries.len() as i64,
            state.map(column::state),
            step.mode.map(|mode| mode.as_str()),
            prompt.map(|entry| column::bits(entry.seq)),
            column::bits(step.epoch.0),
            first,
            step.id.0.as_bytes(),
            result(committed)?,
            starter,
            ended,
            step.types.map(column::bits),
            since.map(|entry| column::bits(entry.seq)),
            model,
        ])?;
        if moved == 1 {
            Ok(None)
        } else {
            self.repeated(step).map(Some)
        }
    }

    /// Refuses a result of a run that has not ended, a starter of another realm, and operations
    /// that only people have.
    fn must_make_sense(&self, step: &Step) -> Result<(), SqliteFailure> {
        if let Some(why) = step.oversteps() {
            return Err(SqliteFailure::bad_step(why));
        }
        let ends = match step.state {
            Some(StateChange::To(state) | StateChange::UnlessMail(state)) => !state.is_open(),
            None => false,
        };
        if step.ended.is_some() && !ends {
            return Err(SqliteFailure::bad_step(
                "a run came to something without having ended",
            ));
        }
        match step.starter {
            Some(starter) if !self.is_here(starter)? => Err(SqliteFailure::bad_step(format!(
                "there is no agent {starter} to be told of its end"
            ))),
            _ => Ok(()),
        }
    }

    /// Closes the requests to and from an agent that has shut down.
    fn close_requests(&self) -> Result<(), SqliteFailure> {
        let sql = "DELETE FROM request WHERE realm = ?1 AND (asked = ?2 OR asker = ?2)
                       AND kind = iif(asked = ?2, ?3, ?4)";
        let [ends, plans] = [RequestKind::Shutdown, RequestKind::Plan].map(RequestKind::as_str);
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.realm, self.agent, ends, plans])?;
        Ok(())
    }

    /// Returns true if an agent is in this realm.
    fn is_here(&self, agent: AgentId) -> Result<bool, SqliteFailure> {
        let sql = "SELECT 1 FROM agent WHERE realm = ?1 AND id = ?2";
        Ok(self
            .connection
            .prepare_cached(sql)?
            .exists(params![self.realm, agent.uuid().as_bytes()])?)
    }

    /// Returns the result of a step that was already committed, or why the agent's row does not
    /// fit.
    fn repeated(&self, step: &Step) -> Result<Committed, SqliteFailure> {
        let sql = "SELECT epoch, own, step, result FROM agent WHERE realm = ?1 AND id = ?2";
        let found = self
            .connection
            .query_row(sql, [self.realm, self.agent], |row| {
                let (epoch, own) = (
                    column::from_bits(row.get(0)?),
                    column::from_bits(row.get(1)?),
                );
                Ok((
                    epoch,
                    own,
                    column::maybe_id(row, 2)?,
                    column::maybe_json(row, 3)?,
                ))
            });
        match found.optional()? {
            None => Err(SqliteFailure::Refused(StoreError::NotFound {
                agent: step.agent,
            })),
            Some((epoch, ..)) if epoch != step.epoch.0 => {
                Err(SqliteFailure::Refused(StoreError::Fenced {
                    agent: step.agent,
                }))
            }
            Some((_, _, last, result)) if last == Some(step.id.0) => Ok(result.unwrap_or_default()),
            Some((_, own, ..)) => {
                let first = step.entries.first().map_or(own, |entry| entry.seq);
                Err(SqliteFailure::bad_step(format!(
                    "its first entry is {first}, the next one is {own}"
                )))
            }
        }
    }

    /// Performs the step's operations and stores their results, with their calls and with the
    /// step.
    fn operate(
        &self,
        step: &Step,
        mut transaction: WriteTransaction<'_>,
    ) -> Result<Committed, SqliteFailure> {
        let mut committed = Committed::default();
        for operation in &step.operations {
            committed
                .results
                .push(operation::perform(&mut transaction, &operation.op)?);
        }
        let mut calls: BTreeMap<CallKey, Vec<&OpResult>> = BTreeMap::new();
        for (operation, result) in step.operations.iter().zip(&committed.results) {
            if let Some(key) = operation.call {
                calls.entry(key).or_default().push(result);
            }
        }
        for (key, results) in calls {
            self.operated(key, &results)?;
        }
        let sql = "UPDATE agent SET result = ?3 WHERE realm = ?1 AND id = ?2";
        let result = result(&committed)?;
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.realm, self.agent, result])?;
        Ok(committed)
    }

    fn operated(&self, key: CallKey, results: &[&OpResult]) -> Result<(), SqliteFailure> {
        let sql =
            "UPDATE call SET operated = ?5 WHERE realm = ?1 AND agent = ?2 AND seq = ?3 AND ordinal = ?4
                       AND content IS NULL AND operated IS NULL";
        let key_and_results = params![
            self.realm,
            self.agent,
            column::bits(key.seq),
            key.ordinal,
            column::json(&results)?
        ];
        match self
            .connection
            .prepare_cached(sql)?
            .execute(key_and_results)?
        {
            0 => {
                let call = format_args!("call {} of entry {}", key.ordinal, key.seq);
                Err(SqliteFailure::bad_step(format!(
                    "{call} was not asked for, or has its outcome or operations"
                )))
            }
            _ => Ok(()),
        }
    }

    fn entry(
        &self,
        entry: &NewEntry,
        seq: u64,
        reserved: Option<&Charge>,
    ) -> Result<(), SqliteFailure> {
        if entry.seq != seq {
            return Err(SqliteFailure::bad_step(format!(
                "entry {} stands where {seq} belongs",
                entry.seq
            )));
        }
        let reply = columns::facts(entry.reply.as_ref(), reserved)
            .map_err(|error| SqliteFailure::bad_step(error.to_string()))?;
        let head = entry
            .head
            .as_ref()
            .map(|head| content::keep(self.connection, self.realm, head));
        let loaded = entry
            .loaded
            .as_ref()
            .map(|loaded| content::keep(self.connection, self.realm, loaded));
        let sql = "INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, bytes, head, loaded)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.realm,
            self.agent,
            column::bits(seq),
            column::kind(entry.kind),
            self.at_ms,
            column::bits(entry.checksum),
            entry.encoded.mark_at.map(|at| at as i64),
            reply,
            &entry.encoded.bytes[..],
            head.transpose()?,
            loaded.transpose()?,
        ])?;
        Ok(())
    }

    fn call(&self, CallChange { key, change }: &CallChange) -> Result<(), SqliteFailure> {
        let (realm, agent, seq, ordinal) =
            (self.realm, self.agent, column::bits(key.seq), key.ordinal);
        let changed = match change {
            CallChangeKind::Asked { id, tool, tier } => {
                let sql = "INSERT INTO call (realm, agent, seq, ordinal, id, tool, begun, tier)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)";
                let tier = tier.map(Tier::as_str);
                self.connection
                    .prepare_cached(sql)?
                    .execute(params![realm, agent, seq, ordinal, id, tool, tier])?
            }
            CallChangeKind::Begun { tier } => {
                let sql = "UPDATE call SET begun = 1, tier = coalesce(?5, tier)
                           WHERE realm = ?1 AND agent = ?2 AND seq = ?3 AND ordinal = ?4";
                let tier = tier.map(Tier::as_str);
                self.connection
                    .prepare_cached(sql)?
                    .execute(params![realm, agent, seq, ordinal, tier])?
            }
            CallChangeKind::Done(outcome) => {
                let sql =
                    "UPDATE call SET is_error = ?5, content = ?6 WHERE realm = ?1 AND agent = ?2
                               AND seq = ?3 AND ordinal = ?4 AND content IS NULL";
                let (is_error, content) = (outcome.is_error, column::json(&outcome.content)?);
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![realm, agent, seq, ordinal, is_error, content])?
            }
        };
        let call = format_args!("call {} of entry {}", key.ordinal, key.seq);
        match changed {
            0 => Err(SqliteFailure::bad_step(format!(
                "{call} was not asked for, or has its outcome"
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns the stored form of a step's result; usually `None`.
fn result(committed: &Committed) -> Result<Option<String>, SqliteFailure> {
    if *committed == Committed::default() {
        Ok(None)
    } else {
        column::json(committed).map(Some)
    }
}

/// Returns true if the step adds this entry.
fn brings(step: &Step, entry: u64) -> bool {
    step.entries.iter().any(|new| new.seq == entry)
}
