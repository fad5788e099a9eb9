//! What is tried: right, and wrong in every way that the port speaks of.

use std::sync::Arc;

use posse_port::store::{
    Address, AgentState, CallChangeKind, CallKey, CallOutcome, Charge, EndedRun, Greeting, Joining,
    MAIL_BYTES, NewTask, Op, QuestionChange, QuestionChangeKind, RunChangeKind, SeenFile,
    StateChange, TEXT_BYTES, TaskChange,
};
use posse_protocol::{
    Cost, EntryKind, MailId, MailKind, Name, PermissionMode, Purpose, RawJson, RequestKind,
    RunKind, RunStatus, RunUsage, Takes, TaskId, TaskStatus, Usage, WorktreeEnd,
};
use posse_testkit::store_contract::{agent, asking, given, question_number};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Agents of each realm; those of the second are counted from [`SECOND`] on.
pub(super) const AGENTS: u64 = 4;
const SECOND: u64 = 16;
pub(super) const HOSTS: usize = 3;
pub(super) const TEAMS: [&str; 2] = ["blue", "red"];

/// The number of a realm, of two in which everybody is called the same.
pub(super) fn home(agent: u64) -> u64 {
    agent / SECOND
}

/// The numbers of agents in a realm: some that are born, and two that never are.
pub(super) fn inhabitants(realm: u64) -> std::ops::RangeInclusive<u64> {
    realm * SECOND + 1..=realm * SECOND + AGENTS + 2
}

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
        realm: u64,
        ops: Vec<Rough>,
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
    /// The host ends, or is killed, and another takes its place.
    Restart {
        host: usize,
        killed: bool,
    },
    /// A team goes out, and comes in elsewhere: in a realm that is there, or a new one.
    Copy {
        host: usize,
        realm: u64,
        team: Name,
        to: Option<u64>,
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

/// An operation without its text, which is added when it is done: what failed is printed without it.
#[derive(Clone, Debug)]
pub(super) struct Rough {
    op: Op,
    text: Text,
}

/// A letter, so many times.
#[derive(Clone, Copy, Debug)]
struct Text {
    letter: char,
    length: usize,
}

impl Rough {
    /// The operation with its text.
    pub(super) fn op(&self) -> Op {
        let words = String::from(self.text.letter).repeat(self.text.length);
        let mut op = self.op.clone();
        match &mut op {
            Op::Send { body, .. } => *body = words,
            Op::WriteNote { text, .. } => *text = words,
            Op::CreateTask { task, .. } => task.description = words,
            Op::Request { text, .. } | Op::Respond { text, .. } => *text = words,
            Op::UpdateTask { change, .. } => change.subject = change.subject.take().map(|_| words),
            _ => {}
        }
        op
    }
}

/// A step, right but for what it says is wrong.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) agent: u64,
    /// It says that the agent lives in the other realm.
    pub(super) astray: bool,
    pub(super) born: Option<Born>,
    pub(super) epoch: Which,
    /// How far its first entry is from where it belongs, and its second from its first.
    pub(super) off: u64,
    pub(super) gap: bool,
    /// Entries, and which head they have.
    pub(super) kinds: Vec<(EntryKind, Option<u8>)>,
    pub(super) calls: Vec<(u64, u32, CallChangeKind)>,
    pub(super) charge: Option<Charge>,
    pub(super) reserved: Option<Charge>,
    pub(super) seen: Option<SeenFile>,
    pub(super) mail: Option<Taking>,
    /// Operations, some of them for a call.
    pub(super) ops: Vec<(Option<(u64, u32)>, Rough)>,
    pub(super) run: Option<(u8, RunChangeKind)>,
    pub(super) questions: Vec<QuestionChange>,
    pub(super) state: Option<StateChange>,
    pub(super) mode: Option<PermissionMode>,
    pub(super) ended: Option<EndedRun>,
    /// Who is told of its end from now on.
    pub(super) starter: Option<u64>,
}

/// How an agent is made.
#[derive(Clone, Debug)]
pub(super) struct Born {
    /// Whose entries its own begin with, and which.
    pub(super) segment: Option<(u64, Begin, u64)>,
    /// Its parent, and the name that it is registered under.
    pub(super) origin: Option<(u64, Option<Name>)>,
}

