//! Builders of steps, for contracts and property tests.

use posse_port::model::Encoded;
use posse_port::store::{
    Address, Birth, CallChange, CallChangeKind, CallKey, Done, Epoch, Joining, NewEntry, NewTask,
    Op, OpResult, Operation, Order, Origin, Receipt, Step, Store, StoreError, TaskChange,
    Transcript, checksum, with_loaded,
};
use posse_protocol::{
    AgentId, EntryKind, ListId, MailId, MailKind, Name, PermissionMode, RealmId, RequestKind,
    Takes, TaskId,
};
use uuid::Uuid;

/// The one realm of these builders.
pub fn realm() -> RealmId {
    "01990000-0000-7000-8000-0000000000a0".parse().unwrap()
}

/// Another realm, in which agents can have the same ids.
pub fn other_realm() -> RealmId {
    "01990000-0000-7000-8000-0000000010a0".parse().unwrap()
}

/// An agent whose id begins with `number`.
pub fn agent(number: u64) -> AgentId {
    format!("{number:02x}990000-0000-7000-8000-0000000000a0")
        .parse()
        .unwrap()
}

/// A step that does nothing yet.
pub fn step(number: u64, epoch: u64) -> Step {
    Step::new(realm(), agent(number), Epoch(epoch), 10)
}

/// The first step of a root agent.
pub fn birth(number: u64) -> Step {
    let birth = Birth {
        origin: None,
        path: "/main".into(),
        model: "a-model".into(),
        dialect: "test".into(),
        mode: PermissionMode::Default,
        cwd: "/work".into(),
        preamble: Encoded {
            bytes: "\"system\":\"hello\"".into(),
            mark_at: Some(number as usize),
        },
        segments: Vec::new(),
    };
    Step {
        birth: Some(Box::new(birth)),
        ..step(number, 1)
    }
}

/// The origin of a sub-agent of `parent`: its first call, without a name.
pub fn origin(parent: u64) -> Box<Origin> {
    Box::new(Origin {
        parent: agent(parent),
        call: CallKey { seq: 1, ordinal: 0 },
        call_id: "toolu_1".into(),
        agent_type: "worker".into(),
        name: None,
        description: "look around".into(),
        terms: r#"{"turns":3}"#.into(),
    })
}

/// The first step of a sub-agent, with a name if that is not empty.
pub fn child(number: u64, parent: u64, called: &str) -> Step {
    let mut born = birth(number);
    if let Some(birth) = &mut born.birth {
        birth.path = format!("/main/{number}");
        birth.origin = Some(Box::new(Origin {
            name: called.parse().ok(),
            ..*origin(parent)
        }));
    }
    born
}

/// An entry, with the checksum of a first one.
pub fn entry(seq: u64, kind: EntryKind, text: &str) -> NewEntry {
    let encoded = Encoded {
        bytes: text.to_owned().into(),
        mark_at: None,
    };
    NewEntry {
        seq,
        kind,
        head: None,
        loaded: None,
        checksum: checksum(0, seq, kind, None, &encoded),
        encoded,
        reply: None,
    }
}

/// An entry with a head, with the checksum of a first one.
pub fn headed(seq: u64, kind: EntryKind, head: &str, text: &str) -> NewEntry {
    let head = Encoded {
        bytes: head.to_owned().into(),
        mark_at: head.len().checked_sub(1),
    };
    let bare = entry(seq, kind, text);
    NewEntry {
        checksum: checksum(0, seq, kind, Some(&head), &bare.encoded),
        head: Some(head),
        ..bare
    }
}

/// An entry that brings definitions, with the checksum of a first one.
pub fn loading(entry: NewEntry, definitions: &str) -> NewEntry {
    let loaded = Encoded {
        bytes: definitions.to_owned().into(),
        mark_at: None,
    };
    NewEntry {
        checksum: with_loaded(entry.checksum, Some(&loaded)),
        loaded: Some(loaded),
        ..entry
    }
}

/// Entries with chained checksums.
pub fn chained(mut entries: Vec<NewEntry>) -> Vec<NewEntry> {
    let mut last = 0;
    for entry in &mut entries {
        last = checksum(
            last,
            entry.seq,
            entry.kind,
            entry.head.as_ref(),
            &entry.encoded,
        );
        last = with_loaded(last, entry.loaded.as_ref());
        entry.checksum = last;
    }
    entries
}

/// A change of a tool call.
pub fn call(seq: u64, ordinal: u32, change: CallChangeKind) -> CallChange {
    CallChange {
        key: CallKey { seq, ordinal },
        change,
    }
}

/// A name.
pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The list of a team, or of the session if the name is empty.
pub fn list(team: &str) -> ListId {
    ListId {
        realm: realm(),
        team: team.parse().ok(),
    }
}

