//! The schema of each version is kept in docs/schema: what was said once stays.

use std::path::{Path, PathBuf};

use posse_protocol::wire::schema::schema;
use posse_protocol::wire::{VERSION, Version};
use serde_json::{Value, json};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// Every kept schema, by version.
fn kept() -> Vec<(Version, Value)> {
    let entries = std::fs::read_dir(directory()).unwrap();
    let mut kept: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let version = stem.strip_prefix("protocol-").unwrap().parse().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            (version, serde_json::from_str(&text).unwrap())
        })
        .collect();
    kept.sort_by_key(|(version, _)| *version);
    kept
}

/// Returns what is to be done, if `schema` of version `now` does not fit the kept ones.
fn complaint(now: Version, schema: &Value, kept: &[(Version, Value)]) -> Option<String> {
    let write = |version| format!("run `posse schema > docs/schema/protocol-{version}.json`");
    let raise = |version| {
        format!(
            "set VERSION in crates/posse-protocol/src/wire/version.rs to {version} and {}",
            write(version)
        )
    };
    let next_major = Version {
        major: now.major + 1,
        minor: 0,
    };
    for (version, old) in kept.iter().filter(|(old, _)| old.major == now.major) {
        let broken = breaks(old, schema);
        if !broken.is_empty() {
            return Some(format!(
                "the schema takes back what version {version} says:\n  {}\nkeep it, or {}",
                broken.join("\n  "),
                raise(next_major)
            ));
        }
    }
    match kept.iter().find(|(version, _)| *version == now) {
        None => Some(format!("version {now} is not kept: {}", write(now))),
        Some((_, old)) if old == schema => None,
        Some((_, old)) if shape(old) == shape(schema) => Some(format!(
            "only descriptions differ from those kept for {now}: {}",
            write(now)
        )),
        Some(_) => {
            let next_minor = Version {
                minor: now.minor + 1,
                ..now
            };
            Some(format!(
                "the schema says more than the one kept for {now}: {}",
                raise(next_minor)
            ))
        }
    }
}