/// Where a segment begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Begin {
    /// At this entry, whatever it is.
    Number(u64),
    /// At the last compaction, if there is one.
    Compaction,
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
    let agent = prop_oneof![3 => born(0), 1 => born(1)];
    let order = |realm| {
        (0..HOSTS, vec(deeds_of(realm, 60), 1..4)).prop_map(move |(host, ops)| Deed::Order {
            host,
            realm,
            ops,
        })
    };
    prop_oneof![
        20 => (host.clone(), vec(drafts(), 1..4)).prop_map(|(host, steps)| Deed::Commit { host, steps }),
        1 => (host.clone(), agent.clone()).prop_map(|(host, agent)| Deed::Repeat { host, agent }),
        5 => order(0),
        1 => order(1),
        4 => (host.clone(), agent.clone()).prop_map(|(host, agent)| Deed::Take { host, agent }),
        1 => (host.clone(), agent, which())
            .prop_map(|(host, agent, epoch)| Deed::Release { host, agent, epoch }),
        1 => (host.clone(), any::<bool>()).prop_map(|(host, killed)| Deed::Restart { host, killed }),
        1 => (host.clone(), realms(), teams(), of(0..2_u64))
            .prop_map(|(host, realm, team, to)| Deed::Copy { host, realm, team, to }),
        1 => host.prop_map(|host| Deed::Compare { host }),
    ]
}

fn realms() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 1 => Just(1)]
}

/// Those of a realm that can be born.
fn born(realm: u64) -> std::ops::RangeInclusive<u64> {
    let all = inhabitants(realm);
    *all.start()..=*all.end() - 2
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![18 => Just(Which::Last), 1 => Just(Which::Before), 1 => Just(Which::Never)]
}

fn drafts() -> impl Strategy<Value = Draft> {
    prop_oneof![3 => drafts_in(0), 1 => drafts_in(1)]
}

fn drafts_in(realm: u64) -> impl Strategy<Value = Draft> {
    let kinds = prop_oneof![
        9 => select(vec![EntryKind::Prompt, EntryKind::Reply, EntryKind::Results]),
        1 => Just(EntryKind::Compaction),
        1 => Just(EntryKind::Model),
    ];
    let kinds = (kinds, weighted(0.2, 0..2_u8));
    let call = (0..6_u64, 0..2_u32);
    let taking = prop_oneof![
        12 => Just(Taking::All),
        1 => (0..9_u64).prop_map(Taking::Number),
        1 => Just(Taking::Elsewhere),
        1 => Just(Taking::Twice),
    ];
    let starter = weighted(0.1, anybody(realm));
    let rarely = prop_oneof![29 => Just(0), 1 => 1..=2_u64];
    (
        (
            born(realm),
            proptest::bool::weighted(0.01),
            weighted(0.15, births(realm)),
            which(),
            rarely,
            proptest::bool::weighted(0.02),
        ),
        (vec(kinds, 0..3), vec((0..6_u64, 0..2_u32, calls()), 0..2), of(charges()), of(seen()), of(reservations())),
        (weighted(0.4, taking), vec((weighted(0.1, call), deeds_of(realm, 1)), 0..3)),
        (weighted(0.1, (0..3_u8, runs())), prop_oneof![3 => Just(Vec::new()), 1 => vec(questions(), 1..3)]),
        (of(states()), of(select(PermissionMode::ALL.to_vec())), weighted(0.2, endings()), starter),
    )
        .prop_map(
            |(
                (agent, astray, born, epoch, off, gap),
                (kinds, calls, charge, seen, reserved),
                (mail, ops),
                (run, questions),
                last,
            )| {
                let (state, mode, ended, starter) = last;
                #[rustfmt::skip]
            let draft = Draft {
                agent, astray, born, epoch, off, gap, kinds, calls, charge, reserved, seen, mail, ops, run, questions, state,
                mode, ended, starter,
            };
                draft
            },
        )
}

