//! The tables, and the migration of older files.
//!
//! A version once released is never edited: a change is another element of [`VERSIONS`].

use posse_port::store::StoreError;
use rusqlite::Connection;

use super::error::SqliteCause;
use super::host_rows;
use super::place::DatabasePlace;

/// The migration from each version to the next; the first one starts from an empty file.
const VERSIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
    include_str!("schema/10.sql"),
];

/// What the versions make of an empty file, without the way there: replaying them takes longer than
/// fifty turns of an agent.
const NEWEST: &str = include_str!("schema/newest.sql");

/// The newest version.
pub(super) const KNOWN: usize = VERSIONS.len();

/// The application id in the header of posse's files: "poss". `schema/2.sql` sets it, too.
const OURS: i32 = 0x706f_7373;

/// The program that a database belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseOwner {
    /// It is empty.
    Nobody,
    Posse,
    Another,
}

/// Migrates the tables to the version of this posse. Refuses tables of a newer posse or of
/// another program.
pub(super) fn bring_up_to_date(
    place: &DatabasePlace,
    connection: &Connection,
) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| place.failed(error);
    // First of all: nothing may be written into or beside another program's database.
    must_be_ours(place, connection)?;
    place.keep_private();
    let found = version(connection).map_err(failed)?;
    if found < VERSIONS.len() {
        must_be_unused(place, connection, found)?;
        let turnstile = place.turnstile().map_err(|error| place.failed(error))?;
        let pass = turnstile
            .as_ref()
            .map(|turnstile| turnstile.enter(place.timing.patience));
        let _pass = pass.transpose().map_err(|error| place.failed(error))?;
        migrate(connection).map_err(|error| error.at(place))?;
    }
    match version(connection).map_err(failed)? {
        found if found > VERSIONS.len() => Err(StoreError::TooNew {
            place: place.to_string(),
            found: found as u32,
            known: VERSIONS.len() as u32,
        }),
        _ => Ok(()),
    }
}

/// Refuses a database of another program. An empty one is accepted.
pub(super) fn must_be_ours(
    place: &DatabasePlace,
    connection: &Connection,
) -> Result<(), StoreError> {
    match owner(connection).map_err(|error| place.failed(error))? {
        DatabaseOwner::Nobody | DatabaseOwner::Posse => Ok(()),
        DatabaseOwner::Another => Err(SqliteCause::foreign().at(place)),
    }
}

/// Refuses to change the tables under a running posse that knows only the old ones.
fn must_be_unused(
    place: &DatabasePlace,
    connection: &Connection,
    version: usize,
) -> Result<(), StoreError> {
    // The first version had no hosts.
    if version < 2 {
        return Ok(());
    }
    let hosts = place.hosts();
    for host in host_rows::hosts(connection).map_err(|error| place.failed(error))? {
        if let Ok(Some(process)) = hosts.alive(host) {
            let why = format!(
                "an older posse ({process}) is at work in it, and this one would change its tables: \
                 end that one first"
            );
            return Err(place.failed(std::io::Error::other(why)));
        }
    }
    Ok(())
}

/// Returns the version of a file's tables; 0 if it has none.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection
        .query_row("PRAGMA user_version", [], |row| row.get::<_, u32>(0))
        .map(|it| it as usize)
}

/// Returns the program that the database belongs to, from one snapshot.
fn owner(connection: &Connection) -> rusqlite::Result<DatabaseOwner> {
    let snapshot = connection.unchecked_transaction()?;
    let mark: i32 = snapshot.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if mark == OURS {
        return Ok(DatabaseOwner::Posse);
    }
    let sql =
        "SELECT count(*), count(*) FILTER (WHERE type = 'table' AND name IN ('agent', 'preamble'))
               FROM sqlite_schema";
    let (all, known): (i64, i64) =
        snapshot.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match (mark, version(&snapshot)?, all, known) {
        (0, 0, 0, _) => DatabaseOwner::Nobody,
        // Files of version 1 have no application id, and are recognized by their tables.
        (0, 1.., _, 2) => DatabaseOwner::Posse,
        _ => DatabaseOwner::Another,
    })
}

