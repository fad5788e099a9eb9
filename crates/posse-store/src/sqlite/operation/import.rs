//! Makes a team of an archive. What contradicts itself is refused before, or by the tables' own
//! keys.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use posse_port::store::Archive;
use posse_protocol::{AgentId, Mail, Member, Name, Sender, Task};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{Changes, SqliteFailure, USER, column};
use crate::archive;
use crate::sqlite::free;

/// Makes a team of an archive.
pub(in crate::sqlite) fn import(
    connection: &Connection,
    archive: &Archive,
    changes: &mut Changes,
) -> Result<(), SqliteFailure> {
    archive::check(archive).map_err(|error| SqliteFailure::bad_step(error.to_string()))?;
    let team = &archive.team;
    let into = Importing {
        connection,
        key: team.realm.uuid().into_bytes(),
        team: &team.name,
    };
    into.team(archive)?;
    for (nth, (member, mail)) in team.members.iter().zip(&archive.mail).enumerate() {
        into.member(nth, member)?;
        into.inbox(member.agent, mail, changes)?;
    }
    for name in team
        .members
        .iter()
        .map(|member| &member.name)
        .chain(&team.former)
    {
        into.name(name)?;
    }
    into.notes(archive)?;
    into.tasks(archive)?;
    free::claimable(connection, team.realm, Some(team.name.clone()), changes)
}

struct Importing<'a> {
    connection: &'a Connection,
    key: [u8; 16],
    team: &'a Name,
}

