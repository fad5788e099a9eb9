//! Integrity check of a store's file.

use std::path::Path;

use posse_port::in_a_line;
use posse_port::model::Encoded;
use posse_port::store::{StoreError, checksum, with_loaded};
use rusqlite::{Connection, Row, Transaction};
use uuid::Uuid;

use super::super::column;
use super::super::content::{self, Hash};
use super::super::error::SqliteFailure;
use super::{TABLES, open};
use crate::maintain::{EntryLink, HEAD, Health, LOADED, NAMED};

/// Checks the file, the checksums of every transcript, and the rules between rows. `told` is
/// called with what is being checked. It blocks nobody.
pub fn check(path: &Path, told: &mut dyn FnMut(&str)) -> Result<Health, StoreError> {
    let (place, connection) = open(path)?;
    let mut health = Health::default();
    match look(&connection, &mut health, told) {
        Ok(()) => Ok(health),
        Err(failure) if health.faults.is_empty() => Err(failure.at(&place)),
        // In a file that is known to be damaged it is expected that not everything can be read.
        Err(failure) => {
            health.faults.push(format!(
                "the rest cannot be checked: {}",
                in_a_line(&failure.at(&place))
            ));
            Ok(health)
        }
    }
}

fn look(
    connection: &Connection,
    health: &mut Health,
    told: &mut dyn FnMut(&str),
) -> Result<(), SqliteFailure> {
    let snapshot = connection.unchecked_transaction()?;
    told("the file");
    integrity(&snapshot, health)?;
    told("transcripts");
    for (counted, table) in [
        (&mut health.agents, "agent"),
        (&mut health.teams, "team"),
        (&mut health.tasks, "task"),
        (&mut health.messages, "mail"),
    ] {
        *counted = count(&snapshot, &format!("SELECT count(*) FROM {table}"))?;
    }
    health.misplaced = count(&snapshot, MISPLACED)?;
    contents(&snapshot, health)?;
    transcripts(&snapshot, health, told)?;
    told("what belongs together");
    for (what, sql) in RULES {
        rule(&snapshot, what, sql, health)?;
    }
    for table in TABLES
        .iter()
        .filter(|table| ["segment", "call", "charge", "total", "seen", "run"].contains(table))
    {
        let sql = format!(
            "SELECT DISTINCT hex(it.agent) AS agent FROM {table} it
             WHERE NOT EXISTS (SELECT 1 FROM agent WHERE agent.realm = it.realm AND agent.id = it.agent)"
        );
        rule(
            &snapshot,
            &format!("rows of {table} belong to no agent ({GARBAGE})"),
            &sql,
            health,
        )?;
    }
    Ok(())
}

/// Counts agents whose ids do not end like those of their realms: the last 12 bits.
const MISPLACED: &str =
    "SELECT count(*) FROM agent WHERE substr(hex(id), -3) <> substr(hex(realm), -3)";

/// The advice for rows that an interrupted removal leaves.
const GARBAGE: &str = "`posse store gc` removes them";

fn count(snapshot: &Transaction<'_>, sql: &str) -> Result<u64, SqliteFailure> {
    Ok(column::from_bits(
        snapshot.query_row(sql, [], |row| row.get(0))?,
    ))
}

/// Adds the faults that SQLite itself finds.
fn integrity(snapshot: &Transaction<'_>, health: &mut Health) -> Result<(), SqliteFailure> {
    let mut statement = snapshot.prepare("PRAGMA integrity_check")?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    for line in found {
        // SQLite reports several faults in one text, under a title.
        let line = line?;
        let faults = line
            .lines()
            .filter(|line| *line != "ok" && !line.starts_with("*** in database"));
        health
            .faults
            .extend(faults.map(|fault| format!("the file: {fault}")));
    }
    Ok(())
}

/// Verifies that every shared content matches its hash.
fn contents(snapshot: &Transaction<'_>, health: &mut Health) -> Result<(), SqliteFailure> {
    let mut statement = snapshot.prepare("SELECT realm, hash, mark_at, bytes FROM preamble")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let realm =
            column::id(row, 0).map_or_else(|_| "without an id".into(), |realm| realm.to_string());
        if !is_named(row).unwrap_or(false) {
            health.faults.push(format!(
                "the shared content of the agents of session {realm} is damaged"
            ));
        }
    }
    Ok(())
}

fn is_named(row: &Row<'_>) -> rusqlite::Result<bool> {
    let hash: Hash = row.get(1)?;
    Ok(content::name(row.get_ref(3)?.as_blob()?, column::mark(row, 2)?) == hash)
}

