//! The schema says what the types say.

use std::cell::RefCell;
use std::collections::BTreeSet;

use jsonschema::Validator;
use posse_protocol::wire::schema::schema;
use posse_protocol::wire::{ClientMessage, ServerMessage};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::any::{commands, each, events, the_same_of_each, watches};
use crate::round_trip::event;

/// A validator of the messages of one side.
fn validator(side: &str) -> Validator {
    let mut schema = schema();
    schema["anyOf"] = json!([{ "$ref": format!("#/$defs/{side}") }]);
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).unwrap()
}

/// Any command, as a line.
fn client_lines() -> Vec<BoxedStrategy<String>> {
    let line = |command| {
        let id = Some("1".to_owned());
        ClientMessage::Command { id, command }.encode().unwrap()
    };
    let hello = || ClientMessage::Hello {
        program: "test".into(),
    };
    let mut arms: Vec<_> = commands()
        .into_iter()
        .map(|arm| arm.prop_map(line).boxed())
        .collect();
    arms.push(Just(hello().encode().unwrap()).boxed());
    let watches = watches().into_iter().map(ClientMessage::Watch);
    let watches: Vec<_> = watches.map(|watch| watch.encode().unwrap()).collect();
    arms.push(select(watches).boxed());
    arms
}

/// Any message of a server, as a line.
fn server_lines() -> Vec<BoxedStrategy<String>> {
    let control = [
        ServerMessage::Hello {
            program: "test".into(),
        },
        ServerMessage::Accepted { id: "1".into() },
        ServerMessage::Refused {
            id: None,
            error: "no".into(),
        },
        ServerMessage::Behind { lost: 7 },
    ];
    let control = control.map(|message| message.encode().unwrap());
    let mut arms: Vec<_> = events()
        .into_iter()
        .map(|arm| arm.prop_map(|kind| event(kind).encode().unwrap()).boxed())
        .collect();
    arms.push(select(control.to_vec()).boxed());
    arms
}

/// Collects every string of a value.
fn strings(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|value| strings(value, found)),
        Value::Object(object) => object.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

/// Collects the words that a schema lists: types and values of enums.
fn words(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Array(list) => list.iter().for_each(|value| words(value, found)),
        Value::Object(object) => {
            for (key, value) in object {
                match key.as_str() {
                    "const" | "enum" => strings(value, found),
                    _ => words(value, found),
                }
            }
        }
        _ => {}
    }
}

// proves WR-04 (part: all that is sent)
#[test]
fn the_schema_allows_every_message_and_lists_no_word_that_none_says() {
    let (client, server) = (validator("ClientMessage"), validator("ServerMessage"));
    let said = RefCell::new(BTreeSet::new());
    let check = |validator: &Validator, line: &str| {
        // JSON that no value can hold is left out.
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let faults: Vec<_> = validator
            .iter_errors(&message)
            .map(|error| error.to_string())
            .collect();
        assert!(faults.is_empty(), "{line}{faults:?}");
        strings(&message, &mut said.borrow_mut());
    };
    // The same ones each time, so that no word is left out by chance.
    the_same_of_each(client_lines(), |line| check(&client, &line));
    the_same_of_each(server_lines(), |line| check(&server, &line));
    let mut listed = BTreeSet::new();
    words(&schema(), &mut listed);
    let said = said.into_inner();
    let never: Vec<_> = listed.difference(&said).collect();
    assert!(never.is_empty(), "{never:?}");
    assert!(listed.len() > 80, "{}", listed.len());
}

/// Every place in a value, as a JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut step = |key: &str, value| {
        let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        places(value, &place, found);
        found.push(place);
    };
    match value {
        Value::Array(list) => (0..)
            .zip(list)
            .for_each(|(n, value)| step(&i32::to_string(&n), value)),
        Value::Object(object) => object.iter().for_each(|(key, value)| step(key, value)),
        _ => {}
    }
}

/// A change that makes another message, or none.
#[derive(Clone, Debug)]
enum Mutilation {
    Remove,
    Replace(Value),
}

fn mutilation() -> impl Strategy<Value = Mutilation> {
    let other = [
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!("?"),
        json!([]),
        json!({}),
        json!("text"),
        json!("started"),
    ];
    prop_oneof![
        Just(Mutilation::Remove),
        select(other.to_vec()).prop_map(Mutilation::Replace)
    ]
}

/// Changes a message in one place.
fn mutilate(message: &mut Value, place: &str, how: Mutilation) {
    let (parent, key) = place.rsplit_once('/').unwrap();
    match how {
        Mutilation::Replace(value) => *message.pointer_mut(place).unwrap() = value,
        Mutilation::Remove => match message.pointer_mut(parent).unwrap() {
            Value::Array(list) => drop(list.remove(key.parse().unwrap())),
            Value::Object(object) => {
                object.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
            }
            _ => unreachable!("a place is in a list or an object"),
        },
    }
}

/// Checks that a side's schema and its reader agree about messages that were changed in one place.
fn agrees(side: &str, lines: Vec<BoxedStrategy<String>>, is_read: fn(&str) -> bool) {
    let validator = validator(side);
    let (read, refused) = (RefCell::new(0), RefCell::new(0));
    let mutilated = |line| (line, any::<Index>(), mutilation()).boxed();
    let lines = lines.into_iter().map(mutilated).collect();
    each(lines, |(line, index, how)| {
        let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
            return;
        };
        let mut all = Vec::new();
        places(&message, "", &mut all);
        mutilate(&mut message, index.get::<String>(&all), how);
        let is_allowed = validator.is_valid(&message);
        assert_eq!(is_allowed, is_read(&message.to_string()), "{message}");
        *if is_allowed { &read } else { &refused }.borrow_mut() += 1;
    });
    // Both happen, else nothing was shown.
    assert!(read.into_inner() > 50 && refused.into_inner() > 200);
}

// proves WR-04 (part: nothing else)
#[test]
fn the_schema_refuses_what_cannot_be_read_and_nothing_else() {
    agrees("ClientMessage", client_lines(), |line| {
        ClientMessage::decode(line).is_ok()
    });
    agrees("ServerMessage", server_lines(), |line| {
        ServerMessage::decode(line).is_ok()
    });
}
