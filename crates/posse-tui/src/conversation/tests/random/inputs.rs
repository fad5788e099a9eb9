//! Inputs of all kinds.

use posse_protocol::{
    Aside, Cost, Delta, DiffLine, Display, EntryKind, FileDiff, Hunk, IdleReason, IdleReport,
    LineChange, ListKind, ListedName, Listing, MemberChange, MemberUpdate, ModelUpdate, Name,
    Outcome, QuestionKind, RunEnd, SpendingUpdate, Spent, Suggestion, Usage, WaitReason,
};
use proptest::sample::select;

use super::super::screens::{run, run_end};
use super::super::*;
use super::*;
use crate::fixtures;
use crate::picker::PickerItem;

/// An input, the time before it, and whether the loop refuses what is said.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) after_ms: u64,
    pub(super) input: Input,
    pub(super) is_refused: bool,
    /// True if a frame is drawn then.
    pub(super) is_drawn: bool,
}

/// Returns steps with these shares of keys and events.
pub(super) fn step(keys: u32, events: u32) -> impl Strategy<Value = Step> {
    let input = prop_oneof![
        keys => key_of_any_kind().prop_map(Input::Key),
        1 => text().prop_map(Input::Paste),
        events => (agents(), event()).prop_map(|(agent, kind)| Input::Event(Event { agent, kind })),
        1 => (entries(), 0..20u64).prop_map(|(entries, next)| Input::Entries { entries, next }),
        1 => entries().prop_map(Input::Inherited),
        1 => prompts().prop_map(Input::Prompts),
        1 => size().prop_map(Input::Size),
        1 => text().prop_map(Input::Notice),
        1 => text().prop_map(Input::Print),
        1 => text().prop_map(Input::Draft),
        1 => any::<bool>().prop_map(Input::Focus),
        1 => Just(Input::Tick),
    ];
    (0..=1000u64, input, any::<bool>(), 0..16u8).prop_map(|(after_ms, input, is_refused, drawn)| {
        Step {
            after_ms,
            input,
            is_refused,
            // Drawing takes most of the time.
            is_drawn: drawn == 0,
        }
    })
}

fn key_of_any_kind() -> impl Strategy<Value = KeyEvent> {
    const NAMES: &str = "Enter Enter Alt-Enter Tab Tab Esc Esc Ctrl-r Ctrl-c Up Down Left Home Shift-Tab \
        Backspace Alt-y Alt-y Alt-n Alt-a Alt-q Alt-0 Alt-1 Alt-2 Alt-5 Ctrl-d Ctrl-g Ctrl-j Ctrl-k \
        Ctrl-u Ctrl-w Ctrl-y Ctrl-_ Ctrl-z Alt-_ Alt-f Alt-d";
    let name = select(NAMES.split(' ').collect::<Vec<_>>());
    let letter = select(
        "yynnaarbsde123?/@!#\\ mo漢\u{301}\u{200d}"
            .chars()
            .collect::<Vec<_>>(),
    );
    let other = any::<char>().prop_map(KeyCode::Char);
    prop_oneof![
        6 => name.prop_map(named),
        6 => letter.prop_map(|letter| key(KeyCode::Char(letter))),
        1 => other.prop_map(key),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        (1..=200u16, 1..=60u16),
        (1..=8u16, 1..=8u16),
        Just((80, 24)),
    ]
    .prop_map(|(columns, rows)| Size { columns, rows })
}

pub(super) fn text() -> impl Strategy<Value = String> {
    let part = select(vec![
        "word ",
        "two words",
        "\n",
        "\n\n",
        "- item\n",
        "```rust\nlet a = 1;\n",
        "```\n",
        "| a | b |\n",
        "|---|---|\n",
        "# head\n",
        "漢字かな",
        "e\u{301}\u{301}",
        "שלום",
        "\u{1b}[2J\u{7}",
        "\t",
        "\u{202e}",
        "\u{200d}",
        "\r\n",
        "/answer y",
        "/mode plan",
        "/help",
        "@src",
        "!ls",
        "&amp;*_",
        "/agent 1",
        "/stop 1",
        "/agents",
        "/context",
        "https://example.org/a/very/long/address",
    ]);
    let block = prop::collection::vec(Just("line\n"), 20).prop_map(|lines| lines.concat());
    prop_oneof![
        12 => prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat()),
        1 => block,
    ]
}

