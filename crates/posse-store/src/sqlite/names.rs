//! What people can name in a store, for completion on a command line.
//!
//! It is read without becoming a host: nothing is written, created or waited for. What cannot be
//! read is left out, because a person who presses a key has no use for an error.

use std::path::Path;

use posse_protocol::AgentId;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};

use super::{column, schema};
use crate::columns::ids_with;

/// Something that can be named, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredName {
    /// The word to type.
    pub name: String,
    /// What stands behind it, possibly empty.
    pub about: String,
}

/// A session that can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSession {
    /// Its main agent.
    pub agent: AgentId,
    /// Time of its last step, in milliseconds of Unix time.
    pub used_ms: i64,
    /// Its first prompt, as sent.
    pub first_prompt: Option<Vec<u8>>,
}

/// A store that is only read, and only for names.
pub struct StoredNames {
    connection: Connection,
}

/// The session of a directory that was used last.
const NEWEST: &str = "SELECT realm FROM agent WHERE parent IS NULL AND cwd = ?1
    ORDER BY used_ms DESC, id DESC LIMIT 1";

/// Root agents, the one used last first: the directory is parameter 1, the ids 2 and 3, the limit 4.
const SESSIONS: &str = "SELECT id, used_ms,
        (SELECT bytes FROM entry WHERE entry.realm = agent.realm AND entry.agent = prompt_agent
             AND seq = prompt_seq)
    FROM agent WHERE parent IS NULL AND cwd = ?1 AND +id BETWEEN ?2 AND ?3
    ORDER BY used_ms DESC, id DESC LIMIT ?4";

impl StoredNames {
    /// Opens the store in the file `path`. Returns `None` if there is none that this posse knows.
    pub fn open(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        // Without a log the file is complete in itself. Anything but `immutable` would make files
        // beside it, in which readers tell writers what they read.
        let is_whole = std::fs::metadata(&log).map_or(true, |log| log.len() == 0);
        let mode = if is_whole { "immutable=1" } else { "mode=ro" };
        let escaped = path.to_str()?.replace('%', "%25").replace('#', "%23");
        let address = format!("file:{}?{mode}", escaped.replace('?', "%3f"));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(address, flags).ok()?;
        let is_known = schema::version(&connection).ok()? == schema::KNOWN;
        is_known.then_some(Self { connection })
    }

