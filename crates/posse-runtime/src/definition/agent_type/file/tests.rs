//! What files are read as. `../fixtures/NAME.md` is a file, `NAME.expected` what is read from it: the
//! definition, field by field, or `line: reason`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::definition::server::AgentServer;

/// What was read, a field on each line.
fn shown(read: &ReadDefinition) -> String {
    let ReadDefinition {
        definition,
        memory,
        hooks,
        unknown_mode,
        notes,
    } = read;
    let mut out = String::new();
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            writeln!(out, "{key}: {value}").unwrap();
        }
    };
    let list = |items: &[String]| (!items.is_empty()).then(|| items.join(" | "));
    line("name", Some(definition.name.clone()));
    line("description", Some(format!("{:?}", definition.description)));
    line(
        "tools",
        definition
            .tools
            .as_ref()
            .map(|tools| format!("[{}]", tools.join(" | "))),
    );
    line("disallowed", list(&definition.disallowed));
    line("model", definition.model.clone());
    line(
        "effort",
        definition.effort.map(|effort| effort.as_str().to_owned()),
    );
    line("mode", definition.mode.map(|mode| mode.to_string()));
    line("unknown mode", unknown_mode.clone());
    line(
        "background",
        definition.background.then(|| "true".to_owned()),
    );
    line(
        "isolation",
        definition
            .isolation
            .map(|isolation| format!("{isolation:?}")),
    );
    line("turns", definition.max_turns.map(|turns| turns.to_string()));
    line("color", definition.color.clone());
    line("memory", memory.map(|scope| format!("{scope:?}")));
    line("skills", list(&definition.skills));
    line(
        "servers",
        (!definition.mcp_servers.is_empty()).then(|| {
            let servers = definition.mcp_servers.iter();
            json!(servers.map(AgentServer::as_written).collect::<Vec<_>>()).to_string()
        }),
    );
    line("required", list(&definition.required_mcp_servers));
    line("hooks", hooks.as_ref().map(ToString::to_string));
    line(
        "initial",
        definition
            .initial_prompt
            .as_ref()
            .map(|prompt| format!("{prompt:?}")),
    );
    line(
        "schema",
        definition.output_schema.as_ref().map(ToString::to_string),
    );
    line("prompt", Some(format!("{:?}", definition.prompt)));
    for note in notes {
        line(&format!("note {}", note.line), Some(note.reason.clone()));
    }
    out
}