/// Verifies the chain of checksums of every transcript, with one entry in memory at a time.
fn transcripts(
    snapshot: &Transaction<'_>,
    health: &mut Health,
    told: &mut dyn FnMut(&str),
) -> Result<(), SqliteFailure> {
    let sql = "SELECT agent, seq, kind, checksum, bytes, realm, head, loaded FROM entry ORDER BY realm, agent, seq";
    let mut statement = snapshot.prepare(sql)?;
    let mut rows = statement.query([])?;
    let (mut current, mut chain, mut next, mut broken) = (None, 0, 0, false);
    let mut heads = SqliteCheckedHeads {
        snapshot,
        last: None,
    };
    while let Some(row) = rows.next()? {
        let agent = column::id(row, 0).ok();
        if current != Some(agent) {
            (current, chain, next, broken) = (Some(agent), 0, 0, false);
        }
        health.entries += 1;
        if health.entries.is_multiple_of(100_000) {
            told(&format!("transcripts: {} entries", health.entries));
        }
        if broken {
            continue;
        }
        // A row with columns that cannot be interpreted counts as damage, too.
        match heads.link(row, chain, next).unwrap_or(EntryLink::Broken) {
            EntryLink::Whole(checksum) if agent.is_some() => (chain, next) = (checksum, next + 1),
            link => {
                let agent =
                    agent.map_or_else(|| "an agent without an id".into(), |id| id.to_string());
                let why = match link {
                    EntryLink::Lacks(what) => format!(": {what} is missing"),
                    _ => String::new(),
                };
                health.faults.push(format!(
                    "the transcript of {agent} is damaged at entry {next}{why}"
                ));
                broken = true;
            }
        }
    }
    Ok(())
}

/// A cache of the content that entries begin with. Only the last one is kept: siblings that share
/// it usually follow each other.
struct SqliteCheckedHeads<'a> {
    snapshot: &'a Transaction<'a>,
    last: Option<(Uuid, Hash, Encoded)>,
}

impl SqliteCheckedHeads<'_> {
    /// Compares an entry with the link of the chain that is expected next.
    fn link(&mut self, row: &Row<'_>, chain: u64, next: u64) -> rusqlite::Result<EntryLink> {
        let (seq, stored) = (
            column::from_bits(row.get(1)?),
            column::from_bits(row.get(3)?),
        );
        let Some(kind) = column::kind_from(row.get(2)?) else {
            return Ok(EntryLink::Broken);
        };
        let mut shared = [None, None];
        for ((at, what), found) in [(6, HEAD), (7, LOADED)].into_iter().zip(&mut shared) {
            if let Some(hash) = row.get(at)? {
                match self.find(column::id(row, 5)?, hash)? {
                    None => return Ok(EntryLink::Lacks(what)),
                    Some(content) => *found = Some(content.clone()),
                }
            }
        }
        let [head, loaded] = &shared;
        let head = head.as_ref().map(AsRef::as_ref);
        let expected = checksum(chain, seq, kind, head, row.get_ref(4)?.as_blob()?);
        let expected = with_loaded(expected, loaded.as_ref());
        Ok(if seq == next && expected == stored {
            EntryLink::Whole(stored)
        } else {
            EntryLink::Broken
        })
    }

    fn find(&mut self, realm: Uuid, hash: Hash) -> rusqlite::Result<Option<&Encoded>> {
        if self
            .last
            .as_ref()
            .is_none_or(|(of, named, _)| (*of, *named) != (realm, hash))
        {
            let found = content::find(self.snapshot, realm.as_bytes(), hash)?;
            self.last = found.map(|encoded| (realm, hash, encoded));
        }
        Ok(self.last.as_ref().map(|(_, _, encoded)| encoded))
    }
}

/// Reports what breaks a rule: each row of `sql` says who and where, the names of its columns
/// what that is.
fn rule(
    snapshot: &Transaction<'_>,
    what: &str,
    sql: &str,
    health: &mut Health,
) -> Result<(), SqliteFailure> {
    let mut statement = snapshot.prepare(sql)?;
    let titles: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        found += 1;
        if found <= NAMED {
            let mut words = Vec::new();
            for (at, title) in titles.iter().enumerate() {
                words.extend(word(row, at)?.map(|word| format!("{title} {word}")));
            }
            health.faults.push(format!("{what}: {}", words.join(", ")));
        }
    }
    if found > NAMED {
        health
            .faults
            .push(format!("{what}: {} more", found - NAMED));
    }
    Ok(())
}

/// Returns a cell for people. `None` if it is empty, such as the team of a session's own list.
fn word(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        rusqlite::types::ValueRef::Integer(number) => Some(number.to_string()),
        rusqlite::types::ValueRef::Text(text) if !text.is_empty() => {
            let text = String::from_utf8_lossy(text).into_owned();
            let id = Some(&text)
                .filter(|text| text.len() == 32)
                .and_then(|hex| Uuid::parse_str(hex).ok());
            Some(id.map_or(text, |id| id.to_string()))
        }
        _ => None,
    })
}