/// A schema without its descriptions.
fn shape(schema: &Value) -> Value {
    match schema {
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::Object(object) => object
            .iter()
            // A property may have that name.
            .filter(|(key, value)| *key != "description" || !value.is_string())
            .map(|(key, value)| (key.clone(), shape(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Lists what `new` takes back of `old`. It may have more definitions, optional properties, and
/// alternatives that are known by a word.
fn breaks(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let (mut old, mut new) = (shape(old), shape(new));
    for schema in [&mut old, &mut new] {
        for key in ["$id", "title"] {
            schema.as_object_mut().unwrap().shift_remove(key);
        }
    }
    compare("", &old, &new, &mut found);
    found
}

fn compare(at: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let (Value::Object(was), Value::Object(is)) = (old, new) else {
        if old != new {
            found.push(format!("{at}: {new} instead of {old}"));
        }
        return;
    };
    let may_grow = at.ends_with("/properties") || at.ends_with("/$defs");
    for key in is.keys().filter(|key| !may_grow && !was.contains_key(*key)) {
        found.push(format!("{at}/{key} is new"));
    }
    for (key, old) in was {
        let at = format!("{at}/{key}");
        match (key.as_str(), old, is.get(key)) {
            (_, _, None) => found.push(format!("{at} is gone")),
            ("required" | "enum", Value::Array(was), Some(Value::Array(is))) => {
                let gone = was.iter().filter(|value| !is.contains(value));
                found.extend(gone.map(|value| format!("{at}: {value} is gone")));
                let new = is
                    .iter()
                    .filter(|value| key == "required" && !was.contains(value));
                found.extend(new.map(|value| format!("{at}: {value} is new")));
            }
            ("oneOf" | "anyOf", Value::Array(was), Some(Value::Array(is))) => {
                for old in was {
                    match is.iter().find(|new| mark(new) == mark(old)) {
                        Some(new) => compare(&format!("{at}/{}", mark(old)), old, new, found),
                        None => found.push(format!("{at}: {} is gone", mark(old))),
                    }
                }
                let has_word = |new: &Value| word(new).is_some();
                let new = is
                    .iter()
                    .filter(|new| !has_word(new) && !was.iter().any(|old| mark(old) == mark(new)));
                found.extend(new.map(|new| format!("{at}: {} is new", mark(new))));
            }
            (_, old, Some(new)) => compare(&at, old, new, found),
        }
    }
}

/// The word that an alternative is known by: its value, or its `type`.
fn word(alternative: &Value) -> Option<&Value> {
    let tag = alternative.pointer("/properties/type/const");
    alternative.get("const").or(tag)
}

/// What an alternative is known by.
fn mark(alternative: &Value) -> String {
    word(alternative).unwrap_or(alternative).to_string()
}

// proves WR-06 (part: kept)
#[test]
fn the_schema_is_the_one_that_is_kept_for_its_version() {
    if let Some(complaint) = complaint(VERSION, &schema(), &kept()) {
        panic!("{complaint}");
    }
}

fn next_minor() -> Version {
    Version {
        minor: VERSION.minor + 1,
        ..VERSION
    }
}

/// The schema with one change, and what is said to it.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut changed = schema();
    change(&mut changed);
    complaint(VERSION, &changed, &[(VERSION, schema())]).unwrap_or_default()
}

// proves WR-06 (part: additions)
#[test]
fn an_addition_without_a_new_minor_fails() {
    let next = next_minor();
    let minor = format!(
        "the schema says more than the one kept for {VERSION}: set VERSION in \
         crates/posse-protocol/src/wire/version.rs to {next} and run `posse schema > \
         docs/schema/protocol-{next}.json`"
    );
    let field = |schema: &mut Value| {
        schema["$defs"]["Fault"]["properties"]["hint"] = json!({"type": "string"});
    };
    assert_eq!(changed(field), minor);
    let kind = |schema: &mut Value| {
        let word = json!({"type": "object", "properties": {"type": {"const": "later"}}});
        let deltas = schema["$defs"]["Delta"]["oneOf"].as_array_mut().unwrap();
        deltas.push(word);
    };
    assert_eq!(changed(kind), minor);
    // With a new version and its file it is well.
    let mut more = schema();
    field(&mut more);
    let (old, new) = ((VERSION, schema()), (next, more.clone()));
    assert_eq!(complaint(next, &more, &[old.clone(), new]), None);
    assert_eq!(
        complaint(next, &more, &[old]).unwrap(),
        format!(
            "version {next} is not kept: run `posse schema > docs/schema/protocol-{next}.json`"
        )
    );
}

// proves WR-06 (part: changes)
#[test]
fn a_change_without_a_new_major_fails() {
    let check = |what: &str, change: &dyn Fn(&mut Value)| {
        let said = changed(change);
        let expected = format!(
            "the schema takes back what version {VERSION} says:\n  {what}\nkeep it, or set VERSION in \
             crates/posse-protocol/src/wire/version.rs to 3.0 and run `posse schema > \
             docs/schema/protocol-3.0.json`"
        );
        assert_eq!(said, expected);
    };
    let at = "/$defs/Fault";
    check(&format!("{at}/properties/message is gone"), &|schema| {
        let properties = schema["$defs"]["Fault"]["properties"].as_object_mut();
        properties.unwrap().shift_remove("message");
    });
    check(
        &format!("{at}/properties/message/type: \"integer\" instead of \"string\""),
        &|schema| schema["$defs"]["Fault"]["properties"]["message"]["type"] = json!("integer"),
    );
    check(&format!("{at}/required: \"message\" is gone"), &|schema| {
        schema["$defs"]["Fault"]["required"] = json!(["class"]);
    });
    check(&format!("{at}/required: \"status\" is new"), &|schema| {
        schema["$defs"]["Fault"]["required"] = json!(["class", "message", "status"]);
    });
    check("/$defs/FaultClass/oneOf: \"busy\" is gone", &|schema| {
        let words = schema["$defs"]["FaultClass"]["oneOf"].as_array_mut();
        words.unwrap().retain(|word| word["const"] != "busy");
    });
    check(
        "/$defs/Delta/oneOf/\"text\"/required: \"text\" is gone",
        &|schema| {
            let deltas = schema["$defs"]["Delta"]["oneOf"].as_array_mut().unwrap();
            let text = deltas
                .iter_mut()
                .find(|delta| word(delta) == Some(&json!("text")));
            text.unwrap()["required"] = json!(["type"]);
        },
    );
    check("/anyOf: {\"type\":\"null\"} is new", &|schema| {
        schema["anyOf"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "null"}));
    });
    check("/$defs/Name/minLength is new", &|schema| {
        schema["$defs"]["Name"]["minLength"] = json!(2);
    });
}

#[test]
fn other_words_for_the_same_need_no_new_version() {
    let said = changed(|schema| schema["$defs"]["Fault"]["description"] = json!("Trouble."));
    assert_eq!(
        said,
        format!(
            "only descriptions differ from those kept for {VERSION}: run `posse schema > \
             docs/schema/protocol-{VERSION}.json`"
        )
    );
}

#[test]
fn a_later_minor_keeps_what_earlier_ones_say() {
    let mut less = schema();
    less["$defs"]["Fault"]["required"] = json!([]);
    let next = next_minor();
    let kept = [(VERSION, schema()), (next, less.clone())];
    let said = complaint(next, &less, &kept).unwrap();
    assert!(
        said.starts_with(&format!(
            "the schema takes back what version {VERSION} says"
        )),
        "{said}"
    );
    let next = Version { major: 3, minor: 0 };
    let kept = [(VERSION, schema()), (next, less.clone())];
    assert_eq!(complaint(next, &less, &kept), None);
}