fn migrate(connection: &Connection) -> Result<(), SqliteCause> {
    if version(connection)? == 0 {
        // The mode is stored in the file. Memory does not support it and returns another mode.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    }
    let transaction =
        rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    match version(connection)? {
        0 => transaction.execute_batch(NEWEST)?,
        found => {
            for sql in VERSIONS.iter().skip(found) {
                transaction.execute_batch(sql)?;
            }
        }
    }
    // Another process may have been faster, and newer.
    if version(connection)? < KNOWN {
        transaction.pragma_update(None, "user_version", KNOWN as u32)?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use posse_port::store::{
        AgentFilter, AgentState, Charge, Done, Op, Order, Page, Step, Store as _, checksum,
    };
    use posse_protocol::{Cost, EntryKind, Name, Purpose, RunKind, Takes, Usage};
    use tokio::runtime::Builder;
    use uuid::Uuid;

    use super::super::content;
    use super::super::error::{Trouble, trouble};
    use super::super::timing::Timing;
    use super::super::{Sqlite, maintain};
    use super::*;

    fn open(path: &Path) -> Result<Connection, StoreError> {
        let place = DatabasePlace::file(path, Timing::default())?;
        let connection = place.connect().map_err(|error| place.failed(error))?;
        bring_up_to_date(&place, &connection)?;
        Ok(connection)
    }

    fn mark(connection: &Connection) -> i32 {
        connection
            .query_row("PRAGMA application_id", [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn a_new_file_is_what_the_versions_make_of_it() {
        let made = |sql: &str| {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(sql).unwrap();
            let all = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
            let mut statement = connection.prepare(all).unwrap();
            let tables = statement
                .query_map([], |row| {
                    Ok([0, 1, 2, 3].map(|at| row.get::<_, Option<String>>(at).unwrap()))
                })
                .unwrap()
                .collect::<Result<Vec<_>, _>>()
                .unwrap();
            let last: i64 = connection
                .query_row("SELECT last FROM changes", [], |row| row.get(0))
                .unwrap();
            (mark(&connection), tables, last)
        };
        assert_eq!(made(NEWEST), made(&VERSIONS.concat()));
    }

    #[test]
    fn a_database_of_another_program_stays_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let makings = [
            "CREATE TABLE bookmark (url TEXT); PRAGMA user_version = 3;",
            "CREATE TABLE agent (id); ",
            "CREATE TABLE agent (id); CREATE TABLE preamble (id);",
            "PRAGMA application_id = 7;",
            "PRAGMA user_version = 1;",
        ];
        for (number, sql) in makings.into_iter().enumerate() {
            let path = directory.path().join(format!("{number}.db"));
            Connection::open(&path).unwrap().execute_batch(sql).unwrap();
            let before = std::fs::read(&path).unwrap();
            let error = open(&path).unwrap_err();
            assert_eq!(trouble(&error), Some(Trouble::Foreign), "{sql}: {error}");
            assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            makings.len(),
            "nothing beside them"
        );
    }

    /// Makes a file of an old version with these rows.
    fn make(path: &Path, version: usize, rows: &str) {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(&VERSIONS[..version].concat())
            .unwrap();
        connection
            .pragma_update(None, "user_version", version as u32)
            .unwrap();
        let name = u128::from_be_bytes(content::name(b"{}", None));
        let rows = rows.replace("NAME", &format!("x'{name:032x}'"));
        let rows = (0..10).fold(rows, |sql, number| {
            let id = Uuid::from_u128(number).simple().to_string();
            sql.replace(&format!("ID {number}"), &format!("x'{id}'"))
        });
        connection.execute_batch(&rows).unwrap();
        connection.close().unwrap();
    }

    /// A root with four runs, and a sub-agent that runs and has mail, as the second version kept
    /// them; `ID n` is an id, `NAME` what its preamble is named.
    const SECOND: &str = "
        INSERT INTO preamble VALUES (ID 0, NAME, NULL, x'7b7d');
        INSERT INTO agent VALUES
            (ID 0, ID 1, 3, 0, 2, 9, 'plan', 0, NULL, NULL, NULL, NULL, '/main', 'm', 'd', x'2f', NAME, 8, NULL, NULL),
            (ID 0, ID 2, 3, 0, 1, 9, 'plan', 0, NULL, NULL, NULL, ID 1, '/a', 'm', 'd', x'2f', NAME, 8, NULL, NULL);
        INSERT INTO inbox VALUES (ID 0, ID 2, 1, 1, 2, NULL);
        INSERT INTO mail VALUES (ID 0, ID 2, 1, ID 5, NULL, 'user', 'text', 7, NULL, '', 'hi');
        INSERT INTO run VALUES (ID 0, ID 1, ID 6, 'bash', 1, 4, 0, 'told', x'2f'),
            (ID 0, ID 1, ID 7, 'bash', 3, 4, NULL, 'not told', x'2f'),
            (ID 0, ID 1, ID 8, 'bash', 0, 4, NULL, 'runs', x'2f'),
            (ID 0, ID 1, ID 9, 'agent', 0, 5, NULL, 'runs too', x'2f');";

    #[test]
    fn what_the_second_version_kept_is_kept() {
        let id = |number: u128| Uuid::from_u128(number);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.db");
        make(&path, 2, SECOND);

        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store = Sqlite::open(&path).unwrap();
        assert_eq!(
            maintain::check(&path, &mut |_| {}).unwrap().faults,
            Vec::<String>::new()
        );
        let root = runtime.block_on(store.take(id(1).into())).unwrap();
        let session = root.transcript.record;
        assert_eq!(
            (session.origin, session.starter, session.ended),
            (None, None, None)
        );
        assert_eq!(
            (session.state, session.path.as_str()),
            (AgentState::Paused, "/main")
        );
        let runs: Vec<_> = root
            .runs
            .iter()
            .map(|run| (run.id, run.kind, run.description.as_str()))
            .collect();
        assert_eq!(
            runs,
            [
                (id(8), RunKind::Shell, "runs"),
                (id(9), RunKind::Agent, "runs too")
            ]
        );
        let unfinished = AgentFilter {
            unfinished: true,
            ..AgentFilter::default()
        };
        let [child] = &runtime
            .block_on(store.agents(unfinished, Page::first(9)))
            .unwrap()[..]
        else {
            panic!("one")
        };
        let origin = child.origin.as_ref().unwrap();
        assert_eq!(
            (child.agent.uuid(), origin.parent.uuid(), &origin.name),
            (id(2), id(1), &None)
        );
        assert_eq!(
            (child.state, origin.call_id.as_str()),
            (AgentState::Running, "")
        );
        assert_eq!(runtime.block_on(store.take(child.agent)).unwrap().mail, 1);
    }

    /// An agent with an entry, two charges and their totals, as the fourth version kept them.
    const FOURTH: &str = "
        INSERT INTO preamble VALUES (ID 0, NAME, NULL, x'7b7d');
        INSERT INTO agent (realm, id, epoch, own, state, used_ms, mode, inherited, path, model, dialect, cwd,
            preamble, created_ms) VALUES
            (ID 0, ID 1, 3, 1, 2, 9, 'plan', 0, '/main', 'm', 'd', x'2f', NAME, 8);
        INSERT INTO entry VALUES (ID 0, ID 1, 0, 1, 5, CHECKSUM, NULL, NULL, x'7b7d');
        INSERT INTO charge VALUES (ID 0, ID 1, 'b', 0, 5, 1, 2, 3, 4, 5, 6, 7),
            (ID 0, ID 1, 'b', 1, 5, 1, 2, 3, 4, 5, 6, 7), (ID 0, ID 1, 'a', 0, 5, 1, 0, 0, 0, 0, 0, NULL);
        INSERT INTO total VALUES (ID 0, ID 1, 'b', 2, 2, 4, 6, 8, 10, 12, 14),
            (ID 0, ID 1, 'a', 1, 1, 0, 0, 0, 0, 0, NULL);";

    // proves FD-04 (part: older agents)
    #[test]
    fn what_the_fourth_version_kept_is_kept() {
        let id = |number: u128| Uuid::from_u128(number);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.db");
        let sum = checksum(0, 0, EntryKind::Prompt, None, b"{}".as_slice()).cast_signed();
        let rows = FOURTH.replace("CHECKSUM", &sum.to_string());
        make(&path, 4, &rows);

        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store = Sqlite::open(&path).unwrap();
        let health = || maintain::check(&path, &mut |_| {}).unwrap();
        let faults = || health().faults;
        assert_eq!(faults(), Vec::<String>::new());
        assert_eq!(health().misplaced, 1, "its id is that of an older posse");
        let taken = runtime.block_on(store.take(id(1).into())).unwrap();
        let entries = &taken.transcript.entries;
        assert_eq!((entries.len(), &entries[0].entry.head), (1, &None));
        let [a, b] = &taken.transcript.record.charges[..] else {
            panic!("two")
        };
        assert_eq!(
            (a.model.as_str(), a.purpose, a.cost, a.usage.input),
            ("a", Purpose::Work, None, 1)
        );
        assert_eq!(
            (b.purpose, b.cost),
            (Purpose::Work, Some(Cost::from_pico_usd(14)))
        );
        let usage = Usage {
            input: 2,
            cache_read: 4,
            cache_write_5m: 6,
            cache_write_1h: 8,
            output: 10,
            thinking: 12,
        };
        assert_eq!((b.model.as_str(), b.usage), ("b", usage));
        assert_eq!((a.missed, b.missed), (0, 0), "nobody knew");

        // They go on as they were.
        let charges = [Purpose::Work, Purpose::Memory]
            .map(|purpose| Charge {
                purpose,
                ..b.clone()
            })
            .to_vec();
        let step = Step {
            charges,
            ..Step::new(id(0).into(), id(1).into(), taken.epoch, 10)
        };
        runtime.block_on(store.commit(step)).unwrap();
        let charges = runtime
            .block_on(store.read(id(1).into()))
            .unwrap()
            .record
            .charges;
        let costs: Vec<_> = charges
            .iter()
            .map(|it| it.cost.map(Cost::pico_usd))
            .collect();
        assert_eq!(costs, [None, Some(28), Some(14)]);
        assert_eq!(faults(), Vec::<String>::new());
    }

    /// A team with a lead and a member, and a task, as the fifth version kept them.
    const FIFTH: &str = "
        INSERT INTO team VALUES (ID 0, 'web', ID 1, 5, 5, '', '{}');
        INSERT INTO inbox VALUES (ID 0, ID 1, 0, 0, 0, NULL), (ID 0, ID 2, 0, 0, 0, NULL);
        INSERT INTO member VALUES (ID 0, 'web', 'team-lead', 0, ID 1, '', 'm', '', 'blue', '', x'2f', 5),
            (ID 0, 'web', 'ann', 1, ID 2, '', 'm', '', 'blue', '', x'2f', 5);
        INSERT INTO list VALUES (ID 0, 'web', 1, 0);
        INSERT INTO task VALUES (ID 0, 'web', 1, 0, 0, NULL, NULL, NULL, 1, 5, 5, 'a', NULL, '{}', '');
        INSERT INTO ask VALUES (ID 0, ID 1, ID 3, 2, 5, '{}');";

    #[test]
    fn what_the_fifth_version_kept_is_kept() {
        let realm = Uuid::from_u128(0).into();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.db");
        make(&path, 5, FIFTH);

        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let store = Sqlite::open(&path).unwrap();
        let faults = || maintain::check(&path, &mut |_| {}).unwrap().faults;
        assert_eq!(faults(), Vec::<String>::new());
        let team = runtime
            .block_on(store.teams(None, Page::first(9)))
            .unwrap()
            .remove(0);
        let ann = team.members.last().unwrap();
        assert_eq!(
            (ann.name.as_str(), &ann.role, &ann.takes),
            ("ann", &None, &Takes::Any)
        );
        assert_eq!(team.former, []);
        assert_eq!(
            runtime
                .block_on(store.requests(realm, None, Page::all()))
                .unwrap(),
            []
        );
        // Its name is not given again, and its task is anybody's.
        let (web, name): (Name, Name) = (team.name, ann.name.clone());
        let takes = Takes::Only {
            unmarked: true,
            roles: Vec::new(),
        };
        let ops = vec![
            Op::Leave {
                team: web.clone(),
                name: name.clone(),
            },
            Op::ClaimNext {
                team: Some(web),
                takes,
            },
        ];
        let results = runtime
            .block_on(store.operate(Order {
                realm,
                ops,
                at_ms: 9,
            }))
            .unwrap();
        let Ok(Done::Claimed(task)) = &results[1] else {
            panic!("{results:?}")
        };
        assert_eq!((task.id.0, &task.role, &task.check), (1, &None, &None));
        assert_eq!(
            runtime.block_on(store.teams(None, Page::first(9))).unwrap()[0].former,
            [name]
        );
        assert_eq!(faults(), Vec::<String>::new());
    }

    #[test]
    fn our_files_are_marked_and_older_ones_known_by_their_tables() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new.db");
        assert_eq!(mark(&open(&path).unwrap()), OURS);
        let old = directory.path().join("old.db");
        let connection = Connection::open(&old).unwrap();
        connection.execute_batch(VERSIONS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        drop(connection);
        assert_eq!(
            mark(&open(&old).unwrap()),
            OURS,
            "marked when it is brought up to date"
        );
        let connection = open(&path).unwrap();
        connection.pragma_update(None, "application_id", 0).unwrap();
        open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert!(matches!(
            open(&path).unwrap_err(),
            StoreError::TooNew { found: 99, .. }
        ));
    }

    #[test]
    fn an_older_posse_beside_this_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.db");
        make(&path, 6, "");
        let place = DatabasePlace::file(&path, Timing::default()).unwrap();
        let older = place.hosts().settle(&Arc::default()).unwrap();
        let connection = Connection::open(&path).unwrap();
        let settle = "INSERT OR IGNORE INTO host (id) VALUES (?1)";
        connection.execute(settle, [older.id.as_bytes()]).unwrap();

        let error = open(&path).unwrap_err();
        let told = posse_port::in_a_line(&error);
        let pid = format!(
            "an older posse (pid {}) is at work in it",
            std::process::id()
        );
        assert!(told.contains(&pid), "{told}");
        assert_eq!(version(&connection).unwrap(), 6, "nothing was changed");

        drop(older);
        open(&path).unwrap();
        // One that opened the file before, and begins to work only now.
        let late = connection.execute(settle, [Uuid::from_u128(7).as_bytes()]);
        let told = late.unwrap_err().to_string();
        assert!(
            told.contains("a newer posse has changed this store"),
            "{told}"
        );
    }
}
