//! What agents say and do, as it is printed.

use posse_protocol::{Delta, EntryKind, EventKind, Limit, Outcome, RunEnd};

use super::*;

const REPLY: &str = "Found it.\n\n- one\n- two\n\nThe *end*.";

fn ended(outcome: Outcome) -> EventKind {
    EventKind::Ended(Box::new(RunEnd::of(outcome)))
}

#[test]
fn a_reply_in_pieces_is_printed_once_and_as_its_entry() {
    let mut whole = talk();
    whole.event(reply(0, REPLY));
    let expected = whole.printed();
    for size in [1, 3, 1000] {
        let mut talk = talk();
        let characters: Vec<char> = REPLY.chars().collect();
        for piece in characters.chunks(size) {
            talk.text(&piece.iter().collect::<String>());
            talk.frame();
        }
        talk.event(EventKind::Delta(Delta::BlockDone));
        talk.event(reply(0, REPLY));
        assert_eq!(talk.printed(), expected, "pieces of {size}");
        talk.event(reply(0, REPLY));
        assert_eq!(talk.printed(), [""; 0], "it is there already");
    }
}

#[test]
fn blocks_of_a_reply_are_apart() {
    let blocks = || vec![ContentBlock::text("First."), ContentBlock::text("Second.")];
    let whole = || EventKind::Entry(Box::new(entry(0, EntryKind::Reply, blocks())));
    let mut resumed = talk();
    resumed.printed();
    resumed.event(whole());
    assert_eq!(resumed.printed(), ["First.", "Second."]);
    let mut talk = talk();
    talk.printed();
    for block in ["First.", "Second."] {
        talk.text(block);
        talk.event(EventKind::Delta(Delta::BlockDone));
    }
    talk.event(whole());
    assert_eq!(talk.printed(), ["First.", "Second."]);
}

#[test]
fn an_attempt_that_says_the_same_continues_the_one_before() {
    let mut talk = talk();
    talk.printed();
    talk.text("Found it.\n\nNow\nI ");
    talk.event(retry());
    assert!(talk.live().contains("again in 5 s: overloaded"));
    for piece in ["Found", " it.\n\nNow\nI will", " mend it."] {
        talk.text(piece);
    }
    talk.event(reply(0, "Found it.\n\nNow\nI will mend it."));
    assert_eq!(talk.printed(), ["Found it.", "Now I will mend it."]);
}

#[test]
fn an_attempt_that_says_something_else_is_printed_anew() {
    let mut talk = talk();
    talk.printed();
    talk.text("Found it.\n\nNow\n");
    talk.event(retry());
    talk.text("Found nothing.");
    talk.event(reply(0, "Found nothing."));
    let expected = ["Found it.", "cut off; again:", "Found nothing."];
    assert_eq!(talk.printed(), expected);
}

#[test]
fn an_attempt_of_which_nothing_is_printed_leaves_no_trace() {
    let mut talk = talk();
    talk.printed();
    talk.text("Found it");
    talk.event(retry());
    talk.text("Found nothing.");
    talk.event(reply(0, "Found nothing."));
    assert_eq!(talk.printed(), ["Found nothing."]);
}

#[test]
fn a_run_that_fails_ends_what_was_said() {
    let mut talk = talk();
    talk.printed();
    talk.text("Found it.\n\nNow");
    talk.event(retry());
    talk.event(ended(Outcome::Failed(fault("overloaded"))));
    let expected = ["Found it.", "Now", "✗ failed: overloaded"];
    assert_eq!(talk.printed(), expected);
    talk.text("Hello");
    talk.event(reply(0, "Hello"));
    assert_eq!(talk.printed(), ["Hello"]);
}

#[test]
fn what_was_missed_is_printed_once() {
    let mut talk = talk();
    talk.event(reply(0, "zero"));
    talk.printed();
    let text = |seq, text| entry(seq, EntryKind::Reply, vec![ContentBlock::text(text)]);
    let missed = Input::Entries {
        entries: vec![text(1, "one"), text(2, "two")],
        next: 3,
    };
    talk.input(missed.clone());
    assert_eq!(talk.printed(), ["one", "two"]);
    talk.event(reply(2, "two"));
    talk.event(reply(3, "three"));
    assert_eq!(talk.printed(), ["three"]);
    talk.input(missed);
    assert_eq!(talk.printed(), [""; 0]);
    assert_eq!(talk.state.next_entry(), 4);
}