/// The main agent more often than others.
fn agents() -> impl Strategy<Value = AgentId> {
    select(vec![1, 1, 1, 1, 21, 22, 23]).prop_map(agent)
}

fn event() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        6 => delta().prop_map(EventKind::Delta),
        2 => entries().prop_map(|mut entries| match entries.pop() {
            Some(entry) => EventKind::Entry(Box::new(entry)),
            None => retry(),
        }),
        1 => Just(retry()),
        5 => question().prop_map(|question| EventKind::ApprovalRequested(Box::new(question))),
        2 => (0..5u128).prop_map(|id| EventKind::ApprovalWithdrawn { question: question_id(id) }),
        2 => call_event(),
        2 => (20..26u128, text()).prop_map(|(id, text)| run(id, name_of(id), &text)),
        1 => (20..26u128, text()).prop_map(|(id, text)| run_end(id, name_of(id), &text)),
        1 => member(),
        3 => activity().prop_map(EventKind::State),
        1 => queue(),
        1 => spending(),
        1 => outcome().prop_map(|outcome| EventKind::Ended(Box::new(RunEnd::of(outcome)))),
        1 => listing(),
        2 => rare(),
    ]
}

fn delta() -> impl Strategy<Value = Delta> {
    prop_oneof![
        6 => text().prop_map(Delta::Text),
        1 => text().prop_map(Delta::Thinking),
        2 => Just(Delta::BlockDone),
        1 => text().prop_map(Delta::ToolInput),
        1 => text().prop_map(|model| Delta::Started { model }),
    ]
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let kind = select(vec![
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Compaction,
        EntryKind::Model,
    ]);
    let block = (text(), 0..4u8, 0..6u8).prop_map(|(text, id, kind)| {
        let id = id.to_string();
        match kind {
            0 => call(
                &id,
                "Edit",
                r#"{"file_path": "a", "old_string": "b", "new_string": "c"}"#,
            ),
            1 => call(&id, "Bash", r#"{"command": "ls"}"#),
            2 | 3 => result(&id, &text, kind == 3),
            _ => ContentBlock::text(text),
        }
    });
    let entry = (0..20u64, kind, prop::collection::vec(block, 0..3))
        .prop_map(|(seq, kind, blocks)| entry(seq, kind, blocks));
    prop::collection::vec(entry, 0..3)
}

fn prompts() -> impl Strategy<Value = Vec<PickerItem>> {
    let item = (text(), text()).prop_map(|(words, about)| PickerItem { words, about });
    prop::collection::vec(item, 0..20)
}

fn question_id(id: u128) -> posse_protocol::QuestionId {
    uuid::Uuid::from_u128(100 + id).into()
}

fn question() -> impl Strategy<Value = Question> {
    let kind = select(QuestionKind::ALL.to_vec());
    (0..5u128, kind, text(), 0..3usize, any::<bool>()).prop_map(|(id, kind, text, rules, diff)| {
        let option = |label: &str| serde_json::json!({"label": label, "description": text});
        let input = serde_json::json!({
            "command": text,
            "plan": text,
            "questions": [
                {"question": "Which?", "header": "Kind", "options": [option("Red"), option("Blue")]},
                {"question": text, "header": text, "options": [option("A"), option("B")],
                 "multiSelect": true},
            ],
        });
        let suggestion = Suggestion {
            rules: vec![text.clone()],
        };
        Question {
            id: question_id(id),
            kind,
            input: RawJson::from(&input),
            from: diff.then(|| text.clone()),
            suggestions: vec![suggestion; rules],
            shown: diff.then(|| Display::Diff(change(&text))),
            why: text,
            ..fixtures::question("a")
        }
    })
}

fn change(text: &str) -> FileDiff {
    let line = DiffLine {
        change: LineChange::Added,
        text: text.into(),
        is_open: true,
    };
    FileDiff {
        path: text.into(),
        is_new: false,
        added: 1,
        removed: 0,
        hunks: vec![Hunk {
            old_start: 1,
            new_start: 1,
            lines: vec![line; text.len() % 20],
        }],
        left_out: 3,
    }
}

fn call_event() -> impl Strategy<Value = EventKind> {
    (0..3u8, 0..4u8, text()).prop_map(|(kind, id, text)| {
        let call = id.to_string();
        match kind {
            0 => EventKind::CallStarted {
                call,
                tool: text.clone(),
                title: text,
            },
            1 => EventKind::Output {
                call,
                text,
                skipped: 7,
            },
            _ => EventKind::CallDone {
                call,
                is_error: false,
            },
        }
    })
}

/// Every third run is a command, which has no name.
fn name_of(id: u128) -> &'static str {
    ["", "dev-1", "dev-2"][(id % 3) as usize]
}

