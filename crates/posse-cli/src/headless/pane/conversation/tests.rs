//! Members and the person in front of them, without either.

use posse_protocol::{Answer, Member, Outcome, RawJson, RunEnd};

use super::*;
use crate::headless::fixtures::{self, end, facts, session};

fn id(number: u128) -> AgentId {
    uuid::Uuid::from_u128(number).into()
}

fn member(name: &str, number: u128) -> Member {
    serde_json::from_value(serde_json::json!({
        "agent": id(number), "name": name, "agent_type": "general-purpose", "model": "m", "prompt": "",
        "color": "blue", "backend": "tmux", "cwd": "/", "joined_ms": 0,
    }))
    .unwrap()
}

fn team() -> Team {
    Team {
        realm: session().uuid().into(),
        name: "parser".parse().unwrap(),
        description: String::new(),
        lead: session(),
        created_ms: 0,
        settings: serde_json::Map::new(),
        members: vec![member("one", 1), member("two", 2)],
        former: Vec::new(),
    }
}

fn alone() -> PaneConversation {
    PaneConversation::new(team(), facts(), &[id(1)], Some(id(1)))
}

fn event(conversation: &mut PaneConversation, number: u128, kind: EventKind) -> String {
    written(conversation.event(Event {
        agent: id(number),
        kind,
    }))
}

fn written(said: Vec<OutputItem>) -> String {
    let line = |said: OutputItem| match said {
        OutputItem::Out(text) => text,
        OutputItem::Note(note) | OutputItem::TerminalNote(note) => format!("{note}\n"),
        _ => String::new(),
    };
    said.into_iter().map(line).collect()
}

fn typed(conversation: &mut PaneConversation, words: &str) -> String {
    written(conversation.line(Some(StdinLine::Text(words.into()))))
}

