//! Creates an agent: its row, its preamble, and the segments its history begins with.

use posse_port::store::{AgentState, Birth, Committed, Origin, Segment, Step, StoreError};
use posse_protocol::{AgentId, EntryKind, Name};
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::{Changes, SqliteFailure, StepWriter, column, content};

/// The agent registered under a name in a realm.
pub(in super::super) const NAMED: &str = "SELECT id FROM agent WHERE realm = ?1 AND name = ?2";

/// The agent that has a name in any team of a realm, or null if that member has left.
pub(in super::super) const HAD: &str = "SELECT agent FROM used_name used LEFT JOIN member
        ON member.realm = used.realm AND member.team = used.team AND member.name = used.name
    WHERE used.realm = ?1 AND used.name = ?2 LIMIT 1";

impl StepWriter<'_> {
    /// Returns the result of a creation that was already committed, if this is a second try.
    pub(super) fn born_before(&self, step: &Step) -> Result<Option<Committed>, SqliteFailure> {
        if step.epoch.0 != 1 {
            return Err(SqliteFailure::bad_step(format!(
                "a birth with epoch {}",
                step.epoch.0
            )));
        }
        let sql = "SELECT epoch, step, result FROM agent WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([self.agent], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                column::maybe_id(row, 1)?,
                column::maybe_json(row, 2)?,
            ))
        });
        match found.optional()? {
            None => Ok(None),
            Some((_, last, _)) if last != Some(step.id.0) => Err(SqliteFailure::bad_step(format!(
                "agent {} is born twice",
                step.agent
            ))),
            Some((1, _, result)) => Ok(Some(result.unwrap_or_default())),
            Some(_) => Err(SqliteFailure::Refused(StoreError::Fenced {
                agent: step.agent,
            })),
        }
    }

    /// Creates the agent, held by `host` and without entries of its own.
    pub(super) fn birth(
        &self,
        birth: &Birth,
        step: &Step,
        host: Uuid,
        changes: &mut Changes,
    ) -> Result<(), SqliteFailure> {
        let origin = birth.origin.as_deref();
        if let Some(origin) = origin {
            self.may_come_from(origin)?;
        }
        let preamble = content::keep(self.connection, self.realm, &birth.preamble)?;
        let (mut inherited, mut prompt) = (0, None);
        for (ordinal, segment) in birth.segments.iter().enumerate() {
            self.segment(ordinal, segment)?;
            inherited += segment.to - segment.from;
            if prompt.is_none() {
                prompt = self.first_prompt(segment)?;
            }
        }
        let sql = "INSERT INTO agent (realm, id, epoch, own, state, used_ms, mode, inherited, prompt_agent,
                       prompt_seq, host, path, model, dialect, cwd, preamble, created_ms,
                       parent, call_seq, call_ordinal, call_id, agent_type, name, description, terms)
                   VALUES (?1, ?2, 1, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?4,
                       ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.realm,
            self.agent,
            column::state(AgentState::Idle),
            self.at_ms,
            birth.mode.as_str(),
            column::bits(inherited),
            prompt.as_ref().map(|(agent, _)| agent.as_bytes()),
            prompt.map(|(_, seq)| seq),
            host.as_bytes(),
            birth.path,
            birth.model,
            birth.dialect,
            column::path(&birth.cwd),
            // ?4 is also created_ms.
            preamble,
            origin.map(|it| it.parent.uuid().into_bytes()),
            origin.map(|it| column::bits(it.call.seq)),
            origin.map(|it| it.call.ordinal),
            origin.map(|it| &it.call_id),
            origin.map(|it| &it.agent_type),
            origin.and_then(|it| it.name.as_ref()).map(Name::as_str),
            origin.map(|it| &it.description),
            origin.map(|it| &it.terms),
        ])?;
        // An agent that joined a team before it was created already has an inbox.
        let sql = "UPDATE inbox SET host = ?3 WHERE realm = ?1 AND agent = ?2 RETURNING waiting";
        let mut statement = self.connection.prepare_cached(sql)?;
        let waiting: Option<i64> = statement
            .query_row(params![self.realm, self.agent, host.as_bytes()], |row| {
                row.get(0)
            })
            .optional()?;
        if waiting.is_some_and(|waiting| waiting > 0) {
            changes.mail(host, step.agent);
        }
        Ok(())
    }

    /// Refuses a parent of another realm, and a name that an agent has, or that a member has or
    /// had.
    fn may_come_from(&self, origin: &Origin) -> Result<(), SqliteFailure> {
        if !self.is_here(origin.parent)? {
            return Err(SqliteFailure::bad_step(format!(
                "there is no agent {} to be its parent",
                origin.parent
            )));
        }
        let Some(name) = &origin.name else {
            return Ok(());
        };
        for sql in [NAMED, HAD] {
            let mut statement = self.connection.prepare_cached(sql)?;
            let by = statement.query_row(params![self.realm, name.as_str()], |row| {
                column::maybe_id(row, 0)
            });
            if let Some(by) = by.optional()? {
                let by = by.map(AgentId::from);
                return Err(SqliteFailure::Refused(StoreError::NameTaken {
                    name: name.clone(),
                    by,
                }));
            }
        }
        Ok(())
    }

    fn segment(&self, ordinal: usize, segment: &Segment) -> Result<(), SqliteFailure> {
        let Segment { agent, from, to } = *segment;
        let source = agent.uuid();
        let sql = "SELECT own FROM agent WHERE realm = ?1 AND id = ?2";
        let found = self
            .connection
            .prepare_cached(sql)?
            .query_row(params![self.realm, source.as_bytes()], |row| {
                row.get(0).map(column::from_bits)
            })
            .optional()?;
        if from > to || found.is_none_or(|own| to > own) {
            return Err(SqliteFailure::bad_step(format!(
                "agent {agent} has no entries {from}..{to}"
            )));
        }
        if from > 0 && !self.is_compaction(source, from)? {
            return Err(SqliteFailure::bad_step(format!(
                "entry {from} of agent {agent} stands for none before it"
            )));
        }
        let sql = "INSERT INTO segment (realm, agent, ordinal, source, first, beyond)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (first, beyond) = (column::bits(from), column::bits(to));
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![
            self.realm,
            self.agent,
            ordinal as i64,
            source.as_bytes(),
            first,
            beyond
        ])?;
        Ok(())
    }

    /// Returns true if an entry replaces all entries before it.
    fn is_compaction(&self, agent: Uuid, seq: u64) -> Result<bool, SqliteFailure> {
        let sql = "SELECT 1 FROM entry WHERE realm = ?1 AND agent = ?2 AND seq = ?3 AND kind = ?4";
        let (seq, kind) = (column::bits(seq), column::kind(EntryKind::Compaction));
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.exists(params![self.realm, agent.as_bytes(), seq, kind])?)
    }

    /// Returns the position of the first prompt that a segment covers.
    fn first_prompt(&self, segment: &Segment) -> Result<Option<(Uuid, i64)>, SqliteFailure> {
        let source = segment.agent.uuid();
        if segment.from > 0 {
            let sql = "SELECT prompt_agent, prompt_seq FROM agent WHERE realm = ?1 AND id = ?2
                           AND (prompt_agent <> id OR prompt_seq < ?3)";
            let key = params![self.realm, source.as_bytes(), column::bits(segment.to)];
            let mut statement = self.connection.prepare_cached(sql)?;
            let found = statement.query_row(key, |row| Ok((column::id(row, 0)?, row.get(1)?)));
            return Ok(found.optional()?);
        }
        let sql = "SELECT seq FROM entry WHERE realm = ?1 AND agent = ?2 AND seq < ?3 AND kind = ?4
                   ORDER BY seq LIMIT 1";
        let (beyond, prompt) = (column::bits(segment.to), column::kind(EntryKind::Prompt));
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row(
            params![self.realm, source.as_bytes(), beyond, prompt],
            |row| row.get(0),
        );
        Ok(found.optional()?.map(|seq| (source, seq)))
    }
}
