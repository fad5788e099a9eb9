//! What is written is read again as it was.

use posse_protocol::wire::{ClientMessage, ServerMessage, WireError};
use posse_protocol::{
    AgentId, Command, ContentBlock, Event, EventKind, Question, QuestionKind, RawJson,
};
use uuid::Uuid;

use crate::any::{commands, each, events, watches};

/// A message is one line: its only line break is its end.
fn assert_one_line(line: &str) {
    assert_eq!(line.find(['\n', '\r']), Some(line.len() - 1), "{line}");
}

pub(crate) fn event(kind: EventKind) -> ServerMessage {
    let agent = AgentId::from(Uuid::from_u128(7));
    ServerMessage::Event {
        at_ms: 1_763_280_000_000,
        event: Event { agent, kind },
    }
}

// proves WR-01 (part: commands)
#[test]
fn every_command_comes_back() {
    each(commands(), |command| {
        for id in [None, Some("1".to_owned())] {
            let message = ClientMessage::Command {
                id,
                command: command.clone(),
            };
            let line = message.clone().encode().unwrap();
            assert_one_line(&line);
            assert_eq!(ClientMessage::decode(&line).unwrap(), message, "{line}");
        }
    });
}

// proves WR-01 (part: events)
#[test]
fn every_event_comes_back() {
    each(events(), |kind| {
        let message = event(kind);
        let line = message.clone().encode().unwrap();
        assert_one_line(&line);
        assert_eq!(ServerMessage::decode(&line).unwrap(), message, "{line}");
    });
}

#[test]
fn greetings_and_answers_come_back() {
    let program = "posse 0.1.0".to_owned();
    let hello = ClientMessage::Hello {
        program: program.clone(),
    };
    let line = hello.clone().encode().unwrap();
    assert_eq!(
        line,
        "{\"version\":\"2.6\",\"type\":\"hello\",\"program\":\"posse 0.1.0\"}\n"
    );
    assert_eq!(ClientMessage::decode(&line).unwrap(), hello);
    for watch in watches().into_iter().map(ClientMessage::Watch) {
        let line = watch.clone().encode().unwrap();
        assert_eq!(ClientMessage::decode(&line).unwrap(), watch, "{line}");
    }
    for message in [
        ServerMessage::Behind { lost: 7 },
        ServerMessage::Hello { program },
        ServerMessage::Accepted { id: "1".into() },
        ServerMessage::Refused {
            id: None,
            error: "no".into(),
        },
        ServerMessage::Refused {
            id: Some("1".into()),
            error: "no".into(),
        },
    ] {
        let line = message.clone().encode().unwrap();
        assert_eq!(ServerMessage::decode(&line), Ok(message));
    }
}

// proves WR-01 (part: as written)
#[test]
fn an_input_is_on_the_line_as_the_model_wrote_it() {
    let asked = |input: &str| {
        event(EventKind::ApprovalRequested(Box::new(Question {
            id: Uuid::from_u128(7).into(),
            kind: QuestionKind::Permission,
            call: "c".into(),
            tool: "Bash".into(),
            input: RawJson::parse(input).unwrap(),
            why: "no rule".into(),
            from: None,
            until_ms: None,
            suggestions: Vec::new(),
            shown: None,
            refused: None,
        })))
    };
    let line = asked("{\n  \"n\": 1.50,\r\n  \"n\": 1e400, \"s\": \"a\\nb\"\n}")
        .encode()
        .unwrap();
    assert_one_line(&line);
    let written = "{   \"n\": 1.50,    \"n\": 1e400, \"s\": \"a\\nb\" }";
    assert!(line.contains(&format!("\"input\":{written},")), "{line}");
    assert_eq!(ServerMessage::decode(&line), Ok(asked(written)));
}

#[test]
fn a_command_that_is_passed_on_twice_reaches_the_last() {
    let to = |agent, command| Command::To {
        agent: Uuid::from_u128(agent).into(),
        command: Box::new(command),
    };
    let line = ClientMessage::Command {
        id: None,
        command: to(1, to(2, Command::Interrupt)),
    }
    .encode()
    .unwrap();
    let reached = ClientMessage::Command {
        id: None,
        command: to(2, Command::Interrupt),
    };
    assert_eq!(ClientMessage::decode(&line), Ok(reached));
}

#[test]
fn a_prompt_holds_text_and_images_only() {
    let thinking = ContentBlock::RedactedThinking { data: "x".into() };
    let message = ClientMessage::Command {
        id: None,
        command: Command::Prompt(vec![thinking]),
    };
    assert_eq!(message.encode(), Err(WireError::NotAPrompt));
    let line =
        r#"{"version":"2.6","type":"prompt","words":[{"type":"redacted_thinking","data":"x"}]}"#;
    let refused = ClientMessage::decode(line).unwrap_err();
    assert!(
        refused
            .error
            .to_string()
            .contains("expected one of `text`, `image`, `tools`"),
        "{}",
        refused.error
    );
}