// proves AD-01 (part: file and body; fields)
// proves AD-04 (part: tools)
// proves AD-05 (part: file, line and reason)
#[test]
fn every_file_is_read_or_refused_with_line_and_reason() {
    let mut wrong = String::new();
    let files = fixtures();
    for (path, text) in &files {
        let got = match read(text) {
            Ok(Some(read)) => shown(&read),
            Ok(None) => "no definition\n".to_owned(),
            Err(Problem { line, reason }) => format!("{line}: {reason}\n"),
        };
        let expected =
            fs::read_to_string(Path::new(path).with_extension("expected")).unwrap_or_default();
        if got != expected {
            write!(wrong, "== {}\n-- got\n{got}-- expected\n{expected}", path).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(files.len() >= 60, "only {} files", files.len());
}

/// Every file there is, by name.
fn fixtures() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/definition/agent_type/fixtures");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    files
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

#[test]
fn line_ends_and_a_mark_in_front_change_nothing() {
    for (name, text) in fixtures() {
        let plain = text.replace(['\r', '\u{feff}'], "");
        let expected = read(&plain);
        for other in ["\r\n", "\r"] {
            assert_eq!(
                read(&plain.replace('\n', other)),
                expected,
                "{name} with {other:?}"
            );
        }
        assert_eq!(read(&format!("\u{feff}{plain}")), expected, "{name}");
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let file = |length: usize| {
        format!(
            "---\nname: long\ndescription: Long\n---\n{}",
            "x".repeat(length)
        )
    };
    assert!(read(&file(200 * 1024)).unwrap().is_some());
    assert_eq!(
        read(&file(256 * 1024)),
        Err(Problem::new(1, "the file is longer than 256 KiB"))
    );
    let deep = format!(
        "---\nname: deep\ndescription: Deep\nhooks: {}\n---\nx\n",
        "[".repeat(100_000)
    );
    assert_eq!(read(&deep).unwrap_err().line, 4);

    // Each of these would be slow: a document for every key, a search for what is meant for every name.
    let keys: String = (0..300).map(|at| format!("k{at}: b: c\n")).collect();
    let many = format!("---\n{keys}---\nx\n");
    assert_eq!(
        read(&many),
        Err(Problem::new(202, "there are more than 200 keys"))
    );
    let many = format!("---\ntools: {}\n---\nx\n", "Raed,".repeat(600));
    assert_eq!(
        read(&many),
        Err(Problem::new(2, "`tools` has more than 500 names"))
    );
}

#[test]
fn names() {
    let long = "x".repeat(64);
    for name in [
        "a",
        "code-reviewer",
        "Größe_2",
        "日本語",
        "_x",
        "9",
        &long,
        "forks",
        "explore",
    ] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    let letters = "use letters, digits, `-` and `_`";
    for (name, reason) in [
        ("", "the name is empty".to_owned()),
        (
            &format!("{long}x"),
            format!("the name `{}…` has more than 64 characters", "x".repeat(60)),
        ),
        ("-x", "the name `-x` begins with `-`".to_owned()),
        ("FORK", "the name `FORK` is reserved".to_owned()),
        ("Main", "the name `Main` is reserved".to_owned()),
        ("a:b", format!("the name `a:b` contains `:`; {letters}")),
        ("../a", format!("the name `../a` contains `.`; {letters}")),
        (
            "a\u{7}",
            format!("the name `a ` contains U+0007; {letters}"),
        ),
        ("🙂", format!("the name `🙂` contains `🙂`; {letters}")),
        (
            "My  Agent",
            "the name `My  Agent` contains white space; use `My-Agent`".to_owned(),
        ),
        (
            "my agent!",
            format!("the name `my agent!` contains U+0020; {letters}"),
        ),
    ] {
        assert_eq!(
            check_name(name).map_err(|error| error.to_string()),
            Err(reason),
            "{name}"
        );
    }
}

#[test]
fn an_entry_of_the_command_line() {
    let entry = json!({
        "description": " Reviews ", "prompt": "Review.\n", "tools": ["Read", "Bash(git *)"], "maxTurns": 3,
        "memory": "local", "outputSchema": {"type": "object"}, "name": "other", "max_turn": 1,
    });
    let read = from_json("reviewer", &entry).unwrap();
    let expected = "\
name: reviewer
description: \"Reviews\"
tools: [Read | Bash]
turns: 3
memory: Local
schema: {\"type\":\"object\"}
prompt: \"Review.\"
note 1: `(git *)` is ignored, and the agent gets all of `Bash`; permission rules can forbid a part of it
note 1: `name` is ignored: the entry already has its name
note 1: unknown field `max_turn`; did you mean `maxTurns`?
";
    assert_eq!(shown(&read), expected);

    for (name, entry, reason) in [
        (
            "a b",
            json!({}),
            "the name `a b` contains white space; use `a-b`",
        ),
        ("a", json!("x"), "a definition must be an object, not `x`"),
        ("a", json!({"prompt": "x"}), "`description` is missing"),
        ("a", json!({"description": "x"}), "`prompt` is missing"),
        (
            "a",
            json!({"description": "x", "prompt": ["y"]}),
            "`prompt` is a text, not a list; put it in quotes",
        ),
        (
            "a",
            json!({"description": "x", "prompt": "y", "background": 1}),
            "`background` must be true or false, not `1`",
        ),
        (
            "a",
            json!({"description": "x", "prompt": "y", "maxTurns": 0}),
            "`maxTurns` must be a whole number of at least 1, not `0`",
        ),
    ] {
        assert_eq!(from_json(name, &entry).unwrap_err().to_string(), reason);
    }
}

/// Texts that look like front matter, and are often broken.
fn front_matter() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        prop::sample::select(field::FIELDS).prop_map(str::to_owned),
        "[a-z_-]{1,6}",
        "\\PC{0,4}"
    ];
    let value = prop_oneof![
        "[a-zA-Z0-9 :#,*&!|>'\"(){}\\[\\]<\\\\-]{0,24}",
        "\\PC{0,16}",
        prop::sample::select(
            &[
                "|", ">-", "&a x", "*a", "[a, b", "{a: 1}", "true", "-1", "~", ".nan", "1e999"
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    let line = (
        0..4_usize,
        key,
        prop::sample::select(&[": ", ":", " ", ":\t", "\n  - "][..]),
        value,
    )
        .prop_map(|(indent, key, between, value)| {
            format!("{}{key}{between}{value}", " ".repeat(indent / 2))
        });
    (prop::collection::vec(line, 0..12), "\\PC{0,8}")
        .prop_map(|(lines, body)| format!("---\n{}\n---\n{body}", lines.join("\n")))
}

proptest! {
    #[test]
    fn no_text_ends_the_reader(text in prop_oneof!["(?s).{0,200}", front_matter()]) {
        let lines = text.split(['\n', '\r']).count();
        match read(&text) {
            Ok(Some(read)) => {
                prop_assert!(check_name(&read.definition.name).is_ok());
                prop_assert!(field::missing(&read.definition).is_none());
                prop_assert!(read.notes.iter().all(|note| (1..=lines).contains(&note.line)), "{:?}", read.notes);
            }
            Ok(None) => {}
            Err(problem) => {
                prop_assert!((1..=lines).contains(&problem.line), "{problem:?}");
                prop_assert!(!problem.reason.contains('\n'), "{problem:?}");
            }
        }
    }
}