fn births(realm: u64) -> impl Strategy<Value = Born> {
    let source = || prop_oneof![9 => born(realm), 1 => born(1 - realm)];
    let named = of(select(vec!["ann", "bob", "a1"]).prop_map(name));
    let begin = prop_oneof![
        6 => Just(Begin::Number(0)),
        3 => Just(Begin::Compaction),
        1 => (1..3_u64).prop_map(Begin::Number),
    ];
    (
        of((source(), begin, 0..4_u64)),
        weighted(0.6, (source(), named)),
    )
        .prop_map(|(segment, origin)| Born { segment, origin })
}

fn states() -> impl Strategy<Value = StateChange> {
    let all = || select(AgentState::ALL.to_vec());
    prop_oneof![
        all().prop_map(StateChange::To),
        all().prop_map(StateChange::UnlessMail)
    ]
}

fn endings() -> impl Strategy<Value = EndedRun> {
    (
        any::<u128>(),
        of(Just("no money".to_owned())),
        any::<bool>(),
    )
        .prop_map(|(run, error, by_person)| {
            let usage = RunUsage {
                total_tokens: 1,
                tool_uses: 2,
                duration_ms: 3,
            };
            let value = by_person.then(RawJson::empty_object);
            let worktree = error.clone().map(|kept| WorktreeEnd {
                path: "/t/a".into(),
                branch: "posse/a".into(),
                base: "3f".into(),
                kept: Some(kept),
            });
            EndedRun {
                run: Uuid::from_u128(run),
                error,
                by_person,
                usage,
                text: None,
                mail: 0,
                value,
                worktree,
            }
        })
}

fn calls() -> impl Strategy<Value = CallChangeKind> {
    let outcome = CallOutcome {
        content: Arc::new([]),
        is_error: true,
    };
    select(vec![
        CallChangeKind::Asked {
            id: "toolu".into(),
            tool: "Bash".into(),
            tier: None,
        },
        CallChangeKind::Begun { tier: None },
        CallChangeKind::Done(outcome),
    ])
}

fn charges() -> impl Strategy<Value = Charge> {
    let purposes = prop_oneof![Just(Purpose::Work), select(Purpose::ALL.to_vec())];
    (any::<bool>(), weighted(0.9, 0..100_u64), purposes).prop_map(|(which, tokens, purpose)| {
        Charge {
            model: if which { "one" } else { "two" }.into(),
            usage: Usage {
                input: tokens.unwrap_or(1),
                ..Usage::default()
            },
            cost: tokens.map(Cost::from_pico_usd),
            purpose,
            missed: tokens.unwrap_or_default() / 2,
        }
    })
}

fn reservations() -> impl Strategy<Value = Charge> {
    charges().prop_map(|charge| Charge {
        purpose: Purpose::InFlight,
        missed: 0,
        ..charge
    })
}

fn seen() -> impl Strategy<Value = SeenFile> {
    (any::<bool>(), any::<u64>()).prop_map(|(which, version)| SeenFile {
        path: if which { "/a" } else { "/b" }.into(),
        version,
    })
}

fn runs() -> impl Strategy<Value = RunChangeKind> {
    let began = (0..6_u64, 0..2_u32).prop_map(|(seq, ordinal)| RunChangeKind::Began {
        call: CallKey { seq, ordinal },
        kind: RunKind::Shell,
        description: "builds".into(),
        output: "/out".into(),
    });
    prop_oneof![
        began,
        select(RunStatus::ALL.to_vec()).prop_map(RunChangeKind::Ended)
    ]
}

fn questions() -> impl Strategy<Value = QuestionChange> {
    let closing = select(vec![
        QuestionChangeKind::Done,
        QuestionChangeKind::Withdrawn,
    ]);
    let closed = (question_numbers(), closing).prop_map(|(number, change)| QuestionChange {
        id: question_number(number),
        change,
    });
    prop_oneof![2 => question_numbers().prop_map(asking), 1 => closed]
}

/// Few enough to be met by their answers.
fn question_numbers() -> impl Strategy<Value = u64> {
    1..9_u64
}

fn teams() -> impl Strategy<Value = Name> {
    prop_oneof![19 => select(TEAMS.to_vec()), 1 => Just("grey")].prop_map(name)
}

fn lists() -> impl Strategy<Value = Option<Name>> {
    weighted(0.7, teams())
}

