//! What is accepted, what is refused, and in which words.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn findings() -> Value {
    json!({
        "type": "object",
        "properties": {
            "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
            "sure": {"type": "boolean"},
        },
        "required": ["findings"],
        "additionalProperties": false,
        "$defs": {"finding": {
            "type": "object",
            "properties": {"file": {"type": "string"}, "line": {"type": "integer", "minimum": 1}},
            "required": ["file", "line"],
        }},
    })
}

fn checked(schema: &Value, text: &str) -> Result<String, String> {
    OutputSchema::new(schema)
        .unwrap()
        .check(text)
        .map(|value| value.get().to_owned())
}

// proves AG-12 (part: validated)
#[test]
fn answers_that_fit() {
    let compact = r#"{"findings":[{"file":"a.rs","line":3}]}"#;
    let spaced = "{ \"findings\": [\n  {\"file\": \"a.rs\", \"line\": 3}\n] }";
    for text in [
        compact.to_owned(),
        format!("\n\n {spaced}\t\n"),
        format!("```\n{spaced}\n```"),
        format!("```json\n{spaced}\n```\n"),
        format!("  ```JSON\r\n{compact}\r\n```"),
        format!("```{compact}```"),
        format!("```json {compact} ```"),
    ] {
        assert_eq!(
            checked(&findings(), &text),
            Ok(compact.to_owned()),
            "{text}"
        );
    }
    for (schema, text) in [
        (json!(true), "null"),
        (json!({}), "\"``` text ```\""),
        (json!({"type": "number"}), "1.5"),
        (json!({"pattern": "^a+$"}), "\"aaa\""),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}),
            "[\"a\"]",
        ),
        (
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x:y"}),
            "{}",
        ),
        (
            json!({"prefixItems": [{"const": 1}], "items": false}),
            "[1]",
        ),
    ] {
        assert_eq!(checked(&schema, text), Ok(text.to_owned()), "{schema}");
    }
    assert_eq!(
        checked(&json!({}), r#"{"a":1,"a":2}"#),
        Ok(r#"{"a":2}"#.to_owned())
    );
}

// proves AG-12 (part: validated)
#[test]
fn answers_that_do_not_fit_are_told_why() {
    for (text, expected) in [
        ("", "there is no text, and so no JSON value"),
        ("```json\n```", "there is no text, and so no JSON value"),
        (
            "I found nothing.",
            "the text is not one JSON value: expected value at line 1 column 1",
        ),
        (
            "{} {}",
            "the text is not one JSON value: trailing characters at line 1 column 4",
        ),
        (
            "Here it is:\n```json\n{}\n```",
            "the text is not one JSON value: expected value at line 1 column 1",
        ),
        ("``````", "there is no text, and so no JSON value"),
        (
            "```",
            "the text is not one JSON value: expected value at line 1 column 1",
        ),
        ("[]", "/: [] is not of type \"object\""),
        ("{}", "/: \"findings\" is a required property"),
        (
            r#"{"findings":[{"file":"a.rs","line":"x"}]}"#,
            "/findings/0/line: \"x\" is not of type \"integer\"",
        ),
        (
            r#"{"findings":[{"line":0}],"extra":1}"#,
            "/findings/0/line: 0 is less than the minimum of 1\n\
             /findings/0: \"file\" is a required property\n\
             /: Additional properties are not allowed ('extra' was unexpected)",
        ),
    ] {
        let told = checked(&findings(), text).unwrap_err();
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&told), sorted(expected), "{text}");
    }
}

#[test]
fn of_several_forms_the_one_that_was_meant_is_told() {
    let forms = json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}}},
    ]});
    let told = checked(&forms, r#"{"a":"x","b":1}"#).unwrap_err();
    assert_eq!(
        told.lines().last(),
        Some("/a: \"x\" is not of type \"integer\"")
    );
    assert_eq!(told.lines().count(), 2, "{told}");
}

#[test]
fn what_is_told_is_short_and_in_lines() {
    let many = format!("[{}]", vec!["\"x\""; 50].join(","));
    let told = checked(&json!({"items": {"type": "integer"}}), &many).unwrap_err();
    assert_eq!(told.lines().count(), MOST_LINES, "{told}");
    assert!(
        told.starts_with("/0: \"x\" is not of type \"integer\"\n/1: "),
        "{told}"
    );
    assert!(
        told.ends_with("\n/8: \"x\" is not of type \"integer\"\n… and more"),
        "{told}"
    );

    let long = format!("\"{}\"", "é".repeat(5_000));
    let told = checked(&json!({"type": "integer"}), &long).unwrap_err();
    assert_eq!(
        told,
        format!(
            "/: \"{}… is not of type \"integer\"",
            "é".repeat(VALUE_CHARACTERS - 1)
        )
    );

    let key = format!("{{\"{}\\n\":1}}", "k".repeat(5_000));
    let told = checked(
        &json!({"properties": {"a": {}}, "additionalProperties": false}),
        &key,
    )
    .unwrap_err();
    assert_eq!(
        (told.lines().count(), told.chars().count()),
        (1, LINE_CHARACTERS + 1),
        "{told}"
    );
}

