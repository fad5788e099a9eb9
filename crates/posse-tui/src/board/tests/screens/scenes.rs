//! The screens.

use posse_protocol::{
    ContentBlock, Cost, Entry, EntryKind, ListId, MailKind, Message, Owner, Purpose, Role, Sender,
    Task, TaskId, TaskStatus, Usage,
};

use super::*;
use crate::fixtures;

/// Text of all widths.
const ODD: &str = "漢字かな e\u{301}\u{301} 👨\u{200d}👩\u{200d}👧 שלום עולם a\u{200b}b";

pub(super) fn busy(desk: &mut Desk) {
    let mut team = team();
    team[1].doing = "#2 mend the lexer · cargo test".into();
    team[3].doing = "Bash: git push origin parser".into();
    team[3].waiting_mail = 2;
    team.push(below(2, at_work(7, "explore-2", Sign::Waits)));
    team.push(at_work(8, "linter", Sign::Failed));
    desk.agents(team);
    let cents = |cents: u64| Some(Cost::from_pico_usd(cents * 10_000_000_000));
    desk.input(BoardInput::Spent(vec![
        (agent(1), cents(310)),
        (agent(2), cents(80)),
        (agent(4), cents(31)),
    ]));
    desk.input(BoardInput::Total {
        cost: cents(310),
        budget: Some("$6.90 left".into()),
    });
}

fn list(name: &str) -> ListId {
    ListId {
        realm: uuid::Uuid::from_u128(1).into(),
        team: name.parse().ok(),
    }
}

fn task(number: u64, subject: &str, status: TaskStatus, before: &[u64]) -> Task {
    let before: Vec<TaskId> = before.iter().copied().map(TaskId).collect();
    Task {
        id: TaskId(number),
        subject: subject.into(),
        description: format!("{subject}, in detail.\nSee docs/parser.md."),
        active_form: None,
        status,
        owner: (status == TaskStatus::InProgress).then(|| Owner {
            agent: Some(agent(2)),
            name: "dev-1".into(),
        }),
        lost_by: None,
        waits_for: before.clone(),
        blocked_by: before,
        blocks: Vec::new(),
        created_ms: 0,
        updated_ms: 0,
        role: None,
        check: (number == 2).then(|| "cargo test".into()),
        metadata: Default::default(),
        version: 1,
    }
}

fn tasks(desk: &mut Desk) {
    use TaskStatus::{Completed, Deleted, InProgress, Pending};
    let mut lost = task(4, "write the docs", Pending, &[]);
    lost.lost_by = Some("dev-3".into());
    desk.input(BoardInput::Tasks(vec![
        BoardTaskList {
            list: list("parser"),
            label: "parser".into(),
            tasks: vec![
                task(1, "read the grammar", Completed, &[]),
                task(2, "mend the lexer", InProgress, &[]),
                task(3, "mend the parser", Pending, &[2]),
                lost,
                task(5, "release", Pending, &[3, 4]),
                task(6, "given up", Deleted, &[]),
            ],
        },
        BoardTaskList {
            list: list("empty"),
            label: "empty".into(),
            tasks: Vec::new(),
        },
    ]));
}

fn letter(number: u128, from: &str, kind: MailKind, text: &str) -> BoardMail {
    BoardMail {
        id: uuid::Uuid::from_u128(number).into(),
        from: match from {
            "" => Sender::User,
            name => Sender::Agent {
                id: agent(2),
                name: name.into(),
            },
        },
        to: agent(4),
        to_name: "dev-2".into(),
        kind,
        summary: text.lines().next().unwrap_or_default().into(),
        body: text.into(),
        at_ms: 1_700_000_000_000 - 90_000,
        is_waiting: number == 3,
    }
}

fn mail(desk: &mut Desk) {
    let plan = MailKind::PlanApprovalRequest;
    desk.input(BoardInput::Mail(vec![
        letter(
            3,
            "",
            MailKind::Text,
            "look at the tests\nThe last one fails.",
        ),
        letter(
            2,
            "dev-1",
            MailKind::Text,
            "the lexer is done\nNumbers have signs now.",
        ),
        letter(1, "dev-1", plan, "a plan for the lexer"),
    ]));
}

fn costs(desk: &mut Desk, name: &str) {
    let row = |number: u128, purpose, missed| CostRow {
        agent: agent(number),
        name: name.into(),
        model: "opus-5-5".into(),
        purpose,
        usage: Usage {
            input: 950,
            cache_read: 1_234_567,
            cache_write_5m: 45_678,
            output: 12_000,
            ..Usage::default()
        },
        missed,
        cost: (purpose == Purpose::Work).then(|| Cost::from_pico_usd(1_200_000_000_000)),
    };
    desk.input(BoardInput::Costs(vec![
        row(1, Purpose::Work, 0),
        row(1, Purpose::Compaction, 30_000),
        row(2, Purpose::Work, 0),
    ]));
}

fn asks(desk: &mut Desk) {
    let asked = |number: u128, call: &str| BoardQuestion {
        agent: agent(number),
        session: agent(1),
        question: fixtures::question(call),
        asked_ms: 1_700_000_000_000 - 40_000,
    };
    desk.input(BoardInput::Questions(vec![
        asked(4, "push"),
        asked(3, "ls"),
    ]));
    desk.press("5");
    desk.settle();
}