/// Names of members; a few that are reserved or nobody's.
fn names() -> impl Strategy<Value = Name> {
    select(vec![
        "a1",
        "a2",
        "a3",
        "a4",
        "a1",
        "a2",
        "a3",
        "a4",
        "nobody",
        "user",
        "team-lead",
        "main",
    ])
    .prop_map(name)
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// One of a realm, now and then of the other.
fn anybody(realm: u64) -> impl Strategy<Value = u64> {
    prop_oneof![19 => inhabitants(realm), 1 => inhabitants(1 - realm)]
}

fn joining(realm: u64) -> impl Strategy<Value = Box<Joining>> {
    (anybody(realm), of(select(vec!["red", "blue", ""]))).prop_map(|(number, color)| {
        Box::new(Joining {
            agent: agent(number),
            agent_type: "worker".into(),
            model: "a-model".into(),
            prompt: "work".into(),
            color: color.map(Into::into),
            backend: "in-process".into(),
            cwd: "/work".into(),
            role: color.map(Into::into),
            takes: if color.is_some() {
                Takes::Any
            } else {
                Takes::Only {
                    unmarked: true,
                    roles: vec![],
                }
            },
        })
    })
}

/// A text; a few are about as long as what is kept, and a bit more.
fn texts(most: usize) -> impl Strategy<Value = Text> {
    let long = most - 12..=most + 1;
    let length = prop_oneof![197 => 0..4_usize, 1 => long, 2 => Just(most + 1)];
    (proptest::char::range('a', 'c'), length).prop_map(|(letter, length)| Text { letter, length })
}

fn addresses(realm: u64) -> impl Strategy<Value = Address> {
    prop_oneof![
        anybody(realm).prop_map(|number| Address::Agent(agent(number))),
        (teams(), names()).prop_map(|(team, name)| Address::Member { team, name }),
        teams().prop_map(|team| Address::Others { team }),
    ]
}

fn tasks() -> impl Strategy<Value = TaskId> {
    (1..7_u64).prop_map(TaskId)
}

fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(Value::Null),
        (0..3).prop_map(|number| json!({ "deep": number }))
    ];
    vec((select(vec!["k", "l"]), value), 0..2).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    })
}

fn expected() -> impl Strategy<Value = Option<u64>> {
    weighted(0.3, 0..4_u64)
}

/// Words that tasks are marked with; an empty one is none.
fn roles() -> impl Strategy<Value = String> {
    select(vec!["lexer", "printer", ""]).prop_map(str::to_owned)
}

fn checks() -> impl Strategy<Value = String> {
    select(vec!["make", "test", ""]).prop_map(str::to_owned)
}

fn takes() -> impl Strategy<Value = Takes> {
    let only = (any::<bool>(), vec(roles(), 0..3))
        .prop_map(|(unmarked, roles)| Takes::Only { unmarked, roles });
    prop_oneof![Just(Takes::Any), only]
}

fn new_tasks() -> impl Strategy<Value = Box<NewTask>> {
    let marks = (weighted(0.4, roles()), weighted(0.2, checks()));
    (of("[a-c]{0,3}"), vec(tasks(), 0..2), marks, metadata()).prop_map(
        |(active_form, blocked_by, (role, check), metadata)| {
            let (subject, description) = ("s".into(), String::new());
            Box::new(NewTask {
                subject,
                description,
                active_form,
                blocked_by,
                role,
                check,
                metadata,
            })
        },
    )
}

fn changes() -> impl Strategy<Value = Box<TaskChange>> {
    let owners = of(select(vec![
        "a1",
        "a2",
        "a3",
        "team-lead",
        "/a1",
        "/a2",
        "user",
        "nobody",
    ]));
    (
        (weighted(0.2, Just(String::new())), weighted(0.2, "[a-c]{0,2}"), weighted(0.2, "[a-c]{0,2}")),
        weighted(0.5, select(TaskStatus::ALL.to_vec())),
        weighted(0.25, owners),
        (vec(tasks(), 0..2), vec(tasks(), 0..2), metadata()),
        (weighted(0.1, roles()), weighted(0.1, checks()), weighted(0.2, checks())),
    )
        .prop_map(
            |((subject, description, active_form), status, owner, links, (role, check, passed))| {
                let (block_on, unblock_from, metadata) = links;
                let owner = owner.map(|owner| owner.map(str::to_owned));
                #[rustfmt::skip]
            let change = TaskChange {
                subject, description, active_form, status, owner, block_on, unblock_from, role, check, passed, metadata,
            };
                Box::new(change)
            },
        )
}

