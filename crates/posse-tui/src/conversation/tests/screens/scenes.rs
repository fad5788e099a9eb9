//! The screens.

use posse_protocol::{
    Cost, Delta, DiffLine, Display, EntryKind, FileDiff, Hunk, LineChange, QuestionKind,
    SpendingUpdate, Spent, Suggestion, Usage, WaitReason,
};

use super::*;
use crate::fixtures::question;

/// Text of all widths.
const ODD: &str = "漢字かな e\u{301}\u{301} 👨\u{200d}👩\u{200d}👧 שלום עולם a\u{200b}b";

fn push() -> Question {
    Question {
        input: RawJson::parse(r#"{"command": "git push origin parser"}"#).unwrap(),
        suggestions: vec![Suggestion {
            rules: vec!["Bash(git push *)".into()],
        }],
        from: Some("dev-2".into()),
        ..question("push")
    }
}

fn edit() -> Question {
    use LineChange::{Added, Kept, Removed};
    let line = |change, text: &str| DiffLine {
        change,
        text: text.into(),
        is_open: false,
    };
    let mut lines = vec![
        line(Kept, "fn value(a: i64, b: i64) -> i64 {"),
        line(Removed, "    let n = a - b;"),
        line(Added, "    let n = a + b;"),
    ];
    lines.extend((0..12).map(|number| line(Added, &format!("    log({number});"))));
    Question {
        tool: "Edit".into(),
        input: RawJson::parse(r#"{"file_path": "src/lexer.rs"}"#).unwrap(),
        shown: Some(Display::Diff(FileDiff {
            path: "src/lexer.rs".into(),
            is_new: false,
            added: 13,
            removed: 1,
            hunks: vec![Hunk {
                old_start: 40,
                new_start: 40,
                lines,
            }],
            left_out: 0,
        })),
        ..question("edit")
    }
}

fn choice() -> Question {
    let option =
        |label: &str, about: &str| serde_json::json!({"label": label, "description": about});
    let input = serde_json::json!({"questions": [{
        "question": "Which store shall the parser use for its tables?",
        "header": "Store",
        "options": [
            option("SQLite", "one file, no server; enough for a single machine"),
            option("PostgreSQL", "several machines can share it"),
        ],
    }]});
    Question {
        kind: QuestionKind::Choice,
        tool: "AskUserQuestion".into(),
        input: RawJson::from(&input),
        ..question("choice")
    }
}

fn plan() -> Question {
    let steps: Vec<String> = (1..=14)
        .map(|step| format!("{step}. step {step}"))
        .collect();
    let input = serde_json::json!({"plan": format!("# Mend the lexer\n{}", steps.join("\n"))});
    Question {
        kind: QuestionKind::Plan,
        tool: "ExitPlanMode".into(),
        input: RawJson::from(&input),
        why: "a plan needs your approval".into(),
        ..question("plan")
    }
}

fn spends(talk: &mut Talk) {
    let cost = Some(Cost::from_pico_usd(420_000_000_000));
    let spent = Spent {
        model: "opus-5-5".into(),
        usage: Usage::default(),
        cost,
    };
    talk.event(EventKind::Spending(Box::new(SpendingUpdate {
        own: vec![spent.clone()],
        subtree: vec![spent],
        left: Some(Cost::from_pico_usd(9_580_000_000_000)),
        context_tokens: 68_000,
        context_window: Some(200_000),
    })));
}

fn team(talk: &mut Talk) {
    let work = [
        "mend the lexer",
        "write the numbers' tests",
        "",
        "review",
        "look for callers of parse",
    ];
    for (number, work) in (0..).zip(work) {
        let name = format!("dev-{}", number + 1);
        talk.event(run(20 + number, &name, work));
    }
    talk.event(run(30, "", "cargo watch"));
    talk.event_of(
        agent(22),
        EventKind::State(Activity::Waiting(WaitReason::Person)),
    );
    talk.event_of(agent(23), EventKind::State(Activity::Idle));
}

fn calls(talk: &mut Talk) {
    talk.event(EventKind::CallStarted {
        call: "1".into(),
        tool: "Bash".into(),
        title: "cargo test -p parser".into(),
    });
    talk.event(EventKind::Output {
        call: "1".into(),
        text: "running 3 tests\ntest lexer::numbers … ok\n".into(),
        skipped: 0,
    });
}

#[test]
fn empty() {
    check("empty", |_| {});
}

#[test]
fn streaming() {
    check("streaming", |talk| {
        talk.works();
        spends(talk);
        talk.text("The lexer is wrong.\n\nIt takes `a - b` for a sum, as a test would have told");
        calls(talk);
        talk.wait(12_000);
    });
}

#[test]
fn thinking() {
    check("thinking", |talk| {
        talk.works();
        talk.event(EventKind::Delta(Delta::Thinking(
            "First the lexer,\nthen ".into(),
        )));
        talk.wait(75_000);
    });
}

#[test]
fn others() {
    check("others", |talk| {
        talk.works();
        team(talk);
        talk.wait(3_725_000);
    });
}

#[test]
fn permission_closed() {
    check("permission_closed", |talk| {
        talk.works();
        team(talk);
        talk.asks(push());
        talk.asks(edit());
        talk.types("tell me when the tests");
    });
}

#[test]
fn permission_for_a_change() {
    check("permission_change", |talk| talk.asks(edit()));
}

#[test]
fn permission_just_asked() {
    check("permission_just_asked", |talk| {
        talk.event(EventKind::ApprovalRequested(Box::new(push())));
        talk.press("Alt-y");
    });
}

#[test]
fn permission_open() {
    check("permission_open", |talk| {
        talk.asks(edit());
        talk.press("Tab");
    });
}

#[test]
fn permission_denied_with_a_reason() {
    check("permission_reason", |talk| {
        talk.types("my draft");
        talk.asks(edit());
        talk.press("Tab r");
        talk.types("write a test first");
    });
}

#[test]
fn always() {
    check("always", |talk| {
        talk.asks(push());
        talk.press("Alt-a");
    });
}

#[test]
fn choices() {
    check("choice", |talk| {
        talk.asks(choice());
        talk.press("Tab");
        talk.types("SQL");
    });
}

#[test]
fn choice_closed() {
    check("choice_closed", |talk| talk.asks(choice()));
}

#[test]
fn plans() {
    check("plan", |talk| {
        talk.asks(plan());
        talk.press("Tab");
    });
}

#[test]
fn menu() {
    check("menu", |talk| {
        talk.types("/co");
    });
}

#[test]
fn menu_beside_a_question() {
    check("menu_beside_a_question", |talk| {
        talk.asks(push());
        talk.types("/");
        talk.press("Up");
    });
}

#[test]
fn keys() {
    check("keys", |talk| {
        talk.types("?");
    });
}

#[test]
fn draft_of_several_lines() {
    check("draft", |talk| {
        talk.input(Input::Paste("first line".into()));
        for line in [
            "second line",
            "",
            "a fourth line that is longer than twenty columns",
        ] {
            talk.press("Alt-Enter");
            talk.types(line);
        }
    });
}

#[test]
fn long_draft() {
    check("long_draft", |talk| {
        let lines: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
        talk.input(Input::Draft(lines.join("\n")));
        talk.press("Up Up");
    });
}

#[test]
fn odd_text() {
    check("odd_text", |talk| {
        talk.works();
        talk.text(&format!("{ODD}\n\nagain {ODD} {ODD}"));
        talk.event(EventKind::CallStarted {
            call: "1".into(),
            tool: "Bash".into(),
            title: format!("echo {ODD} \u{1b}[2J\u{202e}"),
        });
        talk.event(run(20, "dev-1", ODD));
        talk.types(ODD);
    });
}

#[test]
fn without_colour() {
    let mut talk = Talk::new(80, 24);
    talk.asks(push());
    talk.types("wait");
    let mut terminal = InlineTerminal::new(crate::theme::Theme::mono());
    let now_ms = talk.now_ms;
    let first = terminal.draw(talk.frame(), now_ms);
    talk.types("!");
    let key = terminal.draw(talk.frame(), now_ms);
    let spelt = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        let text = text.replace("\r\n", "↵\n").replace('\r', "⇤");
        text.replace('\u{1b}', "␛")
    };
    let text = format!("{}\n── a key ──\n{}\n", spelt(first), spelt(key));
    compare("without_colour", &text);
}

#[test]
fn transcript() {
    check("transcript", |talk| {
        let ran = "<system-reminder>\nThe user ran this command in the agent's directory:\nls\nIts output:\na\nb\n</system-reminder>";
        let mail = "<mail from=\"dev-2\" kind=\"message\">\n<summary>the lexer is mended</summary>\n</mail>";
        let edit =
            r#"{"file_path": "src/lexer.rs", "old_string": "a - b", "new_string": "a + b\nc"}"#;
        let text = "I look at **two** things:\n\n1. the lexer\n2. `parse` and its callers, which are many more than I thought\n\n```rust\nlet total = first + second + third + fourth;\n```\n";
        let entries = vec![
            entry(
                0,
                EntryKind::Prompt,
                vec![ContentBlock::text(
                    "mend the lexer\nand tell me what was wrong with it, please",
                )],
            ),
            entry(
                1,
                EntryKind::Reply,
                vec![
                    ContentBlock::text(text),
                    call("1", "Edit", edit),
                    call(
                        "2",
                        "Bash",
                        r#"{"command": "cargo test -p parser --all-features"}"#,
                    ),
                    call("3", "Read", r#"{"file_path": "src/lib.rs"}"#),
                ],
            ),
            entry(
                2,
                EntryKind::Results,
                vec![
                    result("1", "ok", false),
                    result(
                        "2",
                        "error: one\n  --> src/lexer.rs:41\ntwo\nthree\nfour\nfive\nsix",
                        true,
                    ),
                    result("3", "a\nb\nc", false),
                    ContentBlock::text("faster, please"),
                    ContentBlock::text(mail),
                ],
            ),
            entry(
                3,
                EntryKind::Compaction,
                vec![ContentBlock::text("summary")],
            ),
            entry(4, EntryKind::Prompt, vec![ContentBlock::text(ran)]),
            entry(5, EntryKind::Reply, vec![ContentBlock::text("Done.")]),
        ];
        talk.input(Input::Entries { entries, next: 6 });
        talk.event(run_end(21, "dev-1", "found 3 callers"));
        talk.event(EventKind::Warning("the answer came too late".into()));
    });
}
