//! Stores that are broken by hand, copied while others write, and emptied.

use std::path::PathBuf;

use posse_port::model::Encoded;
use posse_port::store::{
    Address, AgentState, Birth, CallChange, CallChangeKind, CallKey, Charge, EndedRun, Epoch,
    Joining, NewEntry, NewTask, Op, Order, Origin, RunChange, RunChangeKind, Segment, StateChange,
    Step, Store, StoreError, checksum,
};
use posse_protocol::{
    AgentId, EntryKind, Name, PermissionMode, Purpose, RealmId, RunKind, RunUsage, Usage,
};
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use super::super::Sqlite;
use super::*;
use crate::maintain::{Collected, Health, Unused};

/// A store in a directory of its own, which goes when it is dropped.
struct Shelf {
    directory: PathBuf,
    path: PathBuf,
    runtime: Runtime,
}

impl Shelf {
    fn new() -> Self {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../target/tmp/maintain-{}", Uuid::now_v7()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("posse.db");
        Self {
            directory,
            path,
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
        }
    }

    /// Returns a session with `entries` prompts, used at `at_ms`.
    fn session(&self, store: &Sqlite, entries: u64, at_ms: i64) -> (RealmId, AgentId) {
        let birth = birth(None);
        let mut chain = 0;
        let entry = |seq| entry(&mut chain, seq, EntryKind::Prompt);
        // An id of the first millisecond of all: the realm is as old as what is in it.
        let realm: RealmId = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)).into();
        let entries = (0..entries).map(entry).collect();
        let agent = AgentId::within(realm, Uuid::now_v7());
        let step = Step {
            birth: Some(Box::new(birth)),
            entries,
            ..Step::new(realm, agent, Epoch(1), at_ms)
        };
        self.runtime.block_on(store.commit(step)).unwrap();
        (realm, agent)
    }

    /// What a session with `entries` prompts started by one call: a sub-agent, which has ended, and
    /// a command.
    fn below(&self, store: &Sqlite, realm: RealmId, parent: AgentId, entries: u64) {
        let mut chain = 0;
        for seq in 0..entries {
            entry(&mut chain, seq, EntryKind::Prompt);
        }
        let key = CallKey {
            seq: entries,
            ordinal: 0,
        };
        let mut calls = Step::new(realm, parent, Epoch(1), 1);
        calls.entries = vec![entry(&mut chain, entries, EntryKind::Reply)];
        let asked = CallChangeKind::Asked {
            id: "toolu".into(),
            tool: "Agent".into(),
            tier: None,
        };
        calls.calls = vec![CallChange { key, change: asked }];
        let (kind, description, output) = (RunKind::Shell, "builds".into(), "/out".into());
        let change = RunChangeKind::Began {
            call: key,
            kind,
            description,
            output,
        };
        calls.runs = vec![RunChange {
            id: Uuid::now_v7(),
            change,
        }];
        self.runtime.block_on(store.commit(calls)).unwrap();
        let origin = Origin {
            parent,
            call: key,
            call_id: "toolu".into(),
            agent_type: "worker".into(),
            name: Some("kid".parse().unwrap()),
            description: "looks around".into(),
            terms: String::new(),
        };
        let mut child = Step::new(realm, AgentId::within(realm, Uuid::now_v7()), Epoch(1), 1);
        let usage = RunUsage::default();
        let ended = EndedRun {
            run: Uuid::now_v7(),
            error: None,
            by_person: false,
            usage,
            text: None,
            mail: 0,
            value: None,
            worktree: None,
        };
        child.birth = Some(Box::new(birth(Some(Box::new(origin)))));
        (child.starter, child.ended) = (Some(parent), Some(Box::new(ended)));
        child.state = Some(StateChange::To(AgentState::Completed));
        self.runtime.block_on(store.commit(child)).unwrap();
    }

    /// A team of that session, with a member that is asked to end, two tasks and a message.
    fn team(&self, store: &Sqlite, realm: RealmId, lead: AgentId) {
        let team: Name = "parser".parse().unwrap();
        let joining = Joining {
            agent: lead,
            agent_type: String::new(),
            model: String::new(),
            prompt: String::new(),
            color: None,
            backend: String::new(),
            cwd: "/".into(),
            role: None,
            takes: posse_protocol::Takes::Any,
        };
        let task = |blocked_by| {
            let task = NewTask {
                subject: "x".into(),
                blocked_by,
                ..NewTask::default()
            };
            Op::CreateTask {
                team: Some(team.clone()),
                task: Box::new(task),
            }
        };
        let ops = vec![
            Op::CreateTeam {
                team: team.clone(),
                description: String::new(),
                settings: serde_json::Map::new(),
                lead: Box::new(joining.clone()),
            },
            Op::Join {
                team: team.clone(),
                name: "ann".parse().unwrap(),
                member: Box::new(Joining {
                    agent: Uuid::now_v7().into(),
                    ..joining
                }),
                greeting: None,
            },
            Op::Request {
                id: Uuid::now_v7().into(),
                to: Address::Member {
                    team: team.clone(),
                    name: "ann".parse().unwrap(),
                },
                kind: posse_protocol::RequestKind::Shutdown,
                text: "enough".into(),
            },
            task(Vec::new()),
            task(vec![posse_protocol::TaskId(1)]),
            Op::Send {
                id: Uuid::now_v7().into(),
                to: Address::Agent(lead),
                kind: posse_protocol::MailKind::Text,
                summary: "é".into(),
                body: "hello".into(),
            },
        ];
        let results = self
            .runtime
            .block_on(store.operate(Order {
                realm,
                ops,
                at_ms: 1,
            }))
            .unwrap();
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }

    /// Returns an agent of the realm that begins with the entries of another, and adds one with a
    /// head.
    fn forked(&self, store: &Sqlite, realm: RealmId, from: Segment, at_ms: i64) -> AgentId {
        let (head, encoded) = (
            Encoded {
                bytes: b"\"shared\"".as_slice().into(),
                mark_at: Some(3),
            },
            encoded(),
        );
        let sum = checksum(0, 0, EntryKind::Prompt, Some(&head), &encoded);
        let agent = AgentId::within(realm, Uuid::now_v7());
        let mut step = Step::new(realm, agent, Epoch(1), at_ms);
        step.birth = Some(Box::new(Birth {
            segments: vec![from],
            ..birth(None)
        }));
        step.entries = vec![NewEntry {
            seq: 0,
            kind: EntryKind::Prompt,
            head: Some(head),
            loaded: None,
            encoded,
            checksum: sum,
            reply: None,
        }];
        step.charges = vec![Charge {
            model: "m".into(),
            usage: Usage::default(),
            cost: None,
            purpose: Purpose::Compaction,
            missed: 7,
        }];
        let agent = step.agent;
        self.runtime.block_on(store.commit(step)).unwrap();
        agent
    }

    /// Adds a compaction to an agent that has so many entries, and gives the agent up.
    fn compacted(&self, store: &Sqlite, realm: RealmId, agent: AgentId, entries: u64) {
        let mut step = Step::new(realm, agent, Epoch(1), 1);
        // A chain of its own: what was before does not matter.
        step.entries = vec![entry(&mut 0, entries, EntryKind::Compaction)];
        self.runtime.block_on(store.commit(step)).unwrap();
    }

    /// Returns how many rows a table has.
    fn rows(&self, table: &str) -> i64 {
        let connection = Connection::open(&self.path).unwrap();
        connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .unwrap()
    }

    fn faults(&self) -> Vec<String> {
        check(&self.path, &mut |_| {}).unwrap().faults
    }
}

