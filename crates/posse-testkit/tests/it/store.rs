//! The contract of stores, kept by SQLite in a file and in memory, and by PostgreSQL; and what only a file can suffer.

mod contracts;
mod explored;
mod faults;
mod feed;
mod maintain;
mod ported;
mod postgres;
mod processes;
mod property;
mod races;
mod room;
mod stopped;
mod wakes;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::store::{
    Joining, Op, Operation, Order, Page, Refusal, SessionFilter, Step, Store, StoreError,
    StoreLayer, TaskChange, TaskFilter, Wake, checksum,
};
use posse_protocol::{EntryKind, ListId, Name, RealmId, TaskId};
use posse_store::{Sqlite, Timing};
use posse_testkit::store_contract::{
    self as contract, Open, agent, birth, entry, fate, step, verify,
};
use uuid::Uuid;

/// A directory that goes with its test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(Uuid::now_v7().to_string()))
    }

    fn database(&self) -> PathBuf {
        self.0.join("home/posse.db")
    }

    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(&self.database()).unwrap())
    }

    /// Changes the file behind the store's back.
    fn tamper(&self, sql: &str) {
        let changed = rusqlite::Connection::open(self.database())
            .unwrap()
            .execute(sql, [])
            .unwrap();
        assert!(changed > 0 || sql.starts_with("PRAGMA"), "{sql}");
    }

    fn hosts(&self) -> usize {
        let found = fs::read_dir(self.0.join("home/hosts"))
            .into_iter()
            .flatten();
        // Beside each is its bell.
        found
            .filter(|entry| {
                entry
                    .as_ref()
                    .is_ok_and(|entry| entry.path().extension().is_none())
            })
            .count()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Holds a contract against SQLite: in a file, in memory, and below a layer.
async fn everywhere(contract: impl AsyncFn(Open<'_>)) {
    let directory = Directory::new();
    contract(&|| directory.open()).await;
    let memory = Sqlite::in_memory().unwrap();
    contract(&|| Arc::new(memory.another_host().unwrap())).await;
    let below = Sqlite::in_memory().unwrap();
    contract(&|| Arc::new(Layer(below.another_host().unwrap()))).await;
}

/// A layer that adds nothing.
struct Layer(Sqlite);

impl StoreLayer for Layer {
    fn below(&self) -> &dyn Store {
        &self.0
    }
}

/// An agent with four entries, whose checksums are a chain.
async fn four_entries(store: &dyn Store) {
    let (mut entries, mut last) = (Vec::new(), 0);
    for seq in 0..4 {
        let mut next = entry(seq, EntryKind::Prompt, &format!("entry {seq}"));
        last = checksum(last, seq, next.kind, None, &next.encoded);
        next.checksum = last;
        entries.push(next);
    }
    store
        .commit(Step {
            entries,
            ..birth(1)
        })
        .await
        .unwrap();
}

// proves TR-01 (part: checksums)
#[tokio::test]
async fn damage_is_found() {
    for (sql, wanted) in [
        (
            "UPDATE entry SET bytes = x'656e747279203f' WHERE seq = 2",
            Err(2),
        ),
        ("UPDATE entry SET kind = 2 WHERE seq = 1", Err(1)),
        (
            "UPDATE entry SET seq = CASE seq WHEN 1 THEN 12 WHEN 2 THEN 11 END WHERE seq IN (1, 2)",
            Ok("damaged"),
        ),
        ("DELETE FROM entry WHERE seq = 3", Ok("damaged")),
        ("DELETE FROM entry WHERE seq = 0", Ok("damaged")),
        ("UPDATE entry SET kind = 9 WHERE seq = 0", Ok("damaged")),
        ("UPDATE entry SET reply = '{' WHERE seq = 0", Ok("damaged")),
    ] {
        let directory = Directory::new();
        let store = directory.open();
        four_entries(store.as_ref()).await;
        assert_eq!(verify(&store.read(agent(1)).await.unwrap()), Ok(()));
        directory.tamper(sql);
        let read = store.read(agent(1)).await;
        match wanted {
            Ok(word) => assert_eq!(fate(&read), word, "{sql}"),
            Err(seq) => assert_eq!(verify(&read.unwrap()), Err(seq), "{sql}"),
        }
    }
}

#[tokio::test]
async fn swapped_entries_are_found() {
    let directory = Directory::new();
    let store = directory.open();
    four_entries(store.as_ref()).await;
    directory.tamper("UPDATE entry SET seq = seq + 10 WHERE seq IN (1, 2)");
    directory.tamper("UPDATE entry SET seq = 23 - seq - 10 WHERE seq IN (11, 12)");
    assert_eq!(verify(&store.read(agent(1)).await.unwrap()), Err(1));
}

#[tokio::test]
async fn a_file_of_a_newer_posse_is_left_alone() {
    let directory = Directory::new();
    drop(directory.open());
    directory.tamper("PRAGMA user_version = 77");
    let refused = Sqlite::open(&directory.database()).err().unwrap();
    assert!(
        matches!(refused, StoreError::TooNew { found: 77, .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn files_are_their_owners_alone_and_looking_leaves_no_host() {
    let directory = Directory::new();
    let store = directory.open();
    let mode = |name: &str| {
        let path = directory.0.join("home").join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(""), mode("posse.db")), (0o700, 0o600));
    assert_eq!(
        store
            .sessions(SessionFilter::default(), Page::first(10))
            .await
            .unwrap(),
        []
    );
    assert_eq!(fate(&store.read(agent(1)).await), "not found");
    assert_eq!(directory.hosts(), 0);
    store.commit(birth(1)).await.unwrap();
    assert_eq!(
        (mode("hosts"), mode("posse.db-wal"), directory.hosts()),
        (0o700, 0o600, 1)
    );
    drop(store);
    assert_eq!(
        directory.hosts(),
        0,
        "who goes in peace takes its file along"
    );
}

#[tokio::test]
async fn what_dead_hosts_left_is_removed() {
    let directory = Directory::new();
    let store = directory.open();
    store.commit(birth(1)).await.unwrap();
    store.commit(birth(2)).await.unwrap();
    drop(store);
    // A host that was killed: its file is there, and nobody locks it.
    let dead = Uuid::now_v7();
    let hex = dead.simple();
    directory.tamper(&format!("UPDATE agent SET host = x'{hex}'"));
    for name in [dead, Uuid::now_v7()] {
        fs::write(directory.0.join("home/hosts").join(name.to_string()), "1\n").unwrap();
    }
    let store = directory.open();
    assert!(store.read(agent(1)).await.unwrap().record.holder.is_none());
    store.take(agent(1)).await.unwrap();
    assert_eq!(directory.hosts(), 1, "its own");
}

fn web() -> Name {
    "web".parse().unwrap()
}

/// Makes a team whose lead is this agent.
fn create_web(number: u64) -> Op {
    let lead = Joining {
        agent: agent(number),
        agent_type: String::new(),
        model: String::new(),
        prompt: String::new(),
        color: None,
        backend: String::new(),
        cwd: "/".into(),
        role: None,
        takes: posse_protocol::Takes::Any,
    };
    let (description, settings) = (String::new(), serde_json::Map::new());
    Op::CreateTeam {
        team: web(),
        description,
        settings,
        lead: Box::new(lead),
    }
}

fn create_task(team: Option<Name>) -> Op {
    Op::CreateTask {
        team,
        task: Box::default(),
    }
}

/// Does what a person asks for, none of which may be refused.
async fn order(store: &dyn Store, realm: RealmId, ops: Vec<Op>) {
    let results = store
        .operate(Order {
            realm,
            ops,
            at_ms: 5,
        })
        .await
        .unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Two hosts of which each takes the other for stalled as soon as it wants something of it.
async fn impatient(directory: &Directory) -> [Sqlite; 2] {
    let timing = Timing {
        lease: Duration::ZERO,
        sweep: Duration::from_secs(3600),
        ..Timing::default()
    };
    let hosts = [0; 2].map(|_| Sqlite::open_with(&directory.database(), timing).unwrap());
    for (host, number) in hosts.iter().zip(1..) {
        host.commit(birth(number)).await.unwrap();
    }
    hosts
}

#[tokio::test]
async fn who_wants_what_a_stalled_host_does_not_do_takes_nothing_from_it() {
    let directory = Directory::new();
    let [first, second] = impatient(&directory).await;
    let team = web();
    let assigned = TaskChange {
        owner: Some(Some("team-lead".into())),
        ..TaskChange::default()
    };
    let assign = Op::UpdateTask {
        team: Some(team.clone()),
        id: TaskId(1),
        expect: None,
        change: Box::new(assigned),
    };
    order(
        &first,
        contract::realm(),
        vec![create_web(1), create_task(Some(team.clone())), assign],
    )
    .await;
    let claim = Op::Claim {
        team: Some(team),
        id: TaskId(1),
    };
    let claims = Step {
        operations: vec![Operation {
            call: None,
            op: claim,
        }],
        ..step(2, 1)
    };
    let refused = second
        .commit(claims)
        .await
        .unwrap()
        .results
        .remove(0)
        .unwrap_err();
    assert_eq!(
        refused,
        Refusal::AlreadyClaimed {
            id: TaskId(1),
            by: "team-lead".into()
        }
    );
    assert_eq!(
        fate(&first.commit(step(1, 1)).await),
        "ok",
        "it has lost nothing"
    );
    assert!(
        second.take(agent(1)).await.unwrap().epoch.0 > 1,
        "but what is wanted is taken"
    );
    assert_eq!(fate(&first.commit(step(1, 1)).await), "fenced");
}

#[tokio::test]
async fn a_host_that_was_refused_before_does_not_settle_as_stalled() {
    let directory = Directory::new();
    let lease = Duration::from_millis(50);
    let timing = Timing {
        lease,
        sweep: Duration::from_secs(3600),
        ..Timing::default()
    };
    let open = || Sqlite::open_with(&directory.database(), timing).unwrap();
    let (first, second) = (open(), open());
    assert_eq!(fate(&first.take(agent(1)).await), "not found");
    let refused = Instant::now();
    while refused.elapsed() <= lease {
        tokio::task::yield_now().await;
    }
    first.commit(birth(1)).await.unwrap();
    assert_eq!(fate(&second.take(agent(1)).await), "held");
}

#[tokio::test]
async fn what_is_collected_silences_no_bell() {
    let directory = Directory::new();
    let (first, second) = (directory.open(), directory.open());
    first
        .commit(Step {
            at_ms: i64::MAX / 2,
            ..birth(1)
        })
        .await
        .unwrap();
    let old: RealmId = Uuid::from_u128(7).into();
    for _ in 0..5 {
        order(second.as_ref(), old, vec![create_task(None)]).await;
    }
    let list = ListId {
        realm: contract::realm(),
        team: None,
    };
    let heard = async |wanted: &ListId| {
        while !first
            .woken()
            .await
            .unwrap()
            .contains(&Wake::Tasks(wanted.clone()))
        {}
    };
    order(second.as_ref(), contract::realm(), vec![create_task(None)]).await;
    heard(&list).await;
    let removed = posse_store::maintain::collect(&directory.database(), 1000, &mut |_| {}).unwrap();
    assert_eq!(removed.sessions, 0, "{removed:?}");
    let gone = ListId {
        realm: old,
        team: None,
    };
    assert_eq!(
        second
            .tasks(gone, TaskFilter::default(), Page::first(9))
            .await
            .unwrap(),
        []
    );
    order(second.as_ref(), contract::realm(), vec![create_task(None)]).await;
    heard(&list).await;
}

#[tokio::test]
async fn a_team_that_came_a_minute_ago_is_not_old() {
    let (there, here) = (Directory::new(), Directory::new());
    let store = there.open();
    order(
        store.as_ref(),
        contract::realm(),
        vec![create_web(1), create_task(Some(web()))],
    )
    .await;
    let archive = store
        .export(contract::realm(), web())
        .await
        .unwrap()
        .unwrap();
    let store = here.open();
    store.import(archive.clone()).await.unwrap();
    posse_store::maintain::collect(&here.database(), 1_000_000, &mut |_| {}).unwrap();
    assert_eq!(
        store.export(contract::realm(), web()).await.unwrap(),
        Some(archive)
    );
    posse_store::maintain::collect(&there.database(), 1_000_000, &mut |_| {}).unwrap();
    assert_eq!(
        there.open().export(contract::realm(), web()).await.unwrap(),
        None,
        "where it was made it is"
    );
}

#[tokio::test]
async fn a_link_to_the_file_leads_to_the_same_hosts() {
    let directory = Directory::new();
    let store = directory.open();
    store.commit(birth(1)).await.unwrap();
    let link = directory.0.join("link.db");
    std::os::unix::fs::symlink(directory.database(), &link).unwrap();
    let other = Sqlite::open(&link).unwrap();
    assert_eq!(fate(&other.take(agent(1)).await), "held");
    other.commit(birth(2)).await.unwrap();
    assert_eq!(fate(&store.commit(step(1, 1)).await), "ok");
    assert_eq!(
        fs::read_dir(&directory.0).unwrap().count(),
        2,
        "nothing is kept beside the link"
    );
}
