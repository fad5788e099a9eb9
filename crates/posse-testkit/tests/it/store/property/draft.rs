//! What is tried: right, and wrong in every way that the port speaks of.

use std::sync::Arc;

use posse_protocol::{Cost, EntryKind, MailId, MailKind, Name, PermissionMode, TaskId, TaskStatus, Usage};
use posse_runtime::port::store::{
    Address, AgentState, AskChangeKind, AskKind, CallChangeKind, CallOutcome, Charge, Joining, MAIL_BYTES,
    NewTask, Op, RunChangeKind, RunState, SeenFile, StateChange, TEXT_BYTES, TaskChange,
};
use posse_testkit::store_contract::agent;
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub(super) const AGENTS: u64 = 4;
pub(super) const HOSTS: usize = 3;
pub(super) const TEAMS: [&str; 2] = ["blue", "red"];

/// What is done.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// Steps that are called before any is waited for.
    Commit {
        host: usize,
        steps: Vec<Draft>,
    },
    /// An agent's last step once more.
    Repeat {
        host: usize,
        agent: u64,
    },
    Order {
        host: usize,
        ops: Vec<Op>,
    },
    Take {
        host: usize,
        agent: u64,
    },
    Release {
        host: usize,
        agent: u64,
        epoch: Which,
    },
    /// The host ends and another takes its place.
    Restart {
        host: usize,
    },
    /// Everything is compared.
    Compare {
        host: usize,
    },
}

/// An epoch that was given, or none that ever was.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Last,
    Before,
    Never,
}

/// A step, right but for what it says is wrong.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) agent: u64,
    pub(super) born: Option<Option<(u64, u64, u64)>>,
    pub(super) epoch: Which,
    /// How far its first entry is from where it belongs, and its second from its first.
    pub(super) off: u64,
    pub(super) gap: bool,
    pub(super) kinds: Vec<EntryKind>,
    pub(super) calls: Vec<(u64, u32, CallChangeKind)>,
    pub(super) charge: Option<Charge>,
    pub(super) seen: Option<SeenFile>,
    pub(super) mail: Option<Taking>,
    /// Operations, some of them for a call.
    pub(super) ops: Vec<(Option<(u64, u32)>, Op)>,
    pub(super) ask: Option<(u8, AskChangeKind)>,
    pub(super) run: Option<(u8, RunChangeKind)>,
    pub(super) state: Option<StateChange>,
    pub(super) mode: Option<PermissionMode>,
}

/// How mail is taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taking {
    /// All that waits, in the first entry of the step.
    All,
    /// This number, whatever it is.
    Number(u64),
    /// What waits, in an entry of another step.
    Elsewhere,
    /// What waits, twice.
    Twice,
}