    /// Returns sessions whose id begins with `prefix`, those of a directory first, and of others
    /// only if nothing else fits; the last used one first.
    pub fn sessions(&self, cwd: &Path, prefix: &str, limit: usize) -> Vec<NamedSession> {
        let Some((first, last)) = ids_with(prefix) else {
            return Vec::new();
        };
        let session = |row: &Row<'_>| {
            Ok(NamedSession {
                agent: column::id(row, 0)?.into(),
                used_ms: row.get(1)?,
                first_prompt: row.get(2)?,
            })
        };
        let (first, last) = (first.into_bytes(), last.into_bytes());
        let values = params![column::path(cwd), first, last, column::most(limit)];
        let here = self.read(SESSIONS, values, session);
        if !here.is_empty() {
            return here;
        }
        let anywhere = SESSIONS.replace("cwd = ?1", "?1 IS NULL");
        let values = params![None::<Vec<u8>>, first, last, column::most(limit)];
        self.read(&anywhere, values, session)
    }

    /// Returns the named agents of the session of a directory that was used last.
    pub fn agents(&self, cwd: &Path) -> Vec<StoredName> {
        let sql = "SELECT name, coalesce(description, agent_type, '') FROM agent
                   WHERE realm = ?1 AND name IS NOT NULL ORDER BY name";
        match self.newest(cwd) {
            Some(realm) => self.read(sql, [realm], named),
            None => Vec::new(),
        }
    }

    /// Returns the names of all teams, the newest first.
    pub fn teams(&self) -> Vec<StoredName> {
        let sql = "SELECT name, description FROM team GROUP BY name ORDER BY max(created_ms) DESC";
        self.read(sql, [], named)
    }

    /// Returns the members of the newest team of a name, or of all teams.
    pub fn members(&self, team: Option<&str>) -> Vec<StoredName> {
        let sql = "SELECT name, coalesce(role, agent_type) || ' of team ' || team FROM member
                   WHERE (?1 IS NULL OR team = ?1 AND realm = ?2) GROUP BY name ORDER BY nth, name";
        let realm = team.and_then(|team| self.realm(team));
        self.read(sql, params![team, realm], named)
    }

    /// Returns the tasks of the newest team of a name, or else of the session of a directory that
    /// was used last, with those of its teams.
    pub fn tasks(&self, cwd: &Path, team: Option<&str>) -> Vec<StoredName> {
        let realm = match team {
            Some(team) => self.realm(team),
            None => self.newest(cwd),
        };
        let sql = "SELECT CAST(id AS TEXT), subject FROM task
                   WHERE realm = ?1 AND (?2 IS NULL OR team = ?2) AND status <> 3 ORDER BY team, id";
        self.read(sql, params![realm, team], named)
    }

    /// Returns what waits for an answer of a person, the oldest first.
    pub fn requests(&self) -> Vec<StoredName> {
        let id = |row: &Row<'_>| {
            Ok(StoredName {
                name: column::id(row, 0)?.to_string(),
                about: row.get(1)?,
            })
        };
        let sql = "SELECT id, coalesce(json_extract(question, '$.tool'), 'question') FROM question
                   WHERE state = 0 ORDER BY asked_ms, id";
        let mut found = self.read(sql, [], id);
        let sql = "SELECT id, kind || ' of ' || asker_name FROM request ORDER BY asked_ms, id";
        found.extend(self.read(sql, [], id));
        found
    }

    /// Returns the realm of the newest team of a name.
    fn realm(&self, team: &str) -> Option<[u8; 16]> {
        let sql = "SELECT realm FROM team WHERE name = ?1 ORDER BY created_ms DESC LIMIT 1";
        self.one(sql, [team])
    }

    fn newest(&self, cwd: &Path) -> Option<[u8; 16]> {
        self.one(NEWEST, [column::path(cwd)])
    }

    fn one(&self, sql: &str, values: impl Params) -> Option<[u8; 16]> {
        let found = self.connection.query_row(sql, values, |row| row.get(0));
        found.optional().ok().flatten()
    }

    fn read<T>(
        &self,
        sql: &str,
        values: impl Params,
        of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Vec<T> {
        let Ok(mut statement) = self.connection.prepare(sql) else {
            return Vec::new();
        };
        let rows = statement.query_map(values, of);
        rows.map_or_else(|_| Vec::new(), |rows| rows.flatten().collect())
    }
}