#[test]
fn a_reply_of_which_pieces_were_missed_is_printed_once() {
    let mut talk = talk();
    talk.printed();
    talk.text("Found it.\n\nIt\nis ");
    assert_eq!(talk.printed(), ["Found it."]);
    talk.text("is wrong.");
    talk.event(reply(0, "Found it.\n\nIt\nis a sign that is wrong."));
    assert_eq!(talk.printed(), ["It is a sign that is wrong."]);
}

#[test]
fn pieces_of_a_reply_that_is_printed_are_not_printed_again() {
    let mut talk = talk();
    talk.printed();
    let said = "Found it.\n\nNow\nI mend it.";
    talk.text("Found it.\n\nNow\n");
    assert_eq!(talk.printed(), ["Found it."]);
    let blocks = vec![ContentBlock::text(said)];
    talk.input(Input::Entries {
        entries: vec![entry(0, EntryKind::Reply, blocks)],
        next: 1,
    });
    assert_eq!(talk.printed(), ["Now I mend it."]);
    talk.text("Now\nI mend it.\n\nLast\n");
    talk.event(EventKind::Delta(Delta::BlockDone));
    talk.event(reply(0, said));
    talk.text("Next");
    talk.event(reply(1, "Next"));
    assert_eq!(talk.printed(), ["Next"]);
}

#[test]
fn an_agent_that_is_shown_in_the_middle_of_a_reply_says_it_once() {
    let mut talk = talk();
    talk.input(Input::Show(agent(21)));
    let (entries, next) = (Vec::new(), 4);
    talk.input(Input::Entries { entries, next });
    talk.printed();
    let text = EventKind::Delta(Delta::Text("end of it.\n\nMore\n".into()));
    talk.event_of(agent(21), text);
    talk.event_of(agent(21), reply(4, "The end of it.\n\nMore"));
    assert_eq!(talk.printed(), ["The end of it.", "More"]);
}

#[test]
fn a_change_is_printed_with_its_lines() {
    let mut talk = talk();
    talk.printed();
    let input = r#"{"file_path": "src/lexer.rs", "old_string": "a - b", "new_string": "a + b"}"#;
    let blocks = vec![call("1", "Edit", input)];
    talk.event(EventKind::Entry(Box::new(entry(
        0,
        EntryKind::Reply,
        blocks,
    ))));
    let blocks = vec![result("1", "ok", false)];
    talk.event(EventKind::Entry(Box::new(entry(
        1,
        EntryKind::Results,
        blocks,
    ))));
    let printed = talk.printed();
    assert_eq!(printed[0], "● Edit src/lexer.rs");
    let changes = printed[1..].join("\n");
    assert!(
        changes.contains("-a - b") && changes.contains("+a + b"),
        "{printed:?}"
    );
}

#[test]
fn the_output_of_a_command_is_shortened() {
    let mut talk = talk();
    talk.printed();
    let started = EventKind::CallStarted {
        call: "1".into(),
        tool: "Bash".into(),
        title: "cargo test".into(),
    };
    talk.event(started.clone());
    talk.event(EventKind::Output {
        call: "1".into(),
        text: "running\n\u{1b}[32mok\u{1b}[0m\n".into(),
        skipped: 0,
    });
    talk.wait(12_000);
    // Another viewer has come, and is told what runs.
    talk.event(started);
    let live = talk.live();
    assert!(live.contains("┄ cargo test  12 s · 2 lines · ok"), "{live}");
    let lines: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
    let blocks = vec![result("1", &lines.join("\n"), true)];
    talk.event(EventKind::Entry(Box::new(entry(
        0,
        EntryKind::Results,
        blocks,
    ))));
    let expected = [
        "✗ Bash  cargo test",
        "  line 1",
        "  line 2",
        "  line 3",
        "  line 4",
        "  … 5 more lines",
    ];
    assert_eq!(talk.printed(), expected);
    assert!(!talk.live().contains("┄"), "{}", talk.live());
}