fn said(text: &str) -> Vec<Entry> {
    let entry = |seq, kind, role, text: &str| Entry {
        seq,
        kind,
        message: std::sync::Arc::new(Message {
            role,
            content: vec![ContentBlock::text(text)],
        }),
        reply: None,
    };
    vec![
        entry(0, EntryKind::Prompt, Role::User, "mend the lexer"),
        entry(1, EntryKind::Reply, Role::Assistant, text),
    ]
}

/// Shows a text at every place.
pub(super) fn everything(desk: &mut Desk, text: &str) {
    let facts = |number, sign| BoardAgent {
        name: text.into(),
        doing: text.into(),
        place: text.into(),
        model: text.into(),
        ..at_work(number, "", sign)
    };
    desk.input(BoardInput::Title(text.into()));
    desk.agents(vec![facts(1, Sign::Working), facts(2, Sign::Asks)]);
    let mut asked = fixtures::question("a");
    asked.tool = text.into();
    asked.why = text.into();
    asked.input = posse_protocol::RawJson::from(&serde_json::json!({"command": text}));
    desk.input(BoardInput::Questions(vec![BoardQuestion {
        agent: agent(2),
        session: agent(1),
        question: asked,
        asked_ms: 0,
    }]));
    let mut work = task(1, text, TaskStatus::Pending, &[]);
    work.lost_by = Some(text.into());
    work.role = Some(text.into());
    work.check = Some(text.into());
    desk.input(BoardInput::Tasks(vec![BoardTaskList {
        list: list("a"),
        label: text.into(),
        tasks: vec![work],
    }]));
    desk.press("2 Down 1");
    desk.input(BoardInput::Mail(vec![letter(
        1,
        text,
        MailKind::Text,
        text,
    )]));
    costs(desk, text);
    desk.input(BoardInput::Total {
        cost: None,
        budget: Some(text.into()),
    });
    desk.press("p");
    desk.input(BoardInput::Peek {
        agent: agent(2),
        entries: said(text),
        arriving: text.into(),
    });
    worktree_scenes::everything(desk, text);
    desk.input(BoardInput::Notice(text.into()));
}

#[test]
fn empty() {
    check("empty", |_| {});
}

#[test]
fn agents() {
    check("agents", busy);
}

#[test]
fn several_sessions() {
    check("several_sessions", |desk| {
        busy(desk);
        let other = |number, name: &str, sign| BoardAgent {
            session: agent(20),
            parent: (number != 20).then(|| agent(20)),
            ..at_work(number, name, sign)
        };
        desk.agents(vec![
            other(20, "write the docs", Sign::Idle),
            other(21, "writer", Sign::Asks),
        ]);
        desk.press("s Home");
    });
}

#[test]
fn a_thousand() {
    check("a_thousand", |desk| {
        let sign = |number: u128| match number % 5 {
            0 => Sign::Asks,
            1 | 2 => Sign::Working,
            3 => Sign::Idle,
            _ => Sign::Done,
        };
        let facts = |number| at_work(number, &format!("worker-{number}"), sign(number));
        desk.agents((1..=1000).map(facts).collect());
        desk.press("End PageUp PageUp Up");
    });
}

#[test]
fn filter() {
    check("filter", |desk| {
        busy(desk);
        desk.press("/");
        desk.types("exp");
    });
}

#[test]
fn palette() {
    check("palette", |desk| {
        busy(desk);
        desk.press(":");
        desk.types("s");
    });
}

#[test]
fn peek() {
    check("peek", |desk| {
        busy(desk);
        desk.press("p");
        desk.input(BoardInput::Peek {
            agent: agent(4),
            entries: said("I look at the **lexer**:\n\n- numbers\n- strings"),
            arriving: "Now I push.".into(),
        });
    });
}

#[test]
fn help() {
    check("help", |desk| {
        busy(desk);
        desk.press("?");
    });
}

#[test]
fn stop() {
    check("stop", |desk| {
        busy(desk);
        desk.press("Down Down x");
    });
}

#[test]
fn message() {
    check("message", |desk| {
        busy(desk);
        desk.press("m");
        desk.types("please look at the tests of the lexer, too, before you push it");
    });
}

#[test]
fn tasks_screen() {
    check("tasks", |desk| {
        busy(desk);
        tasks(desk);
        desk.press("2 Down Down Down");
    });
}

#[test]
fn mail_screen() {
    check("mail", |desk| {
        busy(desk);
        mail(desk);
        desk.press("3");
    });
}

#[test]
fn mail_is_read() {
    check("mail_is_read", |desk| {
        busy(desk);
        mail(desk);
        desk.press("3 Enter");
    });
}

#[test]
fn cost_screen() {
    check("cost", |desk| {
        busy(desk);
        costs(desk, "main");
        desk.press("4 Down");
    });
}

#[test]
fn questions() {
    check("questions", |desk| {
        busy(desk);
        asks(desk);
    });
}

#[test]
fn question_is_open() {
    check("question_is_open", |desk| {
        busy(desk);
        asks(desk);
        desk.press("Enter r");
        desk.types("not before the tests pass");
    });
}

#[test]
fn odd_text() {
    check("odd_text", |desk| everything(desk, ODD));
}