impl Importing<'_> {
    fn team(&self, archive: &Archive) -> Result<(), SqliteFailure> {
        let team = &archive.team;
        let sql = "INSERT OR IGNORE INTO team (realm, name, lead, created_ms, here_ms, description,
                       settings)
                   VALUES (?1, ?2, ?3, ?4, ?7, ?5, ?6)";
        // For whoever removes what is old here: by the clock of this machine.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis() as i64;
        let settings = column::json(&team.settings)?;
        let (name, lead) = (team.name.as_str(), team.lead.uuid().into_bytes());
        let made = self.connection.prepare_cached(sql)?.execute(params![
            self.key,
            name,
            lead,
            team.created_ms,
            team.description,
            settings,
            now
        ])?;
        if made == 0 {
            return Err(SqliteFailure::bad_step(format!(
                "team {} already exists",
                self.team
            )));
        }
        // An earlier team of this name may have given higher numbers.
        let sql = "INSERT INTO list (realm, team, last, changed) VALUES (?1, ?2, ?3, 0)
                   ON CONFLICT DO UPDATE SET last = max(last, excluded.last)";
        let last = column::bits(archive.last_task);
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.key, name, last])?;
        Ok(())
    }

    fn member(&self, nth: usize, member: &Member) -> Result<(), SqliteFailure> {
        let sql =
            "INSERT INTO member (realm, team, name, nth, agent, agent_type, model, prompt, color, backend,
                       cwd, joined_ms, role, takes)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.key,
            self.team.as_str(),
            member.name.as_str(),
            nth as i64,
            member.agent.uuid().as_bytes(),
            member.agent_type,
            member.model,
            member.prompt,
            member.color,
            member.backend,
            column::path(&member.cwd),
            member.joined_ms,
            member.role,
            column::takes(&member.takes)?,
        ])?;
        Ok(())
    }

    /// Notes that a name is not to be given again.
    fn name(&self, name: &Name) -> Result<(), SqliteFailure> {
        let sql = "INSERT OR IGNORE INTO used_name (realm, team, name) VALUES (?1, ?2, ?3)";
        if !name.is_reserved() {
            let key = params![self.key, self.team.as_str(), name.as_str()];
            self.connection.prepare_cached(sql)?.execute(key)?;
        }
        Ok(())
    }

    /// Makes an inbox. One that is there already keeps what it has, and gets only what it never
    /// had.
    fn inbox(
        &self,
        agent: AgentId,
        mail: &[Mail],
        changes: &mut Changes,
    ) -> Result<(), SqliteFailure> {
        let id = agent.uuid().into_bytes();
        let sql = "INSERT OR IGNORE INTO inbox (realm, agent, last, waiting, bytes, host)
                   VALUES (?1, ?2, 0, 0, 0, (SELECT host FROM agent WHERE realm = ?1 AND id = ?2))";
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.key, id])?;
        let sql = "SELECT id FROM mail WHERE realm = ?1 AND recipient = ?2";
        let known: BTreeSet<Uuid> = self
            .connection
            .prepare_cached(sql)?
            .query_map(params![self.key, id], |row| column::id(row, 0))?
            .collect::<Result<_, _>>()?;
        let sql = "UPDATE inbox SET last = last + 1, waiting = waiting + ?3, bytes = bytes + ?4
                   WHERE realm = ?1 AND agent = ?2 RETURNING last, host";
        let mut count = self.connection.prepare_cached(sql)?;
        for mail in mail.iter().filter(|mail| !known.contains(&mail.id.uuid())) {
            let waits = mail.shown_in.is_none();
            let bytes = if waits {
                mail.summary.len() + mail.body.len()
            } else {
                0
            };
            let counted = count.query_row(params![self.key, id, waits, bytes as i64], |row| {
                Ok((row.get::<_, i64>(0)?, column::maybe_id(row, 1)?))
            });
            let (number, host) = counted?;
            self.put(number, mail)?;
            if let Some(host) = host.filter(|_| waits) {
                changes.mail(host, agent);
            }
        }
        Ok(())
    }

    fn put(&self, number: i64, mail: &Mail) -> Result<(), SqliteFailure> {
        let (sender, sender_name) = match &mail.from {
            Sender::User => (None, USER),
            Sender::Agent { id, name } => (Some(id.uuid().into_bytes()), name.as_str()),
        };
        let sql = "INSERT INTO mail (realm, recipient, number, id, sender, sender_name, kind, sent_ms, entry,
                       summary, body)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.key,
            mail.to.uuid().as_bytes(),
            number,
            mail.id.uuid().as_bytes(),
            sender,
            sender_name,
            mail.kind.as_str(),
            mail.sent_ms,
            mail.shown_in.map(column::bits),
            mail.summary,
            mail.body,
        ])?;
        Ok(())
    }

    fn notes(&self, archive: &Archive) -> Result<(), SqliteFailure> {
        let sql = "INSERT INTO note (realm, team, name, version, author, written_ms, text)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut statement = self.connection.prepare_cached(sql)?;
        for note in &archive.notes {
            let version = column::bits(note.version);
            let (team, name) = (self.team.as_str(), note.name.as_str());
            statement.execute(params![
                self.key,
                team,
                name,
                version,
                note.author,
                note.written_ms,
                note.text
            ])?;
        }
        Ok(())
    }

    fn tasks(&self, archive: &Archive) -> Result<(), SqliteFailure> {
        for (task, waits) in archive::tasks(archive) {
            self.task(&task, waits)?;
        }
        Ok(())
    }

    fn task(&self, task: &Task, waits: usize) -> Result<(), SqliteFailure> {
        let (team, id) = (self.team.as_str(), column::bits(task.id.0));
        let sql = "INSERT INTO task (realm, team, id, status, waits, owner, owner_agent, lost_by, version,
                       created_ms, updated_ms, subject, active_form, metadata, description, role, check_command)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
        let agent = task.owner.as_ref().and_then(|owner| owner.agent);
        self.connection.prepare_cached(sql)?.execute(params![
            self.key,
            team,
            id,
            column::status(task.status),
            waits as i64,
            task.owner.as_ref().map(|owner| &owner.name),
            agent.map(|agent| agent.uuid().into_bytes()),
            task.lost_by,
            column::bits(task.version),
            task.created_ms,
            task.updated_ms,
            task.subject,
            task.active_form,
            column::json(&task.metadata)?,
            task.description,
            task.role,
            task.check,
        ])?;
        let sql = "INSERT INTO dependency (realm, team, task, needs) VALUES (?1, ?2, ?3, ?4)";
        let mut statement = self.connection.prepare_cached(sql)?;
        for needs in &task.blocked_by {
            statement.execute(params![self.key, team, id, column::bits(needs.0)])?;
        }
        Ok(())
    }
}