pub(super) fn deeds() -> impl Strategy<Value = Deed> {
    let host = 0..HOSTS;
    let agent = 1..=AGENTS;
    prop_oneof![
        20 => (host.clone(), vec(drafts(), 1..4)).prop_map(|(host, steps)| Deed::Commit { host, steps }),
        1 => (host.clone(), agent.clone()).prop_map(|(host, agent)| Deed::Repeat { host, agent }),
        6 => (host.clone(), vec(ops(), 1..4)).prop_map(|(host, ops)| Deed::Order { host, ops }),
        4 => (host.clone(), agent.clone()).prop_map(|(host, agent)| Deed::Take { host, agent }),
        1 => (host.clone(), agent, which())
            .prop_map(|(host, agent, epoch)| Deed::Release { host, agent, epoch }),
        1 => host.clone().prop_map(|host| Deed::Restart { host }),
        1 => host.prop_map(|host| Deed::Compare { host }),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![18 => Just(Which::Last), 1 => Just(Which::Before), 1 => Just(Which::Never)]
}

fn drafts() -> impl Strategy<Value = Draft> {
    let kinds = select(vec![EntryKind::Prompt, EntryKind::Reply, EntryKind::Results]);
    let segment = (1..=AGENTS, 0..3_u64, 0..4_u64);
    let states = vec![
        StateChange::To(AgentState::Idle),
        StateChange::To(AgentState::Running),
        StateChange::To(AgentState::Paused),
        StateChange::IdleUnlessMail,
    ];
    let call = (0..6_u64, 0..2_u32);
    let taking = prop_oneof![
        12 => Just(Taking::All),
        1 => (0..9_u64).prop_map(Taking::Number),
        1 => Just(Taking::Elsewhere),
        1 => Just(Taking::Twice),
    ];
    let rarely = prop_oneof![29 => Just(0), 1 => 1..=2_u64];
    (
        (1..=AGENTS, weighted(0.15, of(segment)), which(), rarely, proptest::bool::weighted(0.02)),
        (vec(kinds, 0..3), vec((0..6_u64, 0..2_u32, calls()), 0..2), of(charges()), of(seen())),
        (weighted(0.4, taking), vec((weighted(0.1, call), ops()), 0..3)),
        (weighted(0.1, (0..3_u8, asks())), weighted(0.1, (0..3_u8, runs()))),
        (of(select(states)), of(select(PermissionMode::ALL.to_vec()))),
    )
        .prop_map(
            |((agent, born, epoch, off, gap), (kinds, calls, charge, seen), (mail, ops), more, last)| {
                let ((ask, run), (state, mode)) = (more, last);
                #[rustfmt::skip]
            let draft = Draft {
                agent, born, epoch, off, gap, kinds, calls, charge, seen, mail, ops, ask, run, state, mode,
            };
                draft
            },
        )
}

fn calls() -> impl Strategy<Value = CallChangeKind> {
    let outcome = CallOutcome { content: Arc::new([]), is_error: true };
    select(vec![
        CallChangeKind::Asked { id: "toolu".into(), tool: "Bash".into() },
        CallChangeKind::Begun,
        CallChangeKind::Done(outcome),
    ])
}

fn charges() -> impl Strategy<Value = Charge> {
    (any::<bool>(), weighted(0.9, 0..100_u64)).prop_map(|(which, tokens)| Charge {
        model: if which { "one" } else { "two" }.into(),
        usage: Usage { input: tokens.unwrap_or(1), ..Usage::default() },
        cost: tokens.map(Cost::from_pico_usd),
    })
}

fn seen() -> impl Strategy<Value = SeenFile> {
    (any::<bool>(), any::<u64>())
        .prop_map(|(which, version)| SeenFile { path: if which { "/a" } else { "/b" }.into(), version })
}

fn asks() -> impl Strategy<Value = AskChangeKind> {
    let kinds = vec![AskKind::Permission, AskKind::Plan, AskKind::Shutdown];
    let asked = select(kinds).prop_map(|kind| AskChangeKind::Asked { kind, about: "{}".into() });
    prop_oneof![asked, Just(AskChangeKind::Settled)]
}

fn runs() -> impl Strategy<Value = RunChangeKind> {
    let ends =
        vec![RunState::Running, RunState::Completed, RunState::Partial, RunState::Failed, RunState::Killed];
    let began =
        RunChangeKind::Began { kind: "bash".into(), description: "builds".into(), output: "/out".into() };
    prop_oneof![
        Just(began),
        select(ends).prop_map(RunChangeKind::Ended),
        (0..9_u64).prop_map(|entry| RunChangeKind::Told { entry }),
    ]
}

fn teams() -> impl Strategy<Value = Name> {
    prop_oneof![19 => select(TEAMS.to_vec()), 1 => Just("grey")].prop_map(name)
}

fn lists() -> impl Strategy<Value = Option<Name>> {
    weighted(0.7, teams())
}

/// Names of members; a few that are reserved or nobody's.
fn names() -> impl Strategy<Value = Name> {
    select(vec!["a1", "a2", "a3", "a4", "a1", "a2", "a3", "a4", "nobody", "user", "team-lead"]).prop_map(name)
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn joining() -> impl Strategy<Value = Box<Joining>> {
    // The fifth is never born.
    (1..=AGENTS + 1).prop_map(|number| {
        Box::new(Joining {
            agent: agent(number),
            agent_type: "worker".into(),
            model: "a-model".into(),
            prompt: "work".into(),
            color: "red".into(),
            backend: "in-process".into(),
            cwd: "/work".into(),
        })
    })
}

/// A text; one in a hundred is one byte longer than what is kept.
fn texts(most: usize) -> impl Strategy<Value = String> {
    prop_oneof![99 => "[a-c]{0,3}", 1 => Just("x".repeat(most + 1))]
}

fn addresses() -> impl Strategy<Value = Address> {
    prop_oneof![
        (1..=AGENTS + 2).prop_map(|number| Address::Agent(agent(number))),
        (teams(), names()).prop_map(|(team, name)| Address::Member { team, name }),
        teams().prop_map(|team| Address::Others { team }),
    ]
}

fn tasks() -> impl Strategy<Value = TaskId> {
    (1..7_u64).prop_map(TaskId)
}

fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![Just(Value::Null), (0..3).prop_map(|number| json!({ "deep": number }))];
    vec((select(vec!["k", "l"]), value), 0..2)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn expected() -> impl Strategy<Value = Option<u64>> {
    weighted(0.3, 0..4_u64)
}

fn new_tasks() -> impl Strategy<Value = Box<NewTask>> {
    (texts(TEXT_BYTES), of("[a-c]{0,3}"), vec(tasks(), 0..2), metadata()).prop_map(
        |(description, active_form, blocked_by, metadata)| {
            Box::new(NewTask { subject: "s".into(), description, active_form, blocked_by, metadata })
        },
    )
}

fn changes() -> impl Strategy<Value = Box<TaskChange>> {
    let owners = of(select(vec!["a1", "a2", "a3", "team-lead", "/a1", "/a2", "user", "nobody"]));
    (
        (weighted(0.2, texts(TEXT_BYTES)), weighted(0.2, "[a-c]{0,2}"), weighted(0.2, "[a-c]{0,2}")),
        weighted(0.5, select(TaskStatus::ALL.to_vec())),
        weighted(0.25, owners),
        (vec(tasks(), 0..2), vec(tasks(), 0..2), metadata()),
    )
        .prop_map(
            |((subject, description, active_form), status, owner, (block_on, unblock_from, metadata))| {
                let owner = owner.map(|owner| owner.map(str::to_owned));
                #[rustfmt::skip]
            let change = TaskChange {
                subject, description, active_form, status, owner, block_on, unblock_from, metadata,
            };
                Box::new(change)
            },
        )
}

fn ops() -> impl Strategy<Value = Op> {
    let kinds = prop_oneof![4 => Just(MailKind::Text), 1 => select(MailKind::ALL.to_vec())];
    prop_oneof![
        8 => (any::<u128>(), addresses(), kinds, texts(MAIL_BYTES)).prop_map(|(id, to, kind, body)| Op::Send {
            id: MailId::from(Uuid::from_u128(id)), to, kind, summary: "in short".into(), body,
        }),
        3 => (teams(), metadata(), joining()).prop_map(|(team, settings, lead)| Op::CreateTeam {
            team, description: "d".into(), settings, lead,
        }),
        1 => teams().prop_map(|team| Op::DeleteTeam { team }),
        3 => (teams(), names(), joining()).prop_map(|(team, name, member)| Op::Join { team, name, member }),
        1 => (teams(), names()).prop_map(|(team, name)| Op::Leave { team, name }),
        2 => (teams(), names(), texts(TEXT_BYTES), expected())
            .prop_map(|(team, name, text, expect)| Op::WriteNote { team, name, text, expect }),
        6 => (lists(), new_tasks()).prop_map(|(team, task)| Op::CreateTask { team, task }),
        6 => (lists(), tasks(), expected(), changes())
            .prop_map(|(team, id, expect, change)| Op::UpdateTask { team, id, expect, change }),
        4 => (lists(), tasks()).prop_map(|(team, id)| Op::Claim { team, id }),
        3 => lists().prop_map(|team| Op::ClaimNext { team }),
    ]
}