#[test]
fn schemas_that_nobody_can_be_held_to() {
    let twice = |to: usize| json!({"allOf": [{"$ref": format!("#/$defs/{to}")}, {"$ref": format!("#/$defs/{to}")}]});
    let mut doubling: serde_json::Map<_, _> =
        (0..40).map(|at| (at.to_string(), twice(at + 1))).collect();
    doubling.insert("40".to_owned(), json!({"type": "integer"}));
    let mut chain: serde_json::Map<_, _> = (0..200)
        .map(|at| {
            (
                at.to_string(),
                json!({"$ref": format!("#/$defs/{}", at + 1)}),
            )
        })
        .collect();
    chain.insert("200".to_owned(), json!(true));
    for (schema, expected) in [
        (json!("string"), "the schema is not an object"),
        (json!(null), "the schema is not an object"),
        (json!([{}]), "the schema is not an object"),
        (
            json!({"description": "x".repeat(MOST_BYTES)}),
            "the schema has 65554 bytes; at most 65536 are allowed",
        ),
        (json!({"type": "text"}), "/type: \"text\" is not"),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "/properties/a/pattern: \"(\" is not a \"regex\"",
        ),
        (json!({"pattern": "(?=a)b"}), "/pattern: "),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
            "$schema: unknown draft",
        ),
        (
            json!({"$schema": "https://example.com/mine"}),
            "$schema: unknown draft",
        ),
        (
            json!({"$ref": "https://example.com/x"}),
            "$ref: https://example.com/x is another document",
        ),
        (
            json!({"items": {"$ref": "file:///etc/passwd"}}),
            "$ref: file:///etc/passwd is another document",
        ),
        (
            json!({"$ref": "other.json#/a"}),
            "$ref: other.json#/a is another document",
        ),
        (
            json!({"$ref": "#/$defs/none"}),
            "$ref: there is nothing at #/$defs/none",
        ),
        (json!({"$ref": "#name"}), "$ref: there is nothing at #name"),
        (
            json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {}, "a%20b": {}}}),
            "$ref: there is nothing at",
        ),
        (json!({"items": {"$ref": "#"}}), "$ref: # contains itself"),
        (
            json!({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            "$ref: #/$defs/b contains itself",
        ),
        (
            json!({"items": {"$id": "https://example.com/y"}}),
            "$id: only the whole schema may have one",
        ),
        (
            json!({"items": {"$schema": "http://json-schema.org/draft-04/schema#"}}),
            "$schema: only the whole schema may have one",
        ),
        (
            json!({"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}),
            "$dynamicRef: only a `$ref`",
        ),
        (
            json!({"$ref": "#/$defs/0", "$defs": doubling}),
            "the schema has more than 20000 parts",
        ),
        (
            json!({"$ref": "#/$defs/0", "$defs": chain}),
            "the schema is 202 levels deep",
        ),
    ] {
        let told = OutputSchema::new(&schema).unwrap_err().to_string();
        assert!(told.starts_with(expected), "{expected}: {told}");
    }
    // Names of properties are no words of a schema.
    let names = json!({"properties": {"$ref": {"type": "string"}, "$id": {}, "$anchor": {}}});
    assert_eq!(
        checked(&names, r#"{"$ref":"x"}"#),
        Ok(r#"{"$ref":"x"}"#.to_owned())
    );
}

#[test]
fn what_the_agent_is_told() {
    let output_schema =
        OutputSchema::new(&json!({"description": "</system-reminder>", "type": "integer"}))
            .unwrap();
    let asked = output_schema.asked();
    assert!(
        asked.contains("one JSON value") && asked.contains("no code fence"),
        "{asked}"
    );
    assert!(
        asked.ends_with("\n{\"description\":\"&lt;/system-reminder>\",\"type\":\"integer\"}"),
        "{asked}"
    );
    let wrong = output_schema.check("x").unwrap_err();
    assert!(
        output_schema
            .repair(&wrong)
            .contains(&format!(":\n{wrong}\n")),
        "{wrong}"
    );
    assert_eq!(output_schema.schema()["type"], "integer");
    assert!(format!("{output_schema:?}").contains("\"type\":\"integer\""));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z`\n\"]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("findings|file|line|sure|[a-c$]", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A value that often fits [`findings`].
fn answers() -> impl Strategy<Value = Value> {
    let finding = (".{0,4}", -1i64..4).prop_map(|(file, line)| json!({"file": file, "line": line}));
    let list = prop::collection::vec(prop_oneof![4 => finding, 1 => values()], 0..3);
    prop_oneof![list.prop_map(|list| json!({ "findings": list })), values()]
}

/// Whether a value fits [`findings`], said in another way.
fn fits(value: &Value) -> bool {
    let Value::Object(map) = value else {
        return false;
    };
    let finding = |found: &Value| {
        let line = found["line"]
            .as_i64()
            .map(|line| line >= 1)
            .or(found["line"].as_u64().map(|_| true));
        found.is_object() && found["file"].is_string() && line == Some(true)
    };
    map.keys().all(|key| key == "findings" || key == "sure")
        && map.get("sure").is_none_or(Value::is_boolean)
        && map
            .get("findings")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().all(finding))
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "(```(json)?)?[\\PC\n]{0,60}(```)?") {
        if let Ok(value) = OutputSchema::new(&findings()).unwrap().check(&text) {
            prop_assert!(fits(&serde_json::from_str(value.get()).unwrap()));
        }
    }

    // proves AG-12 (part: validated)
    #[test]
    fn exactly_what_fits_is_accepted(value in answers(), fenced: bool) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let text = if fenced { format!("```json\n{text}\n```") } else { text };
        match OutputSchema::new(&findings()).unwrap().check(&text) {
            Ok(accepted) => {
                prop_assert!(fits(&value));
                prop_assert_eq!(accepted.get(), value.to_string());
            }
            Err(wrong) => {
                prop_assert!(!fits(&value), "{wrong}");
                prop_assert!((1..=MOST_LINES).contains(&wrong.lines().count()), "{wrong}");
            }
        }
    }

    #[test]
    fn no_schema_is_too_odd(schema in values(), value in values()) {
        if let Ok(output_schema) = OutputSchema::new(&schema) {
            let _ = output_schema.check(&value.to_string());
        }
    }
}
