//! Data on a server that are broken by hand, and those that nobody uses.

use posse_port::store::{Segment, Step, Store};
use posse_protocol::{AgentId, EntryKind};
use posse_store::Postgres;
use posse_store::maintain::postgres::{check, collect, unused};
use posse_store::maintain::{Collected, Health, Unused};
use posse_testkit::postgres::Database;
use posse_testkit::store_contract::{agent, birth, chained, entry, headed, other_realm};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A session of one prompt, and one that begins with it and has a prompt with a head.
fn two(store: &Postgres, runtime: &Runtime) {
    let first = Step {
        entries: vec![entry(0, EntryKind::Prompt, "one")],
        ..birth(1)
    };
    runtime.block_on(store.commit(first)).unwrap();
    let mut forked = Step {
        entries: vec![headed(0, EntryKind::Prompt, "shared", "two")],
        ..birth(2)
    };
    forked.birth.as_mut().unwrap().segments = vec![Segment {
        agent: agent(1),
        from: 0,
        to: 1,
    }];
    runtime.block_on(store.commit(forked)).unwrap();
}

fn faults(database: &Database) -> Vec<String> {
    check(database.url(), &mut |_| {}).unwrap().faults
}

#[test]
fn what_is_broken_on_a_server_is_found() {
    let database = Database::new().unwrap();
    two(&Postgres::open(database.url()).unwrap(), &runtime());
    let whole = Health {
        agents: 2,
        entries: 2,
        ..Health::default()
    };
    assert_eq!(check(database.url(), &mut |_| {}).unwrap(), whole);
    let (one, two) = (agent(1), agent(2));
    let by = |agent: AgentId| format!("agent = '{agent}'");
    // Each is mended again by the last part, so that it is alone.
    for (broken, mended, fault) in [
        (
            format!(
                "UPDATE entry SET bytes = 'another', packed = false WHERE {}",
                by(one)
            ),
            format!("UPDATE entry SET bytes = 'one' WHERE {}", by(one)),
            format!("the transcript of {one} is damaged at entry 0"),
        ),
        (
            format!("UPDATE entry SET packed = true WHERE {}", by(one)),
            format!("UPDATE entry SET packed = false WHERE {}", by(one)),
            format!("the transcript of {one} is damaged at entry 0"),
        ),
        (
            format!(
                "UPDATE entry SET head = '{}' WHERE {}",
                Uuid::max(),
                by(two)
            ),
            format!(
                "UPDATE entry SET head = (SELECT hash FROM preamble WHERE bytes = 'shared') WHERE {}",
                by(two)
            ),
            format!(
                "the transcript of {two} is damaged at entry 0: what it begins with is missing"
            ),
        ),
        (
            format!(
                "UPDATE entry SET loaded = '{}' WHERE {}",
                Uuid::max(),
                by(one)
            ),
            format!("UPDATE entry SET loaded = NULL WHERE {}", by(one)),
            format!("the transcript of {one} is damaged at entry 0: what it loads is missing"),
        ),
        (
            format!("UPDATE pulse SET own = 7 WHERE {}", by(one)),
            format!("UPDATE pulse SET own = 1 WHERE {}", by(one)),
            format!("an agent's number of entries is wrong: agent {one}, counted 7"),
        ),
        (
            format!("DELETE FROM root WHERE {}", by(two)),
            format!(
                "INSERT INTO root (realm, agent, cwd, used_ms) SELECT realm, id, cwd, 10 FROM agent WHERE id = '{two}'"
            ),
            format!("an agent is missing from some tables: agent {two}"),
        ),
        (
            format!(
                "UPDATE segment SET source = '{two}', beyond = 2 WHERE {}",
                by(two)
            ),
            format!(
                "UPDATE segment SET source = '{one}', beyond = 1 WHERE {}",
                by(two)
            ),
            format!("a segment names entries that do not exist: agent {two}, segment 0"),
        ),
    ] {
        let sql = |statement: &str| {
            database
                .sql(&format!("SET search_path = posse; {statement}"))
                .unwrap()
        };
        sql(&broken);
        let found = faults(&database);
        assert!(found.contains(&fault), "{broken}: {found:?}");
        sql(&mended);
        assert_eq!(faults(&database), Vec::<String>::new(), "{mended}");
    }
    database
        .sql("UPDATE posse.preamble SET bytes = 'changed', packed = false")
        .unwrap();
    let found = faults(&database);
    assert!(
        found
            .iter()
            .any(|fault| fault.starts_with("the shared content of the agents of session ")),
        "{found:?}"
    );
}

#[test]
fn what_nobody_uses_is_removed_from_a_server() {
    let (database, runtime) = (Database::new().unwrap(), runtime());
    let store = Postgres::open(database.url()).unwrap();
    two(&store, &runtime);
    let prompt = |seq| entry(seq, EntryKind::Prompt, "kept");
    let mut kept = Step {
        entries: chained(vec![prompt(0), prompt(1)]),
        ..birth(3)
    };
    (kept.realm, kept.at_ms) = (other_realm(), 5000);
    runtime.block_on(store.commit(kept)).unwrap();
    // A host that is not gone holds it.
    assert_eq!(unused(database.url(), 1000).unwrap(), []);
    assert_eq!(
        collect(database.url(), 1000, &mut |_| {}).unwrap(),
        Collected::default()
    );
    drop(store);
    let expected = Unused {
        id: agent(1).uuid(),
        sessions: 2,
        agents: 2,
        teams: Vec::new(),
        used_ms: 10,
        bytes: "onetwo".len() as u64,
        cwd: Some("/work".into()),
    };
    assert_eq!(unused(database.url(), 1000).unwrap(), [expected]);
    assert_eq!(unused(database.url(), 10).unwrap(), []);
    let mut told = Vec::new();
    let gone = collect(database.url(), 1000, &mut |so_far| told.push(so_far)).unwrap();
    assert_eq!((gone.sessions, gone.agents, gone.teams), (2, 2, 0));
    // Their prompts, and what these and both agents begin with.
    assert_eq!(
        gone.bytes,
        ("onetwoshared".len() + 2 * "\"system\":\"hello\"".len()) as u64
    );
    assert_eq!(told, [gone]);
    let left = "SELECT count(*) FROM posse.realm UNION ALL SELECT count(*) FROM posse.agent
        UNION ALL SELECT count(*) FROM posse.pulse UNION ALL SELECT count(*) FROM posse.root
        UNION ALL SELECT count(*) FROM posse.segment UNION ALL SELECT count(*) FROM posse.entry";
    assert_eq!(
        database.sql(left).unwrap().lines().collect::<Vec<_>>(),
        ["1", "1", "1", "1", "0", "2"]
    );
    let whole = Health {
        agents: 1,
        entries: 2,
        ..Health::default()
    };
    assert_eq!(check(database.url(), &mut |_| {}).unwrap(), whole);
}