fn question(call: &str) -> EventKind {
    EventKind::ApprovalRequested(Box::new(Question {
        input: RawJson::parse(r#"{"command":"rm x"}"#).unwrap(),
        why: "no rule\x1b[2J".into(),
        ..fixtures::question(call, None)
    }))
}

fn news(what: MemberChange) -> EventKind {
    EventKind::Member(Box::new(MemberUpdate {
        team: "parser".parse().unwrap(),
        name: "one".parse().unwrap(),
        color: "blue".into(),
        what,
    }))
}

fn to(number: u128, command: Command) -> Option<Command> {
    Some(Command::To {
        agent: id(number),
        command: Box::new(command),
    })
}

fn ended() -> EventKind {
    EventKind::Ended(Box::new(RunEnd {
        ..end(Outcome::Completed)
    }))
}

#[test]
fn typed_words_go_to_the_one_who_is_here() {
    let mut conversation = alone();
    assert!(written(conversation.greet()).contains("one@parser"));
    typed(&mut conversation, "  ");
    assert_eq!(conversation.next_command(), None);
    typed(&mut conversation, "look again");
    assert_eq!(
        conversation.next_command(),
        to(1, Command::Prompt(vec![ContentBlock::text("look again")]))
    );
    let mut several = PaneConversation::new(team(), facts(), &[id(1), id(2)], None);
    assert!(typed(&mut several, "hello").contains("posse team attach MEMBER@parser"));
    assert_eq!(several.next_command(), None);
}

#[test]
fn questions_are_asked_one_by_one_and_a_clear_word_answers() {
    let mut conversation = alone();
    let asked = event(&mut conversation, 1, question("a"));
    assert!(
        asked.contains("Bash\n  │ rm x\n") && asked.contains("y allow once · n deny"),
        "{asked}"
    );
    assert!(!asked.contains('\x1b'), "{asked}");
    assert_eq!(
        event(&mut conversation, 7, question("b")),
        "",
        "one after the other"
    );
    assert!(typed(&mut conversation, "why?").contains("y allow once"));
    assert_eq!(conversation.next_command(), None);
    let next = typed(&mut conversation, "Yes");
    let allow = Answer::allow();
    assert_eq!(
        conversation.next_command(),
        Some(Command::Answer {
            agent: id(1),
            question: fixtures::question_id("a", None),
            answer: allow
        })
    );
    assert!(next.contains("a sub-agent: Bash"), "{next}");
    typed(&mut conversation, "n");
    let denied = conversation.next_command();
    assert!(
        matches!(denied, Some(Command::Answer { agent, answer: Answer::Deny { .. }, .. }) if agent == id(7))
    );
    event(&mut conversation, 1, question("c"));
    event(
        &mut conversation,
        1,
        EventKind::ApprovalWithdrawn {
            question: fixtures::question_id("c", None),
        },
    );
    typed(&mut conversation, "y");
    assert_eq!(
        conversation.next_command(),
        to(1, Command::Prompt(vec![ContentBlock::text("y")]))
    );
}

#[test]
fn a_question_shows_all_that_would_be_allowed() {
    let asked = |tool: &str, input: &str| {
        let input = RawJson::parse(input).unwrap();
        let question = Question {
            tool: tool.into(),
            input,
            why: "w".repeat(900),
            ..fixtures::question("a", None)
        };
        event(
            &mut alone(),
            1,
            EventKind::ApprovalRequested(Box::new(question)),
        )
    };
    let long = format!("echo {}; rm -rf ~", "x".repeat(5_000));
    let told = asked(
        "Bash",
        &serde_json::json!({"command": format!("{long}\n# \u{1b}[2J")}).to_string(),
    );
    assert!(
        told.contains(&format!("  │ {long}\n  │ # \\u{{1b}}[2J\n")),
        "{told}"
    );
    assert!(
        told.lines()
            .last()
            .is_some_and(|line| line.chars().count() < 200),
        "{told}"
    );
    let told = asked("Bash", r#"{"command": "ls", "run_in_background": true}"#);
    assert!(
        told.contains("  │ ls\n  │ {\"run_in_background\":true}\n"),
        "{told}"
    );
    let input = format!(
        r#"{{"file_path":"/x","content":"{}end"}}"#,
        "y".repeat(5_000)
    );
    assert!(asked("Write", &input).contains(&format!("Write\n  │ {input}\n")));
}

#[test]
fn the_first_interrupt_is_for_the_member_and_the_second_for_us() {
    let mut conversation = alone();
    event(&mut conversation, 1, EventKind::Started);
    conversation.interrupt();
    assert_eq!(
        (conversation.next_command(), conversation.over()),
        (to(1, Command::Interrupt), None)
    );
    event(&mut conversation, 1, ended());
    event(&mut conversation, 1, EventKind::Started);
    conversation.interrupt();
    assert_eq!(
        (conversation.next_command(), conversation.over()),
        (to(1, Command::Interrupt), None),
        "it works on something else"
    );
    conversation.interrupt();
    assert_eq!(conversation.over(), Some(ConversationEnd::Left));
    let mut idle = alone();
    assert!(written(idle.interrupt()).contains("again to leave"));
    assert_eq!((idle.next_command(), idle.over()), (None, None));
    let mut closed = alone();
    closed.hang_up();
    assert_eq!(closed.over(), Some(ConversationEnd::Left));
}

#[test]
fn it_is_over_when_the_member_has_left() {
    let mut conversation = alone();
    let said = event(&mut conversation, 1, news(MemberChange::Left));
    assert!(said.contains("has left the team"), "{said}");
    assert_eq!(conversation.over(), Some(ConversationEnd::Ended));
    let mut several = PaneConversation::new(team(), facts(), &[id(1), id(2)], None);
    event(&mut several, 1, news(MemberChange::Left));
    assert_eq!(several.over(), None);
    several.gone();
    assert_eq!(several.over(), Some(ConversationEnd::Ended));
}

#[test]
fn who_has_nothing_to_do_and_no_lead_is_left_after_a_while() {
    let mut conversation = alone();
    let look = Duration::from_secs(2);
    event(&mut conversation, 1, EventKind::Started);
    for _ in 0..20 {
        conversation.passed(look, false);
    }
    assert_eq!(conversation.over(), None, "it works");
    event(&mut conversation, 1, ended());
    for _ in 0..4 {
        conversation.passed(look, false);
    }
    conversation.passed(look, true);
    conversation.passed(look * 4, false);
    assert_eq!(
        conversation.over(),
        None,
        "the lead has come back in between"
    );
    conversation.passed(look, false);
    assert_eq!(conversation.over(), Some(ConversationEnd::Abandoned));
    assert!(
        conversation.farewell().contains("continue with: posse"),
        "{}",
        conversation.farewell()
    );
}

#[test]
fn of_several_each_line_says_whose_it_is() {
    let mut conversation = PaneConversation::new(team(), facts(), &[id(1), id(2)], None);
    let call = |title: &str| EventKind::CallStarted {
        call: "c".into(),
        tool: "Bash".into(),
        title: title.into(),
    };
    let said = event(&mut conversation, 2, call("Bash ls"));
    assert!(
        said.contains("two@parser") && said.contains("→ Bash ls"),
        "{said}"
    );
    let said = event(&mut conversation, 2, ended());
    assert!(
        said.contains("two@parser") && said.contains("all done"),
        "{said}"
    );
    let taken = event(&mut conversation, 3, news(MemberChange::TakenOver));
    assert!(taken.contains("now hosted here"), "{taken}");
}

// proves SM-11 (part: colours)
#[test]
fn what_a_member_is_told_is_a_line() {
    let said = |text: &str| {
        told(
            &[ContentBlock::text("<context>\n"), ContentBlock::text(text)],
            &team(),
        )
    };
    assert_eq!(
        said("look again\nand again").as_deref(),
        Some("» look again")
    );
    let mail = "Mail from another agent.\n\n<mail from=\"two\" id=\"1\" summary=\"s\">\n\nhello\x1b[2J\nyou\n</mail>";
    assert_eq!(
        said(mail).as_deref(),
        Some("» \x1b[34mtwo: hello\\u{1b}[2J\x1b[39m"),
        "in its sender's colour"
    );
    let other = mail.replace("\"two\"", "\"user\"");
    assert_eq!(
        said(&other).as_deref(),
        Some("» user: hello\\u{1b}[2J"),
        "who has none has none"
    );
    assert_eq!(said("\n"), None);
}