fn encoded() -> Encoded {
    Encoded {
        bytes: b"\"hello\"".as_slice().into(),
        mark_at: None,
    }
}

fn birth(origin: Option<Box<Origin>>) -> Birth {
    Birth {
        origin,
        path: "/main".into(),
        model: "m".into(),
        dialect: "test".into(),
        mode: PermissionMode::Default,
        cwd: "/".into(),
        preamble: encoded(),
        segments: Vec::new(),
    }
}

/// Returns the next link of a chain.
fn entry(chain: &mut u64, seq: u64, kind: EntryKind) -> NewEntry {
    let encoded = encoded();
    *chain = checksum(*chain, seq, kind, None, &encoded);
    NewEntry {
        seq,
        kind,
        head: None,
        loaded: None,
        encoded,
        checksum: *chain,
        reply: None,
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn every_broken_rule_is_found() {
    let shelf = Shelf::new();
    let store = Sqlite::open(&shelf.path).unwrap();
    let (realm, agent) = shelf.session(&store, 3, 1);
    shelf.team(&store, realm, agent);
    shelf.below(&store, realm, agent, 3);
    shelf.compacted(&store, realm, agent, 4);
    shelf.forked(
        &store,
        realm,
        Segment {
            agent,
            from: 4,
            to: 5,
        },
        1,
    );
    drop(store);
    let health = check(&shelf.path, &mut |_| {}).unwrap();
    assert_eq!(
        health,
        Health {
            agents: 3,
            entries: 6,
            teams: 1,
            tasks: 2,
            messages: 2,
            misplaced: 0,
            faults: Vec::new()
        }
    );
    let breaks = [
        ("UPDATE entry SET bytes = x'00' WHERE seq = 1", "is damaged at entry 1"),
        ("UPDATE entry SET bytes = 'text' WHERE seq = 1", "is damaged at entry 1"),
        ("DELETE FROM entry WHERE seq = 1", "is damaged at entry 1"),
        ("DELETE FROM entry WHERE seq = 4", "number of entries is wrong"),
        ("DELETE FROM entry WHERE seq = 4", "a segment names entries that do not exist"),
        ("DELETE FROM entry WHERE seq = 4", "last compaction is wrong"),
        ("UPDATE agent SET since = NULL", "last compaction is wrong"),
        ("UPDATE segment SET beyond = 6", "a segment names entries that do not exist"),
        ("UPDATE segment SET first = 3", "does not stand for those before it"),
        ("UPDATE entry SET kind = 1 WHERE seq = 4", "does not stand for those before it"),
        ("UPDATE entry SET kind = 1 WHERE seq = 4", "is damaged at entry 4"),
        ("DELETE FROM preamble WHERE mark_at = 3", "is damaged at entry 0: what it begins with is missing"),
        ("UPDATE preamble SET bytes = x'00' WHERE mark_at = 3", "is damaged at entry 0"),
        ("UPDATE preamble SET bytes = x'00' WHERE mark_at = 3", "the shared content of the agents"),
        ("UPDATE preamble SET mark_at = 2 WHERE mark_at = 3", "the shared content of the agents"),
        ("UPDATE preamble SET bytes = x'00' WHERE mark_at IS NULL", "the shared content of the \
                                                                     agents"),
        ("UPDATE charge SET purpose = 2", "a total"),
        ("DELETE FROM agent", "entries belong to no agent"),
        ("DELETE FROM preamble", "preamble is missing"),
        ("DELETE FROM agent", "rows of run belong to no agent"),
        ("UPDATE agent SET inherited = 2", "inherited"),
        ("DELETE FROM agent WHERE parent IS NULL", "a sub-agent's parent does not exist"),
        ("UPDATE agent SET call_id = 'x' WHERE parent IS NOT NULL", "a call that its parent did not make"),
        ("DELETE FROM agent WHERE parent IS NULL", "notify of an agent's end does not exist"),
        ("UPDATE agent SET state = 9 WHERE parent IS NULL", "state is invalid"),
        ("UPDATE agent SET state = 4", "does not match its last run"),
        ("UPDATE agent SET ended = '{'", "does not match its last run"),
        (
            "UPDATE agent SET name = 'x' WHERE parent IS NULL AND inherited = 0",
            "a root is registered under a name",
        ),
        ("UPDATE run SET call_ordinal = 1", "begun by a call that its agent did not make"),
        ("INSERT INTO segment SELECT realm, id, 1, id, 0, 9 FROM agent", "a segment names entries"),
        ("UPDATE segment SET source = x'00112233445566778899aabbccddeeff'", "a segment names entries"),
        ("INSERT INTO call SELECT realm, id, 0, 0, 'c', 't', 0, NULL, NULL, NULL, NULL FROM agent", "not \
                                                                                               a \
                                                                                               reply"),
        ("INSERT INTO total SELECT realm, id, 'm', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 FROM agent", "a total"),
        ("DELETE FROM total", "a total"),
        ("UPDATE inbox SET waiting = 2", "a wrong message count"),
        ("UPDATE inbox SET bytes = 6", "an inbox has a wrong size"),
        ("UPDATE inbox SET last = 0", "a number that it has not given"),
        ("DELETE FROM inbox", "mail lies in no inbox"),
        ("UPDATE inbox SET host = x'00112233445566778899aabbccddeeff'", "held by something other"),
        ("UPDATE list SET last = 1", "a list has a task"),
        ("DELETE FROM list", "a task is in no list"),
        ("UPDATE task SET waits = 0", "has a wrong count of the tasks it waits for: session \
                                       00000000-0000-7"),
        ("UPDATE task SET waits = 0", ", team parser, task 2"),
        ("DELETE FROM task WHERE id = 1", "a task waits for one that is not there"),
        (
            "UPDATE agent SET host = NULL; UPDATE inbox SET host = NULL; UPDATE task
             SET status = 1, owner = 'a', owner_agent = (SELECT id FROM agent LIMIT 1) WHERE id = 1",
            "no process hosts its agent",
        ),
        ("UPDATE team SET lead = x'00112233445566778899aabbccddeeff'", "lead is not a member"),
        ("DELETE FROM team", "a member has no team"),
        ("DELETE FROM used_name", "a member's name could be given again"),
        ("DELETE FROM member WHERE name = 'ann'", "an open request cannot be answered by any \
                                                   member of its team"),
    ];
    let whole = std::fs::read(&shelf.path).unwrap();
    for (sql, fault) in breaks {
        std::fs::write(&shelf.path, &whole).unwrap();
        let connection = Connection::open(&shelf.path).unwrap();
        connection.execute_batch(sql).unwrap();
        connection.close().unwrap();
        let faults = shelf.faults();
        assert!(
            faults.iter().any(|line| line.contains(fault)),
            "{sql}: {faults:?}"
        );
    }
}

#[test]
fn a_page_that_is_gone_is_a_fault_and_no_failure() {
    let shelf = Shelf::new();
    let store = Sqlite::open(&shelf.path).unwrap();
    shelf.session(&store, 5000, 1);
    drop(store);
    let mut bytes = std::fs::read(&shelf.path).unwrap();
    let (page, pages) = (4096, bytes.len() / 4096);
    bytes[(pages - 4) * page..(pages - 2) * page].fill(0xa5);
    std::fs::write(&shelf.path, bytes).unwrap();
    let faults = shelf.faults();
    assert!(
        faults.iter().any(|fault| fault.starts_with("the file: ")),
        "{faults:?}"
    );
    assert!(
        !faults
            .iter()
            .any(|fault| fault.contains('\n') || fault.contains("***")),
        "{faults:?}"
    );
}

#[test]
fn what_is_held_or_was_used_stays() {
    let shelf = Shelf::new();
    let store = Sqlite::open(&shelf.path).unwrap();
    let (_, old) = shelf.session(&store, 1200, 10);
    let (_, held) = shelf.session(&store, 2, 10);
    let (_, used) = shelf.session(&store, 2, 30);
    for agent in [old, used] {
        shelf
            .runtime
            .block_on(store.release(agent, Epoch(1)))
            .unwrap();
    }
    let expected = Unused {
        id: old.uuid(),
        sessions: 1,
        agents: 1,
        teams: Vec::new(),
        used_ms: 10,
        bytes: unused(&shelf.path, 20).unwrap()[0].bytes,
        cwd: Some("/".into()),
    };
    assert!(expected.bytes >= 1200, "{expected:?}");
    assert_eq!(unused(&shelf.path, 20).unwrap(), [expected]);
    let gone = collect_those(&shelf.path, 20, &|it| it.agents != 1, &mut |_| {}).unwrap();
    assert_eq!(gone, Collected::default(), "it is not meant");
    let free = || {
        let connection = Connection::open(&shelf.path).unwrap();
        connection
            .query_row("PRAGMA freelist_count", [], |row| row.get::<_, u32>(0))
            .map(u64::from)
            .unwrap()
            * 4096
    };
    let (mut told, before) = (Vec::new(), free());
    let gone = collect(&shelf.path, 20, &mut |so_far| told.push(so_far)).unwrap();
    assert_eq!(
        gone,
        Collected {
            sessions: 1,
            agents: 1,
            teams: 0,
            bytes: free() - before
        }
    );
    assert!(gone.bytes > 0 && told == [gone], "{told:?}");
    let read = |agent| {
        shelf
            .runtime
            .block_on(store.read(agent))
            .map(|it| it.entries.len())
    };
    assert!(matches!(read(old), Err(StoreError::NotFound { .. })));
    assert_eq!((read(held).unwrap(), read(used).unwrap()), (2, 2));
    assert_eq!(
        check(&shelf.path, &mut |_| {}).unwrap(),
        Health {
            agents: 2,
            entries: 4,
            ..Health::default()
        }
    );
    // What a removal that was broken off has left goes with the next.
    let connection = Connection::open(&shelf.path).unwrap();
    connection
        .execute("DELETE FROM agent WHERE id = ?1", [used.uuid().as_bytes()])
        .unwrap();
    assert!(
        shelf.faults()[0].contains("`posse store gc` removes them"),
        "{:?}",
        shelf.faults()
    );
    collect(&shelf.path, 20, &mut |_| {}).unwrap();
    assert_eq!(shelf.faults(), Vec::<String>::new());
}

#[test]
fn what_a_fork_begins_with_stays_while_anything_of_its_realm_is_used() {
    let shelf = Shelf::new();
    let store = Sqlite::open(&shelf.path).unwrap();
    let (realm, parent) = shelf.session(&store, 3, 1);
    shelf.compacted(&store, realm, parent, 3);
    // Both before the parent's compaction and from it on; two of them begin their own entries the
    // same way.
    let old = shelf.forked(
        &store,
        realm,
        Segment {
            agent: parent,
            from: 0,
            to: 3,
        },
        1,
    );
    let late = shelf.forked(
        &store,
        realm,
        Segment {
            agent: parent,
            from: 3,
            to: 4,
        },
        1,
    );
    let (other_realm, other) = shelf.session(&store, 3, 1);
    let alone = shelf.forked(
        &store,
        other_realm,
        Segment {
            agent: other,
            from: 0,
            to: 3,
        },
        1,
    );
    for agent in [parent, old, late, other, alone] {
        shelf
            .runtime
            .block_on(store.release(agent, Epoch(1)))
            .unwrap();
    }
    assert_eq!(
        shelf.rows("preamble"),
        4,
        "in each realm a preamble and a head"
    );
    // One of them is used again; its parent and its sibling have ended long ago.
    let taken = shelf.runtime.block_on(store.take(late)).unwrap();
    let ended = Some(StateChange::To(AgentState::Idle));
    let step = Step {
        state: ended,
        ..Step::new(realm, late, taken.epoch, 30)
    };
    shelf.runtime.block_on(store.commit(step)).unwrap();
    shelf
        .runtime
        .block_on(store.release(late, taken.epoch))
        .unwrap();
    // A call about a session that nobody uses does not make it look used.
    let charge = Charge {
        model: "m".into(),
        usage: Usage::default(),
        cost: None,
        purpose: Purpose::Question,
        missed: 0,
    };
    let ops = vec![Op::Charge {
        agent: other,
        charge: Box::new(charge),
    }];
    let booked = shelf
        .runtime
        .block_on(store.operate(Order {
            realm: other_realm,
            ops,
            at_ms: 99,
        }))
        .unwrap();
    assert!(booked[0].is_ok(), "{booked:?}");

    let gone = collect(&shelf.path, 20, &mut |_| {}).unwrap();
    assert_eq!((gone.sessions, gone.agents), (2, 2), "the other realm");
    let read = |agent| shelf.runtime.block_on(store.read(agent));
    assert!(matches!(read(alone), Err(StoreError::NotFound { .. })));
    for (agent, inherited) in [(old, 3), (late, 1)] {
        let read = read(agent).unwrap();
        assert_eq!(
            (read.inherited, read.entries.len()),
            (inherited, inherited + 1)
        );
        assert!(read.entries[inherited].entry.head.is_some());
    }
    assert_eq!(shelf.faults(), Vec::<String>::new());
    assert_eq!(shelf.rows("preamble"), 2);

    let gone = collect(&shelf.path, 40, &mut |_| {}).unwrap();
    assert_eq!((gone.sessions, gone.agents), (3, 3));
    for table in TABLES.iter().chain(&["preamble"]) {
        assert_eq!(shelf.rows(table), 0, "{table}");
    }
}

#[test]
fn a_copy_is_whole_and_overwrites_nothing() {
    let shelf = Shelf::new();
    let store = Sqlite::open(&shelf.path).unwrap();
    shelf.session(&store, 50, 1);
    let to = shelf.directory.join("copy.db");
    let size = back_up(&shelf.path, &to, &BackupStop::default()).unwrap();
    assert_eq!(size, std::fs::metadata(&to).unwrap().len());
    assert_eq!(
        check(&to, &mut |_| {}).unwrap(),
        Health {
            agents: 1,
            entries: 50,
            ..Health::default()
        }
    );
    assert_eq!(versions(&to).unwrap(), versions(&shelf.path).unwrap());
    let mode: String = Connection::open(&to)
        .unwrap()
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    let before = std::fs::read(&to).unwrap();
    assert!(back_up(&shelf.path, &to, &BackupStop::default()).is_err());
    assert_eq!(std::fs::read(&to).unwrap(), before);
    let stop = BackupStop::default();
    stop.ask();
    assert!(back_up(&shelf.path, &shelf.directory.join("given-up.db"), &stop).is_err());
    let left: Vec<_> = std::fs::read_dir(&shelf.directory)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert!(
        !left.iter().any(|name| [".new", "up.db"]
            .iter()
            .any(|end| name.to_string_lossy().ends_with(end))),
        "{left:?}"
    );
}