/// The rules between rows: a description of each fault, and a query for the rows that have it.
const RULES: [(&str, &str); 30] = [
    (
        "an agent's number of entries is wrong",
        "SELECT hex(id) AS agent, own AS counted FROM agent WHERE own <>
             (SELECT count(*) FROM entry WHERE realm = agent.realm AND entry.agent = agent.id)",
    ),
    (
        "entries belong to no agent (`posse store gc` removes them)",
        "SELECT DISTINCT hex(agent) AS agent FROM entry it
         WHERE NOT EXISTS (SELECT 1 FROM agent WHERE agent.realm = it.realm AND agent.id = it.agent)",
    ),
    (
        "an agent's preamble is missing",
        "SELECT hex(id) AS agent FROM agent WHERE NOT EXISTS
             (SELECT 1 FROM preamble WHERE preamble.realm = agent.realm AND hash = agent.preamble)",
    ),
    (
        "an agent's inherited entries do not match its segments",
        "SELECT hex(id) AS agent, inherited AS counted FROM agent WHERE inherited <>
             (SELECT coalesce(sum(beyond - first), 0) FROM segment
              WHERE segment.realm = agent.realm AND segment.agent = agent.id)",
    ),
    (
        "a segment names entries that do not exist",
        "SELECT hex(agent) AS agent, ordinal AS segment FROM segment WHERE first > beyond OR beyond >
             (SELECT coalesce(max(seq) + 1, 0) FROM entry
              WHERE entry.realm = segment.realm AND entry.agent = source)
             OR NOT EXISTS (SELECT 1 FROM agent WHERE agent.realm = segment.realm AND id = source)",
    ),
    (
        "a segment begins with an entry that does not stand for those before it",
        "SELECT hex(agent) AS agent, ordinal AS segment FROM segment WHERE first > 0 AND NOT EXISTS
             (SELECT 1 FROM entry WHERE entry.realm = segment.realm AND entry.agent = source
              AND seq = first AND kind = 4)",
    ),
    (
        "an agent's last compaction is wrong",
        "SELECT hex(id) AS agent, since AS entry FROM agent WHERE since IS NOT
             (SELECT max(seq) FROM entry WHERE entry.realm = agent.realm AND entry.agent = agent.id
              AND kind = 4)",
    ),
    (
        "a call names an entry that is not a reply",
        "SELECT hex(agent) AS agent, seq AS entry FROM call WHERE NOT EXISTS
             (SELECT 1 FROM entry WHERE entry.realm = call.realm AND entry.agent = call.agent
              AND entry.seq = call.seq AND kind = 2)",
    ),
    (
        "a sub-agent's parent does not exist",
        "SELECT hex(id) AS agent FROM agent WHERE parent IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM agent it WHERE it.realm = agent.realm AND it.id = agent.parent)",
    ),
    (
        "a sub-agent was made by a call that its parent did not make",
        "SELECT hex(id) AS agent, call_seq AS entry FROM agent WHERE call_id <> '' AND NOT EXISTS
             (SELECT 1 FROM call WHERE call.realm = agent.realm AND call.agent = agent.parent
              AND seq = call_seq AND ordinal = call_ordinal AND call.id = call_id)",
    ),
    (
        "the agent to notify of an agent's end does not exist",
        "SELECT hex(id) AS agent FROM agent WHERE starter IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM agent it WHERE it.realm = agent.realm AND it.id = agent.starter)",
    ),
    (
        "an agent's state is invalid, or does not match its last run",
        "SELECT hex(id) AS agent, state FROM agent WHERE state NOT BETWEEN 0 AND 8
             OR (ended IS NOT NULL AND (state IN (1, 3, 4) OR NOT json_valid(ended)))",
    ),
    (
        "a root is registered under a name",
        "SELECT hex(id) AS agent, name FROM agent WHERE name IS NOT NULL AND parent IS NULL",
    ),
    (
        "a command was begun by a call that its agent did not make",
        "SELECT hex(agent) AS agent, call_seq AS entry FROM run WHERE call_seq IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM call WHERE call.realm = run.realm AND call.agent = run.agent
              AND seq = call_seq AND ordinal = call_ordinal)",
    ),
    (
        "a total does not match its charges",
        "SELECT hex(agent) AS agent, model FROM total WHERE calls <>
             (SELECT count(*) FROM charge WHERE charge.realm = total.realm AND charge.agent = total.agent
              AND charge.model = total.model AND charge.purpose = total.purpose)
         UNION SELECT hex(agent), model FROM charge WHERE NOT EXISTS
             (SELECT 1 FROM total WHERE total.realm = charge.realm AND total.agent = charge.agent
              AND total.model = charge.model AND total.purpose = charge.purpose)",
    ),
    (
        "an inbox has a wrong message count",
        "SELECT hex(agent) AS agent, waiting AS counted FROM inbox WHERE waiting <>
             (SELECT count(*) FROM mail WHERE mail.realm = inbox.realm AND recipient = agent
              AND entry IS NULL)",
    ),
    (
        "an inbox has a wrong size",
        "SELECT hex(agent) AS agent, bytes AS counted FROM inbox WHERE bytes <>
             (SELECT coalesce(sum(octet_length(summary) + octet_length(body)), 0) FROM mail
              WHERE mail.realm = inbox.realm AND recipient = agent AND entry IS NULL)",
    ),
    (
        "an inbox holds a message with a number that it has not given",
        "SELECT hex(agent) AS agent, last AS \"last given\" FROM inbox WHERE last <
             (SELECT coalesce(max(number), 0) FROM mail WHERE mail.realm = inbox.realm
              AND recipient = agent)",
    ),
    (
        "mail lies in no inbox (`posse store gc` removes it if its session is gone)",
        "SELECT DISTINCT hex(recipient) AS agent FROM mail WHERE NOT EXISTS
             (SELECT 1 FROM inbox WHERE inbox.realm = mail.realm AND inbox.agent = mail.recipient)",
    ),
    (
        "an inbox is held by something other than its agent",
        "SELECT hex(inbox.agent) AS agent FROM inbox JOIN agent ON agent.realm = inbox.realm AND agent.id = inbox.agent
         WHERE inbox.host IS NOT agent.host",
    ),
    (
        "a list has a task with a number that it has not given",
        "SELECT hex(realm) AS session, team, last AS \"last given\" FROM list WHERE last <
             (SELECT coalesce(max(id), 0) FROM task WHERE task.realm = list.realm AND task.team = list.team)",
    ),
    (
        "a task is in no list (`posse store gc` removes what it left)",
        "SELECT hex(realm) AS session, team, id AS task FROM task WHERE NOT EXISTS
             (SELECT 1 FROM list WHERE list.realm = task.realm AND list.team = task.team)",
    ),
    (
        "a task has a wrong count of the tasks it waits for",
        "SELECT hex(realm) AS session, team, id AS task FROM task WHERE waits <>
             (SELECT count(*) FROM dependency d JOIN task needed ON needed.realm = d.realm
                  AND needed.team = d.team AND needed.id = d.needs AND needed.status < 2
              WHERE d.realm = task.realm AND d.team = task.team AND d.task = task.id)",
    ),
    (
        "a task waits for one that is not there, or is not there itself",
        "SELECT hex(realm) AS session, team, task, needs AS \"which waits for\" FROM dependency d
         WHERE NOT EXISTS (SELECT 1 FROM task WHERE task.realm = d.realm AND task.team = d.team AND id = d.task)
            OR NOT EXISTS (SELECT 1 FROM task WHERE task.realm = d.realm AND task.team = d.team AND id = d.needs)",
    ),
    (
        "a task is in progress, but no process hosts its agent",
        "SELECT hex(task.realm) AS session, team, task.id AS task, owner FROM task
         JOIN agent ON agent.realm = task.realm AND agent.id = owner_agent
         WHERE status = 1 AND agent.host IS NULL",
    ),
    (
        "a team's lead is not a member of it",
        "SELECT hex(realm) AS session, name AS team FROM team WHERE NOT EXISTS
             (SELECT 1 FROM member WHERE member.realm = team.realm AND member.team = team.name
              AND member.agent = team.lead)",
    ),
    (
        "a member has no team, or no inbox",
        "SELECT hex(realm) AS session, team, name AS member FROM member
         WHERE NOT EXISTS (SELECT 1 FROM team WHERE team.realm = member.realm AND team.name = member.team)
            OR NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.realm = member.realm
                           AND inbox.agent = member.agent)",
    ),
    (
        "a member's name could be given again",
        "SELECT hex(realm) AS session, team, name AS member FROM member
         WHERE name <> 'team-lead' AND NOT EXISTS (SELECT 1 FROM used_name used
             WHERE used.realm = member.realm AND used.team = member.team AND used.name = member.name)",
    ),
    (
        "an open request cannot be answered by any member of its team",
        "SELECT hex(realm) AS session, team, hex(id) AS request FROM request WHERE NOT EXISTS
             (SELECT 1 FROM member WHERE member.realm = request.realm AND member.team = request.team
              AND member.agent = request.asked)",
    ),
    (
        "a session's feed has a gap",
        "SELECT hex(realm) AS session FROM feed LEFT JOIN feed_head USING (realm) GROUP BY realm
         HAVING min(number) <= max(head) OR count(*) <> max(number) - min(number) + 1",
    ),
];
