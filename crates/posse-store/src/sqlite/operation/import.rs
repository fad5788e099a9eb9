//! Makes a team of an archive. What contradicts itself is refused before, or by the tables' own keys.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use posse_protocol::{AgentId, Mail, Member, Name, Sender, Task, TaskId, TaskStatus};
use posse_runtime::port::store::{Archive, METADATA_DEPTH, depth};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::{Failure, News, USER, column};
use crate::sqlite::free;

/// Makes a team of an archive.
pub(in crate::sqlite) fn import(
    connection: &Connection,
    archive: &Archive,
    news: &mut News,
) -> Result<(), Failure> {
    check(archive).map_err(Failure::bad_step)?;
    let team = &archive.team;
    let into = Importing { connection, key: team.realm.uuid().into_bytes(), team: &team.name };
    into.team(archive)?;
    for (nth, (member, mail)) in team.members.iter().zip(&archive.mail).enumerate() {
        into.member(nth, member)?;
        into.inbox(member.agent, mail, news)?;
    }
    for name in team.members.iter().map(|member| &member.name).chain(&team.former) {
        into.name(name)?;
    }
    into.notes(archive)?;
    into.tasks(archive)?;
    free::claimable(connection, team.realm, Some(team.name.clone()), news)
}

/// From here one can count on for ever, and every program can read it.
const MOST: u64 = 1 << 53;

/// Says what contradicts itself in an archive.
fn check(archive: &Archive) -> Result<(), String> {
    let Archive { team, tasks, last_task, mail, .. } = archive;
    if !team.members.iter().any(|member| member.agent == team.lead) {
        return Err(format!("the lead of team {} is no member of it", team.name));
    }
    let leads = |member: &Member| member.name.as_str() == Name::LEAD && member.agent == team.lead;
    if let Some(member) = team.members.iter().find(|member| member.name.is_reserved() && !leads(member)) {
        return Err(format!("a member is called {}", member.name));
    }
    if let Some(name) = team.former.iter().find(|name| name.is_reserved()) {
        return Err(format!("a member was called {name}"));
    }
    if mail.len() != team.members.len() {
        return Err(format!("{} inboxes for {} members", mail.len(), team.members.len()));
    }
    for (member, mail) in team.members.iter().zip(mail) {
        if let Some((_, mail)) = (1..).zip(mail).find(|(number, mail)| mail.number != *number) {
            return Err(format!("message {} of {} is out of order", mail.number, member.name));
        }
        if let Some(mail) = mail.iter().find(|mail| mail.to != member.agent) {
            return Err(format!("message {} of {} is for {}", mail.number, member.name, mail.to));
        }
    }
    if *last_task > MOST || tasks.iter().any(|task| task.version > MOST) {
        return Err("a number of a task or of a version is too high to count on from".into());
    }
    let deep = |task: &&Task| task.metadata.values().any(|value| depth(value) > METADATA_DEPTH);
    if let Some(task) = tasks.iter().find(deep) {
        return Err(format!("the metadata of task {} nest deeper than {METADATA_DEPTH} levels", task.id));
    }
    let mut before = 0;
    for task in tasks {
        if task.id.0 <= before || task.id.0 > *last_task {
            return Err(format!("task {} is out of order", task.id));
        }
        before = task.id.0;
    }
    check_dependencies(tasks)
}

/// Says which tasks wait for what is not there, or for each other.
fn check_dependencies(tasks: &[Task]) -> Result<(), String> {
    let mut open: BTreeMap<TaskId, usize> =
        tasks.iter().map(|task| (task.id, task.blocked_by.len())).collect();
    let mut blocks: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for task in tasks {
        for needs in &task.blocked_by {
            if !open.contains_key(needs) {
                return Err(format!("task {} waits for {needs}, which is missing", task.id));
            }
            blocks.entry(*needs).or_default().push(task.id);
        }
    }
    let mut ready: Vec<TaskId> = open.iter().filter(|(_, waits)| **waits == 0).map(|(id, _)| *id).collect();
    while let Some(done) = ready.pop() {
        open.remove(&done);
        for id in blocks.remove(&done).unwrap_or_default() {
            if let Some(waits) = open.get_mut(&id) {
                *waits -= 1;
                if *waits == 0 {
                    ready.push(id);
                }
            }
        }
    }
    match open.keys().next() {
        Some(id) => Err(format!("task {id} waits for itself in a circle")),
        None => Ok(()),
    }
}