fn named(row: &Row<'_>) -> rusqlite::Result<StoredName> {
    let (name, about) = (row.get(0)?, row.get(1)?);
    Ok(StoredName { name, about })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Sqlite;
    use super::*;

    /// Two sessions of /here, one of /there; a team of two in the older one of /here, with a task.
    const ROWS: &str = "
        INSERT INTO agent (realm, id, epoch, own, state, used_ms, mode, inherited, path, model,
            dialect, cwd, preamble, created_ms, prompt_agent, prompt_seq)
        VALUES (ID 1, ID 1, 0, 1, 0, 50, 'default', 0, '/main', 'm', 'd', CAST('/here' AS BLOB), x'', 1, ID 1, 0),
            (ID 2, ID 2, 0, 1, 0, 60, 'default', 0, '/main', 'm', 'd', CAST('/here' AS BLOB), x'', 1, NULL, NULL),
            (ID 3, ID 3, 0, 1, 0, 70, 'default', 0, '/main', 'm', 'd', CAST('/there' AS BLOB), x'', 1, NULL, NULL);
        INSERT INTO agent (realm, id, epoch, own, state, used_ms, mode, inherited, path, model,
            dialect, cwd, preamble, created_ms, parent, name, description)
        VALUES (ID 2, ID 9, 0, 1, 0, 10, 'default', 0, '/main/a', 'm', 'd', x'', x'', 1, ID 2, 'scout', 'find it');
        INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, bytes)
        VALUES (ID 1, ID 1, 0, 0, 1, 0, CAST('first words' AS BLOB));
        INSERT INTO team VALUES (ID 1, 'web', ID 1, 5, 5, 'makes the web', '{}');
        INSERT INTO member VALUES
            (ID 1, 'web', 'team-lead', 0, ID 1, '', 'm', '', 'blue', '', x'2f', 5, NULL, NULL),
            (ID 1, 'web', 'ann', 1, ID 4, 'Explore', 'm', '', 'blue', '', x'2f', 5, 'dev', NULL);
        INSERT INTO task VALUES (ID 1, 'web', 7, 0, 0, NULL, NULL, NULL, 1, 5, 5, 'fix it', NULL, '{}', '', NULL, NULL),
            (ID 1, 'web', 8, 3, 0, NULL, NULL, NULL, 1, 5, 5, 'deleted', NULL, '{}', '', NULL, NULL);
        INSERT INTO question VALUES (ID 2, ID 6, ID 2, 0, 0, 0, 5, NULL, '{\"tool\": \"Bash\"}', NULL);
        INSERT INTO request VALUES (ID 1, ID 5, 'web', 'plan', ID 4, 'ann', ID 1, 1, 5, '');";

    fn files(directory: &Path) -> Vec<(String, u64)> {
        let found = fs::read_dir(directory).unwrap().flatten();
        let mut found: Vec<_> = found
            .filter(|file| file.path().is_file())
            .map(|file| {
                let name = file.file_name().to_string_lossy().into_owned();
                (name, file.metadata().unwrap().len())
            })
            .collect();
        found.sort();
        found
    }

    fn words(names: Vec<StoredName>) -> Vec<String> {
        let word = |it: StoredName| format!("{}: {}", it.name, it.about);
        names.into_iter().map(word).collect()
    }

    #[test]
    fn what_can_be_named_is_read_and_no_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a #%1 store.db");
        drop(Sqlite::open(&path).unwrap());
        let rows = with_ids(ROWS);
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch(&rows).unwrap();
        // Once with a log beside the file, as while posse runs, and once without.
        let mut writer = Some(writer);
        for is_open in [true, false] {
            if !is_open {
                drop(writer.take());
            }
            let before = files(directory.path());
            let has_log = before
                .iter()
                .any(|(name, size)| name.ends_with("-wal") && *size > 0);
            assert_eq!(has_log, is_open, "{before:?}");
            let names = StoredNames::open(&path).unwrap();
            let here = Path::new("/here");
            let ids = |cwd: &str, prefix: &str| -> Vec<i64> {
                let found = names.sessions(Path::new(cwd), prefix, 9);
                found.iter().map(|session| session.used_ms).collect()
            };
            assert_eq!(ids("/here", ""), [60, 50]);
            assert_eq!(ids("/there", ""), [70]);
            assert_eq!(
                ids("/nowhere", ""),
                [70, 60, 50],
                "all, if none is of the place"
            );
            assert_eq!(ids("/here", "00000000-0000-0000-0000-000000000003"), [70]);
            assert_eq!(ids("/here", "no id"), [0_i64; 0]);
            let first = names.sessions(here, "00000000-0000-0000-0000-000000000001", 9);
            assert_eq!(first[0].first_prompt.as_deref(), Some(&b"first words"[..]));
            assert_eq!(words(names.agents(here)), ["scout: find it"]);
            assert_eq!(words(names.teams()), ["web: makes the web"]);
            let members = ["team-lead:  of team web", "ann: dev of team web"];
            assert_eq!(words(names.members(None)), members);
            assert_eq!(words(names.members(Some("web"))), members);
            assert_eq!(words(names.members(Some("other"))), [""; 0]);
            assert_eq!(words(names.tasks(here, Some("web"))), ["7: fix it"]);
            assert_eq!(words(names.tasks(here, None)), [""; 0]);
            assert_eq!(
                words(names.requests()),
                [
                    "00000000-0000-0000-0000-000000000006: Bash",
                    "00000000-0000-0000-0000-000000000005: plan of ann"
                ]
            );
            drop(names);
            assert_eq!(files(directory.path()), before);
        }
    }

    /// Replaces `ID n` by a blob.
    fn with_ids(sql: &str) -> String {
        let mut parts = sql.split("ID ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |made, part| {
            let digits = part.chars().take_while(char::is_ascii_digit).count();
            let (number, rest) = part.split_at(digits);
            format!("{made}x'{:032x}'{rest}", number.parse::<u128>().unwrap())
        })
    }

    #[test]
    fn what_is_not_a_store_of_this_posse_has_no_names() {
        let directory = tempfile::tempdir().unwrap();
        assert!(StoredNames::open(&directory.path().join("none.db")).is_none());
        assert!(StoredNames::open(directory.path()).is_none());
        let text = directory.path().join("text.db");
        fs::write(&text, "not a database").unwrap();
        assert!(StoredNames::open(&text).is_none());
        let newer = directory.path().join("newer.db");
        drop(Sqlite::open(&newer).unwrap());
        let connection = Connection::open(&newer).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(StoredNames::open(&newer).is_none());
    }
}
