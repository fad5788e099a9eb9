//! What two versions of posse make of each other.

use posse_protocol::wire::{
    ClientMessage, ServerMessage, ServerReader, VERSION, Version, WireError,
};
use posse_protocol::{Command, EventKind};
use serde_json::{Value, json};

use crate::any::{commands, each, events};
use crate::round_trip::event;

// proves WR-02 (part: in every message)
#[test]
fn every_message_says_its_version_and_is_not_read_without() {
    let check = |line: String| {
        assert!(
            line.starts_with(&format!("{{\"version\":\"{VERSION}\",")),
            "{line}"
        );
        let without = line.replacen(&format!("\"version\":\"{VERSION}\","), "", 1);
        let why = "not a message: missing field `version`";
        let client = ClientMessage::decode(&without).unwrap_err().error;
        assert!(client.to_string().starts_with(why), "{client}");
        let server = ServerMessage::decode(&without).unwrap_err();
        assert!(server.to_string().starts_with(why), "{server}");
    };
    each(events(), |kind| check(event(kind).encode().unwrap()));
    each(commands(), |command| {
        let message = ClientMessage::Command { id: None, command };
        check(message.encode().unwrap());
    });
}

// proves WR-02 (part: a higher major)
#[test]
fn another_major_is_refused_with_words_whatever_else_the_line_says() {
    let words =
        "this posse speaks version 2 of the protocol; the other side speaks 3: update posse";
    for (minor, line) in [
        (0, r#"{"version":"3.0","type":"interrupt","id":"7"}"#),
        (13, r#"{"version":"3.13","type":["x"],"id":"7","body":{}}"#),
    ] {
        let theirs = Version { major: 3, minor };
        assert_eq!(ServerMessage::decode(line), Err(WireError::Version(theirs)));
        let refused = ClientMessage::decode(line).unwrap_err();
        // The client can be told.
        let answer = ServerMessage::from(refused).encode().unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let expected = json!({"version": VERSION, "type": "refused", "id": "7", "error": words});
        assert_eq!(answer, expected);
    }
    let lower = ServerMessage::decode(r#"{"version":"0.9","type":"started"}"#).unwrap_err();
    let words = "the other side speaks 0: update the other side";
    assert!(lower.to_string().ends_with(words), "{lower}");
    for bad in ["1", "1.", "1.0.0", "01.0", "1.+2", "one", ""] {
        let line = json!({"version": bad, "type": "interrupt"}).to_string();
        let refused = ClientMessage::decode(&line).unwrap_err().error.to_string();
        assert!(
            refused.contains(&format!("is not a version such as {VERSION}")),
            "{refused}"
        );
    }
}

/// Adds a field that nobody knows to every object, but for those that are kept as they are and for maps.
fn with_unknown_fields(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(with_unknown_fields),
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match key.as_str() {
                    "input" | "input_schema" | "value" | "block" => {}
                    "roles" => {
                        let roles = value.as_object_mut().unwrap();
                        roles.values_mut().for_each(with_unknown_fields);
                    }
                    _ => with_unknown_fields(value),
                }
            }
            object.insert("x_later".into(), json!({"type": 7, "version": []}));
        }
        _ => {}
    }
}

/// Returns the line as a later minor version might write it. JSON that no value can hold has none.
fn of_later_minor(line: &str) -> Option<String> {
    let mut message: Value = serde_json::from_str(line).ok()?;
    with_unknown_fields(&mut message);
    message["version"] = json!("2.27");
    Some(message.to_string())
}

// proves WR-02 (part: a higher minor)
// proves WR-03 (part: fields)
#[test]
fn fields_of_a_later_minor_are_ignored() {
    each(events(), |kind| {
        let line = event(kind).encode().unwrap();
        let Some(later) = of_later_minor(&line) else {
            return;
        };
        // Read as values, so that spaces and numbers of inputs are spelt alike.
        let plain: Value = serde_json::from_str(&line).unwrap();
        let read = ServerMessage::decode(&later).unwrap();
        assert_eq!(
            Ok(read),
            ServerMessage::decode(&plain.to_string()),
            "{later}"
        );
    });
    each(commands(), |command| {
        let message = ClientMessage::Command { id: None, command };
        let line = message.encode().unwrap();
        let Some(later) = of_later_minor(&line) else {
            return;
        };
        let plain: Value = serde_json::from_str(&line).unwrap();
        let read = ClientMessage::decode(&later).unwrap();
        assert_eq!(
            Ok(read),
            ClientMessage::decode(&plain.to_string()),
            "{later}"
        );
    });
}

// proves WR-03 (part: events)
#[test]
fn events_of_a_later_minor_are_skipped_and_counted() {
    let known = event(EventKind::AllIdle);
    let agent = "00000000-0000-0000-0000-000000000007";
    let later = [
        json!({"version": "2.99", "type": "weather", "agent": agent, "at_ms": 1, "to": "dev"}),
        // Of a known type, with a word that is not known.
        json!({"version": "2.99", "type": "mode", "agent": agent, "at_ms": 1, "mode": "yolo"}),
    ];
    let mut reader = ServerReader::default();
    let mut read = Vec::new();
    for line in &later {
        let line = format!("{}{line}\n", known.clone().encode().unwrap());
        read.extend(reader.push(line.as_bytes()));
    }
    assert_eq!(read, [Ok(known.clone()), Ok(known)]);
    assert_eq!(reader.skipped(), 2);
    // The same in this version is a fault.
    let same = later[1].to_string().replace("2.99", &VERSION.to_string());
    let faults = reader.push(format!("{same}\n").as_bytes());
    assert!(
        matches!(&faults[..], [Err(WireError::Malformed(_))]),
        "{faults:?}"
    );
    assert_eq!(reader.skipped(), 2);
}

// proves WR-03 (part: commands)
#[test]
fn a_command_that_is_not_known_is_answered_with_an_error() {
    let line = r#"{"version":"2.99","type":"branch","id":"9","at":4}"#;
    let refused = ClientMessage::decode(line).unwrap_err();
    assert_eq!(
        ServerMessage::from(refused),
        ServerMessage::Refused {
            id: Some("9".into()),
            error: format!("version {VERSION} of the protocol has no message `branch`"),
        }
    );
    let known = r#"{"version":"2.99","type":"interrupt","id":"9"}"#;
    let interrupt = ClientMessage::Command {
        id: Some("9".into()),
        command: Command::Interrupt,
    };
    assert_eq!(ClientMessage::decode(known), Ok(interrupt));
}