struct Importing<'a> {
    connection: &'a Connection,
    key: [u8; 16],
    team: &'a Name,
}

impl Importing<'_> {
    fn team(&self, archive: &Archive) -> Result<(), Failure> {
        let team = &archive.team;
        let sql = "INSERT OR IGNORE INTO team (realm, name, lead, created_ms, here_ms, description,
                       settings)
                   VALUES (?1, ?2, ?3, ?4, ?7, ?5, ?6)";
        // For whoever removes what is old here: by the clock of this machine.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
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
            return Err(Failure::bad_step(format!("there is a team {} already", self.team)));
        }
        // An earlier team of this name may have given higher numbers.
        let sql = "INSERT INTO list (realm, team, last, changed) VALUES (?1, ?2, ?3, 0)
                   ON CONFLICT DO UPDATE SET last = max(last, excluded.last)";
        let last = column::bits(archive.last_task);
        self.connection.prepare_cached(sql)?.execute(params![self.key, name, last])?;
        Ok(())
    }

    fn member(&self, nth: usize, member: &Member) -> Result<(), Failure> {
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
    fn name(&self, name: &Name) -> Result<(), Failure> {
        let sql = "INSERT OR IGNORE INTO used_name (realm, team, name) VALUES (?1, ?2, ?3)";
        if !name.is_reserved() {
            let key = params![self.key, self.team.as_str(), name.as_str()];
            self.connection.prepare_cached(sql)?.execute(key)?;
        }
        Ok(())
    }

    /// Makes an inbox. One that is there already keeps what it has, and gets only what it never had.
    fn inbox(&self, agent: AgentId, mail: &[Mail], news: &mut News) -> Result<(), Failure> {
        let id = agent.uuid().into_bytes();
        let sql = "INSERT OR IGNORE INTO inbox (realm, agent, last, waiting, bytes, host)
                   VALUES (?1, ?2, 0, 0, 0, (SELECT host FROM agent WHERE realm = ?1 AND id = ?2))";
        self.connection.prepare_cached(sql)?.execute(params![self.key, id])?;
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
            let bytes = if waits { mail.summary.len() + mail.body.len() } else { 0 };
            let counted = count.query_row(params![self.key, id, waits, bytes as i64], |row| {
                Ok((row.get::<_, i64>(0)?, column::maybe_id(row, 1)?))
            });
            let (number, host) = counted?;
            self.put(number, mail)?;
            if let Some(host) = host.filter(|_| waits) {
                news.mail(host, agent);
            }
        }
        Ok(())
    }

    fn put(&self, number: i64, mail: &Mail) -> Result<(), Failure> {
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

    fn notes(&self, archive: &Archive) -> Result<(), Failure> {
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

    /// Makes the tasks; one that was being done is pending, as if its doer's host had died.
    fn tasks(&self, archive: &Archive) -> Result<(), Failure> {
        let settled: BTreeSet<TaskId> =
            archive.tasks.iter().filter(|task| task.status.is_settled()).map(|task| task.id).collect();
        for task in &archive.tasks {
            let waits = task.blocked_by.iter().filter(|id| !settled.contains(id)).count();
            match task.status {
                TaskStatus::InProgress => {
                    let lost_by = task.owner.as_ref().map(|owner| owner.name.clone());
                    let (owner, status, version) = (None, TaskStatus::Pending, task.version + 1);
                    self.task(&Task { owner, status, version, lost_by, ..task.clone() }, waits)?;
                }
                _ => self.task(task, waits)?,
            }
        }
        Ok(())
    }

    fn task(&self, task: &Task, waits: usize) -> Result<(), Failure> {
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
