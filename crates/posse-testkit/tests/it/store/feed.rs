//! The feed while writers are killed, readers are cut off, hints are lost, and rows grow old.

#![expect(clippy::print_stderr, reason = "the long form says what it counted")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_port::store::{FeedRow, Page, Store, Topics};
use posse_protocol::{AgentId, EntryKind};
use posse_store::{Postgres, Timing};
use posse_testkit::place::Place;
use posse_testkit::postgres::Database;
use posse_testkit::store_contract::{agent, birth, entry, realm, step};

use super::Directory;
use super::wakes::{DEAF, NO_SWEEP};

const WRITERS: usize = 4;
const READERS: u64 = 8;
/// Agents of each writer.
const AGENTS: &str = "16";

/// The last entry of each agent that was acknowledged.
type Acknowledged = Arc<Mutex<BTreeMap<AgentId, u64>>>;

/// A process that writes, killed at its end.
struct Writer {
    child: Child,
    listening: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    #[expect(clippy::disallowed_methods, reason = "stands for another posse")]
    fn start(place: &Place, acknowledged: &Acknowledged) -> Self {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_store-work"))
            .arg("feed")
            .arg(place)
            .arg(AGENTS)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let acknowledged = Arc::clone(acknowledged);
        let listening = std::thread::spawn(move || {
            // A line that the kill has cut is no acknowledgement.
            for line in output.lines().map_while(Result::ok) {
                let Some((agent, seq)) = line.split_once(' ') else {
                    continue;
                };
                if let (Ok(agent), Ok(seq)) = (agent.parse(), seq.parse()) {
                    let mut known = acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
                    known.insert(agent, seq);
                }
            }
        });
        Self {
            child,
            listening: Some(listening),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

/// Follows the feed until `total`, with cuts that depend on `seed`, and returns its rows.
async fn follow(place: Place, seed: u64, total: u64) -> Vec<FeedRow> {
    let mut store = place.open().unwrap();
    let mut rows: Vec<FeedRow> = Vec::new();
    let mut chance = seed;
    while (rows.len() as u64) < total {
        let after = rows.len() as u64;
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match chance >> 33 {
            // It loses everything that it had in memory.
            lot if lot % 61 == 0 => store = place.open().unwrap(),
            // It gives up waiting.
            lot if lot % 7 == 0 => tokio::select! {
                biased;
                page = store.follow_feed(realm(), after, 1) => assert!(page.unwrap().head > after),
                () = tokio::task::yield_now() => {}
            },
            lot => {
                let page = store
                    .follow_feed(realm(), after, 1 + lot as usize % 500)
                    .await
                    .unwrap();
                assert!(
                    !page.has_gap(after),
                    "after {after}: {:?}",
                    page.rows.first()
                );
                rows.extend(page.rows);
            }
        }
    }
    rows.truncate(total as usize);
    rows
}

/// Kills a writer each time that so many numbers were given, until there are `total`.
async fn kill_writers(place: &Place, total: u64, every: u64) {
    let acknowledged = Acknowledged::default();
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|_| Writer::start(place, &acknowledged))
        .collect();
    let store = place.open().unwrap();
    let mut readers = tokio::task::JoinSet::new();
    for seed in 1..=READERS {
        readers.spawn(follow(place.clone(), seed, total));
    }
    let (mut head, mut killed) = (0, 0);
    while head < total {
        head = store
            .follow_feed(realm(), (head + every).min(total) - 1, 0)
            .await
            .unwrap()
            .head;
        writers[killed % WRITERS] = Writer::start(place, &acknowledged);
        killed += 1;
    }
    drop(writers);
    let read = readers.join_all().await;
    assert!(
        read.iter().all(|rows| *rows == read[0]),
        "all read the same"
    );
    assert!(read[0].iter().map(|row| row.number).eq(1..=total));

    // What came after the readers stopped counts for what was acknowledged.
    let last = store.feed(realm(), total, usize::MAX).await.unwrap();
    let mut entries: BTreeMap<AgentId, u64> = BTreeMap::new();
    for row in read[0].iter().chain(&last.rows) {
        if row.topics.contains(Topics::ENTRIES) {
            let next = entries.entry(row.agent.unwrap()).or_default();
            assert_eq!(
                (row.seq, row.count),
                (*next, 1),
                "each entry once, in order"
            );
            *next += 1;
        }
    }
    for (agent, seq) in acknowledged.lock().unwrap().iter() {
        assert!(
            entries.get(agent) > Some(seq),
            "{agent}: {seq} was acknowledged"
        );
    }
    let read = entries.values().sum::<u64>();
    eprintln!("{total} numbers, {read} entries, {killed} writers killed: none lost, none twice");
}

// proves FD-01 (part: killed writers)
#[tokio::test]
async fn killed_writers_leave_no_gap() {
    let directory = Directory::new();
    kill_writers(&directory.place(), 10_000, 1_000).await;
}

// proves FD-01 (part: killed writers)
#[tokio::test]
async fn killed_writers_leave_no_gap_on_a_server() {
    let database = Database::new().unwrap();
    kill_writers(&Place::Server(database.url().into()), 10_000, 1_000).await;
}

#[tokio::test]
#[ignore = "the long form: `cargo xtask faults`"]
async fn killed_writers_leave_no_gap_in_a_million() {
    let directory = Directory::new();
    kill_writers(&directory.place(), 1_000_000, 5_000).await;
}

#[tokio::test]
#[ignore = "the long form: `cargo xtask faults`"]
async fn killed_writers_leave_no_gap_in_a_million_on_a_server() {
    let database = Database::new().unwrap();
    kill_writers(&Place::Server(database.url().into()), 1_000_000, 3_000).await;
}

// proves FD-02 (part: a lost hint)
#[tokio::test]
async fn a_lost_hint_costs_only_time() {
    let directory = Directory::new();
    let writer = directory.open_with(NO_SWEEP);
    let reader = directory.open_with(DEAF);
    writer.commit(birth(1)).await.unwrap();
    for number in 1..5 {
        let (heard, written) = tokio::join!(
            reader.follow_feed(realm(), number, 9),
            writer.commit(step(1, 1)),
        );
        written.unwrap();
        assert_eq!(heard.unwrap().head, number + 1);
    }
}

/// A database of the version before the feed, with an agent in it.
#[tokio::test]
async fn a_server_without_the_feed_is_migrated_and_then_refuses_an_older_posse() {
    const TABLES: &str = include_str!("../../../../posse-store/src/postgres/schema/tables.sql");
    const POLICIES: &str = include_str!("../../../../posse-store/src/postgres/schema/policies.sql");
    let database = Database::new().unwrap();
    let url = database.url();
    let old = format!(
        "DROP SCHEMA posse CASCADE; CREATE SCHEMA posse; SET search_path = posse; {TABLES} {POLICIES}
         INSERT INTO version (number, oldest) VALUES (1, 1);
         INSERT INTO realm (id) VALUES ('{realm}');
         INSERT INTO agent (realm, id, path, model, dialect, cwd, preamble, created_ms, inherited)
             VALUES ('{realm}', '{id}', '/main', 'm', 'test', '/', '{id}', 5, 0);
         INSERT INTO preamble (realm, hash, packed, bytes) VALUES ('{realm}', '{id}', false, '{{}}');
         INSERT INTO root (realm, agent, cwd, used_ms) VALUES ('{realm}', '{id}', '/', 7);
         INSERT INTO pulse (realm, agent, epoch, own, state, used_ms, mode, is_open)
             VALUES ('{realm}', '{id}', 1, 0, 0, 7, 'default', false);",
        realm = realm(),
        id = agent(1),
    );
    database.sql(&old).unwrap();

    let refused = Postgres::open(url).map(drop).unwrap_err();
    let told = posse_port::in_a_line(&refused);
    assert!(told.contains("run `posse store migrate`"), "{told}");
    // It has a runtime of its own.
    let migrated = std::thread::scope(|scope| {
        let migrating = scope.spawn(|| posse_store::migrate(url, false));
        migrating.join().unwrap().unwrap()
    });
    assert_eq!(
        (migrated.from, migrated.to, migrated.oldest),
        (Some(1), 7, 7)
    );

    let store = Postgres::open(url).unwrap();
    let sessions = store
        .sessions(Default::default(), Page::first(9))
        .await
        .unwrap();
    assert_eq!((sessions[0].agent, sessions[0].used_ms), (agent(1), 7));
    let epoch = store.take(agent(1)).await.unwrap().epoch;
    store.commit(step(1, epoch.0)).await.unwrap();
    assert_eq!(store.feed(realm(), 0, 9).await.unwrap().head, 2);
    // What hosts of the versions before would send: the first does not say what a step is about,
    // the second not which version it is.
    let id = agent(1);
    for (me, what) in [
        ("NULL", ""),
        (
            &*format!(r#"'{{"id":"{id}","settled":true}}'"#),
            r#","what":1"#,
        ),
    ] {
        let job = format!(
            r#"[{{"do":"commit","realm":"{}","agent":"{id}","id":"{}","epoch":{},"at":9{what}}}]"#,
            realm(),
            step(1, 1).id.0,
            epoch.0
        );
        let write = format!("SET search_path = posse; SELECT write({me}, '{job}', '{{}}')");
        let error = database.sql(&write).unwrap_err().to_string();
        assert!(
            error.contains("this posse is older than the tables"),
            "{error}"
        );
    }
    assert_eq!(store.feed(realm(), 0, 9).await.unwrap().head, 2);
}

// proves FD-03 (part: trimmed)
#[tokio::test]
async fn old_rows_are_removed_and_readers_are_told() {
    let directory = Directory::new();
    let forgetful = Timing {
        sweep: Duration::from_millis(10),
        feed_age: Duration::ZERO,
        ..Timing::default()
    };
    let store = directory.open_with(forgetful);
    store.commit(birth(1)).await.unwrap();
    for seq in 0..200 {
        let mut step = step(1, 1);
        step.entries = vec![entry(seq, EntryKind::Prompt, "word")];
        store.commit(step).await.unwrap();
    }
    // 201 rows: three blocks of 64 are old, the rest is no block yet.
    let page = loop {
        let page = store.feed(realm(), 0, usize::MAX).await.unwrap();
        if page.rows.first().is_some_and(|row| row.number > 192) {
            break page;
        }
        store.commit(step(1, 1)).await.unwrap();
    };
    assert!(page.has_gap(0) && !page.has_gap(192));
    assert_eq!(page.rows.first().unwrap().agent, Some(agent(1)));
    let after = page.head;
    store.commit(step(1, 1)).await.unwrap();
    assert_eq!(store.feed(realm(), after, 9).await.unwrap().rows.len(), 1);
}

// proves FD-01 (part: dense)
#[tokio::test]
async fn numbers_go_on_where_all_rows_were_removed() {
    let directory = Directory::new();
    let forgetful = Timing {
        sweep: Duration::from_millis(10),
        feed_age: Duration::ZERO,
        ..Timing::default()
    };
    let store = directory.open_with(forgetful);
    store.commit(birth(1)).await.unwrap();
    for _ in 1..64 {
        store.commit(step(1, 1)).await.unwrap();
    }
    while !store.feed(realm(), 0, 9).await.unwrap().rows.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(store.feed(realm(), 0, 9).await.unwrap().has_gap(0));
    assert_eq!(store.feed(realm(), 0, 9).await.unwrap().head, 64);
    store.commit(step(1, 1)).await.unwrap();
    let page = store.feed(realm(), 64, 9).await.unwrap();
    assert_eq!((page.head, page.rows[0].number), (65, 65));
    assert!(!page.has_gap(64));
}

// proves FD-02 (part: waiting)
#[tokio::test]
async fn a_server_is_listened_to_between_two_waits() {
    let database = Database::new().unwrap();
    let open = || Postgres::open_with(database.url(), NO_SWEEP).unwrap();
    let (writer, reader) = (open(), open());
    writer.commit(birth(1)).await.unwrap();
    let listener = || {
        let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                   AND (query LIKE '%watch_feeds%' OR query LIKE 'SELECT id, head FROM realm%')
                   AND pid <> pg_backend_pid()";
        database.sql(sql).unwrap().trim().to_owned()
    };
    let mut first = String::new();
    for number in (1..20).step_by(2) {
        let write = async {
            while first.is_empty() {
                first = listener();
            }
            writer.commit(step(1, 1)).await.unwrap();
        };
        let (told, ()) = tokio::join!(reader.follow_feed(realm(), number, 9), write);
        assert_eq!(told.unwrap().head, number + 1);
        // Nobody waits for this one.
        writer.commit(step(1, 1)).await.unwrap();
        let page = reader.follow_feed(realm(), number + 1, 9).await.unwrap();
        assert_eq!(page.head, number + 2);
        assert_eq!(listener(), first, "another connection after {number}");
    }
}