/// An agent that joins a team.
pub fn joining(number: u64) -> Box<Joining> {
    Box::new(Joining {
        agent: agent(number),
        agent_type: "worker".into(),
        model: "a-model".into(),
        prompt: format!("You are {number}."),
        color: Some("blue".into()),
        backend: "in-process".into(),
        cwd: "/work".into(),
        role: Some("worker".into()),
        takes: Takes::Only {
            unmarked: true,
            roles: vec!["worker".into()],
        },
    })
}

/// Creates a team with a lead.
pub fn create_team(team: &str, lead: u64) -> Op {
    let settings = serde_json::from_str("{\"a\":[1]}").unwrap();
    Op::CreateTeam {
        team: name(team),
        description: "It works.".into(),
        settings,
        lead: joining(lead),
    }
}

/// Adds an agent to a team.
pub fn join(team: &str, called: &str, number: u64) -> Op {
    Op::Join {
        team: name(team),
        name: name(called),
        member: joining(number),
        greeting: None,
    }
}

/// Sends a request: for approval of a plan, or to end.
pub fn ask(id: MailId, to: Address, text: &str, plan: bool) -> Op {
    let kind = if plan {
        RequestKind::Plan
    } else {
        RequestKind::Shutdown
    };
    Op::Request {
        id,
        to,
        kind,
        text: text.into(),
    }
}

/// Answers a plan request, by mail with this number.
pub fn answer(request: MailId, number: u64, approve: bool) -> Op {
    let (id, kind) = (
        Uuid::from_u128(u128::from(number)).into(),
        RequestKind::Plan,
    );
    Op::Respond {
        id,
        request,
        kind,
        approve,
        text: "as you like".into(),
    }
}

/// Sends a plain message.
pub fn send(to: Address, body: &str) -> Op {
    let (id, summary) = (Uuid::now_v7().into(), String::new());
    Op::Send {
        id,
        to,
        kind: MailKind::Text,
        summary,
        body: body.into(),
    }
}

/// Creates a task that waits for others; of the session if the team has no name.
pub fn create(team: &str, subject: &str, blocked_by: &[u64]) -> Op {
    let blocked_by = blocked_by.iter().copied().map(TaskId).collect();
    let task = Box::new(NewTask {
        subject: subject.into(),
        blocked_by,
        ..NewTask::default()
    });
    Op::CreateTask {
        team: team.parse().ok(),
        task,
    }
}

/// Changes a task of any version.
pub fn update(team: &str, id: u64, change: TaskChange) -> Op {
    Op::UpdateTask {
        team: team.parse().ok(),
        id: TaskId(id),
        expect: None,
        change: Box::new(change),
    }
}

/// Claims a task.
pub fn claim(team: &str, id: u64) -> Op {
    Op::Claim {
        team: team.parse().ok(),
        id: TaskId(id),
    }
}

/// Performs operations as a person.
pub async fn order(store: &dyn Store, ops: Vec<Op>) -> Vec<OpResult> {
    store
        .operate(Order {
            realm: realm(),
            ops,
            at_ms: 10,
        })
        .await
        .unwrap()
}

/// A step of operations by an agent, for no call.
pub fn acts(number: u64, epoch: u64, ops: Vec<Op>) -> Step {
    let operations = ops
        .into_iter()
        .map(|op| Operation { call: None, op })
        .collect();
    Step {
        operations,
        ..step(number, epoch)
    }
}

/// Performs one operation as an agent of epoch 1.
pub async fn act(store: &dyn Store, number: u64, op: Op) -> OpResult {
    store
        .commit(acts(number, 1, vec![op]))
        .await
        .unwrap()
        .results
        .remove(0)
}

/// The receipt of a message.
pub fn receipts(result: OpResult) -> Vec<Receipt> {
    match result {
        Ok(Done::Sent(receipts)) => receipts,
        other => panic!("not sent: {other:?}"),
    }
}

/// Fails with the number of the first own entry whose checksum is wrong.
pub fn verify(transcript: &Transcript) -> Result<(), u64> {
    let mut last = 0;
    for stored in &transcript.entries[transcript.inherited..] {
        let NewEntry {
            seq,
            kind,
            head,
            loaded,
            encoded,
            checksum: stored,
            ..
        } = &stored.entry;
        last = checksum(last, *seq, *kind, head.as_ref(), encoded);
        last = with_loaded(last, loaded.as_ref());
        if last != *stored {
            return Err(*seq);
        }
    }
    Ok(())
}

/// Returns the result as one word.
pub fn fate<T>(result: &Result<T, StoreError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(StoreError::Fenced { .. }) => "fenced",
        Err(StoreError::Held { .. }) => "held",
        Err(StoreError::NotFound { .. }) => "not found",
        Err(StoreError::Damaged { .. }) => "damaged",
        Err(StoreError::Full { .. }) => "full",
        Err(StoreError::Engine { .. }) => "engine",
        Err(StoreError::TooNew { .. }) => "too new",
        Err(StoreError::NameTaken { .. }) => "name taken",
        Err(StoreError::BadStep(_)) => "bad step",
    }
}