/// Operations, so many of 200 about charges: an agent may not have them.
fn deeds_of(realm: u64, only_for_people: u32) -> impl Strategy<Value = Rough> {
    let charge = (anybody(realm), charges()).prop_map(|(number, charge)| Op::Charge {
        agent: agent(number),
        charge: Box::new(charge),
    });
    let answer = (question_numbers(), any::<bool>()).prop_map(|(number, allow)| Op::Answer {
        question: question_number(number),
        answer: Box::new(given(allow)),
    });
    let charge = prop_oneof![charge, answer].prop_map(|op| Rough {
        op,
        text: Text {
            letter: 'a',
            length: 0,
        },
    });
    // In boxes: all that can be drawn at once does not fit on a stack.
    prop_oneof![200 - only_for_people => ops(realm).boxed(), only_for_people => charge.boxed()]
}

/// Few enough to be met by their answers.
fn requests() -> impl Strategy<Value = MailId> {
    (1..5_u128).prop_map(|id| Uuid::from_u128(id).into())
}

fn kinds() -> impl Strategy<Value = RequestKind> {
    select(RequestKind::ALL.to_vec())
}

fn ops(realm: u64) -> impl Strategy<Value = Rough> {
    let mails = prop_oneof![4 => Just(MailKind::Text), 1 => select(MailKind::ALL.to_vec())];
    let letters = (any::<u128>(), addresses(realm), mails).prop_map(|(id, to, kind)| {
        let (id, summary, body) = (
            MailId::from(Uuid::from_u128(id)),
            "in short".into(),
            String::new(),
        );
        Op::Send {
            id,
            to,
            kind,
            summary,
            body,
        }
    });
    let notes = (lists(), names(), expected()).prop_map(|(team, name, expect)| Op::WriteNote {
        team,
        name,
        text: String::new(),
        expect,
    });
    const {
        assert!(
            MAIL_BYTES == TEXT_BYTES,
            "both limits are met by the same texts"
        )
    };
    let ops = prop_oneof![
        8 => letters,
        3 => (teams(), metadata(), joining(realm)).prop_map(|(team, settings, lead)| Op::CreateTeam {
            team, description: "d".into(), settings, lead,
        }),
        1 => teams().prop_map(|team| Op::DeleteTeam { team }),
        3 => (teams(), names(), joining(realm))
            .prop_map(|(team, name, member)| Op::Join { team, name, member, greeting: None }),
        2 => (teams(), names(), joining(realm), any::<u128>()).prop_map(|(team, name, member, id)| Op::Join {
            team, name, member, greeting: Some(Greeting { id: Uuid::from_u128(id).into(), summary: "hello".into() }),
        }),
        2 => (teams(), names()).prop_map(|(team, to)| Op::HandOver { team, to }),
        5 => (requests(), addresses(realm), kinds()).prop_map(|(id, to, kind)| Op::Request {
            id, to, kind, text: String::new(),
        }),
        4 => (any::<u128>(), requests(), kinds(), any::<bool>()).prop_map(|(id, request, kind, approve)| {
            Op::Respond { id: Uuid::from_u128(id).into(), request, kind, approve, text: String::new() }
        }),
        1 => (teams(), names()).prop_map(|(team, name)| Op::Leave { team, name }),
        2 => notes,
        6 => (lists(), new_tasks()).prop_map(|(team, task)| Op::CreateTask { team, task }),
        6 => (lists(), tasks(), expected(), changes())
            .prop_map(|(team, id, expect, change)| Op::UpdateTask { team, id, expect, change }),
        4 => (lists(), tasks()).prop_map(|(team, id)| Op::Claim { team, id }),
        3 => (lists(), takes()).prop_map(|(team, takes)| Op::ClaimNext { team, takes }),
    ];
    (ops, texts(TEXT_BYTES)).prop_map(|(op, text)| Rough { op, text })
}