#[test]
fn the_end_of_a_run_is_said_if_it_is_not_expected() {
    let check = |outcome, expected: &[&str]| {
        let mut talk = talk();
        talk.printed();
        talk.event(ended(outcome));
        assert_eq!(talk.printed(), expected);
    };
    check(Outcome::Completed, &[]);
    check(Outcome::Interrupted, &["✗ interrupted"]);
    check(
        Outcome::Partial(Limit::Budget),
        &["✗ stopped: the budget is used up"],
    );
    check(
        Outcome::Paused(fault("no\nnetwork")),
        &["✗ paused: no network; /continue goes on with it"],
    );
}

#[test]
fn a_retry_is_no_news_once_the_reply_arrives() {
    let mut talk = talk();
    talk.event(retry());
    talk.text("Found it.");
    assert!(!talk.live().contains("overloaded"), "{}", talk.live());
}

#[test]
fn thinking_is_one_line_until_it_is_asked_for() {
    let mut talk = talk();
    talk.says("/thinking");
    assert!(talk.live().contains("the model has not thought yet"));
    talk.works();
    let thinks = |text: &str| EventKind::Delta(Delta::Thinking(text.into()));
    talk.event(thinks("First the lexer,\nthen "));
    talk.wait(12_000);
    talk.event(thinks("the parser."));
    let live = talk.live();
    assert!(
        live.contains("∴ thinking 12 s · First the lexer, then the parser."),
        "{live}"
    );
    talk.printed();
    talk.event(EventKind::Delta(Delta::BlockDone));
    talk.text("Done.");
    assert!(!talk.live().contains("∴"));
    talk.event(reply(0, "Done."));
    assert_eq!(talk.printed(), ["∴ thought for 12 s", "Done."]);
    talk.says("/thinking");
    assert_eq!(talk.printed(), ["First the lexer,", "then the parser."]);
}

#[test]
fn thinking_of_a_failed_attempt_is_void() {
    let mut talk = talk();
    talk.works();
    let thinks = |text: &str| EventKind::Delta(Delta::Thinking(text.into()));
    talk.event(thinks("wrong"));
    talk.event(retry());
    talk.event(thinks("right"));
    talk.text("Done.");
    let thinking = ContentBlock::Thinking {
        thinking: "right".into(),
        signature: "s".into(),
    };
    let blocks = vec![thinking, ContentBlock::text("Done.")];
    talk.event(EventKind::Entry(Box::new(entry(
        0,
        EntryKind::Reply,
        blocks,
    ))));
    talk.printed();
    talk.says("/thinking");
    assert_eq!(talk.printed(), ["right"]);
}

#[test]
fn a_change_has_the_numbers_of_its_lines() {
    let input = r#"{"file_path": "a.rs", "old_string": "a - b", "new_string": "a + b"}"#;
    let mut talk = talk();
    let mut edit = |id: &str, answer: &str| {
        let seq = talk.state.next_entry();
        let blocks = vec![call(id, "Edit", input)];
        talk.event(EventKind::Entry(Box::new(entry(
            seq,
            EntryKind::Reply,
            blocks,
        ))));
        let blocks = vec![result(id, answer, false)];
        talk.event(EventKind::Entry(Box::new(entry(
            seq + 1,
            EntryKind::Results,
            blocks,
        ))));
        talk.printed().split_off(1)
    };
    edit("1", "");
    let answer = "edited a.rs:\n    39\tx\n    40\ty\n    41\t  a + b\n    42\tz\n";
    assert_eq!(edit("2", answer), ["  41 -  a - b", "  41 +  a + b"]);
    // Where it is in the file is not known.
    let answer = "edited a.rs: 3 occurrences replaced";
    assert_eq!(edit("3", answer), ["     -a - b", "     +a + b"]);
}