fn member() -> impl Strategy<Value = EventKind> {
    let name = |name: &str| name.parse::<Name>().unwrap();
    let report = move |answer: String| IdleReport {
        team: name("team"),
        reason: IdleReason::Available,
        error: None,
        answer,
        tasks: Vec::new(),
        branch: None,
    };
    (0..4u8, text()).prop_map(move |(what, text)| {
        EventKind::Member(Box::new(MemberUpdate {
            team: name("team"),
            name: name("dev-9"),
            color: text.clone(),
            what: match what {
                0 => MemberChange::Running,
                1 => MemberChange::Idle(Box::new(report(text))),
                2 => MemberChange::TakenOver,
                _ => MemberChange::Left,
            },
        }))
    })
}

fn activity() -> impl Strategy<Value = Activity> {
    select(vec![
        Activity::Idle,
        Activity::Working,
        Activity::Working,
        Activity::Waiting(WaitReason::Person),
        Activity::Waiting(WaitReason::Rate),
        Activity::Gone,
    ])
}

fn queue() -> impl Strategy<Value = EventKind> {
    let prompt = (0..5u64, text()).prop_map(|(id, text)| queued(id, &text));
    prop::collection::vec(prompt, 0..3).prop_map(EventKind::Queue)
}

fn spending() -> impl Strategy<Value = EventKind> {
    (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(tokens, window, known)| {
        let spent = Spent {
            model: "m".into(),
            usage: Usage::default(),
            cost: known.then(|| Cost::from_pico_usd(tokens)),
        };
        EventKind::Spending(Box::new(SpendingUpdate {
            own: vec![spent.clone()],
            subtree: vec![spent; 2],
            left: known.then_some(Cost::ZERO),
            context_tokens: tokens,
            context_window: known.then_some(window),
        }))
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    select(vec![
        Outcome::Completed,
        Outcome::Interrupted,
        Outcome::Refused,
        Outcome::Paused(fault("no\nnetwork")),
        Outcome::Failed(fault("\u{1b}[2J")),
    ])
}

fn listing() -> impl Strategy<Value = EventKind> {
    let what = select(vec![ListKind::Files, ListKind::Agents, ListKind::Commands]);
    let part = select(vec!["", "s", "m", "src"]);
    let names = prop::collection::vec(text(), 0..9);
    (what, part, names).prop_map(|(what, part, names)| {
        let named = |name: String| ListedName {
            about: name.clone(),
            name,
        };
        EventKind::Listed(Box::new(Listing {
            what,
            part: part.into(),
            names: names.into_iter().map(named).collect(),
            left_out: 0,
        }))
    })
}

fn rare() -> impl Strategy<Value = EventKind> {
    (0..7u8, text()).prop_map(|(kind, text)| match kind {
        0 => EventKind::Warning(text),
        1 => EventKind::Noted {
            file: text.clone(),
            line: text,
        },
        2 => EventKind::Aside(Box::new(Aside {
            question: text.clone(),
            answer: Some(text),
            error: None,
            spent: Vec::new(),
        })),
        3 => EventKind::Model(Box::new(ModelUpdate {
            model: text.clone(),
            effort: Some(text),
            reread_tokens: 1,
            cost: None,
        })),
        4 => EventKind::Compacting {
            auto: true,
            tokens: 9,
        },
        5 => EventKind::Mode(PermissionMode::Plan),
        _ => EventKind::Started,
    })
}
