//! `posse ask`.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};

const TALK: &str = r#"
[[rule]]
when.user = "re:slowly"
reply = [{ text = "one two three four five six seven eight" }]
tokens_per_s = 4
[[rule]]
when.user = "where your work stands"
reply = [{ text = "Half of it is done." }]
[[rule]]
when.user = "worth remembering"
reply = [{ text = "Tests need a clock." }]
[[rule]]
when.user = "nothing to say"
reply = [{ text = " " }]
[[rule]]
when.user = "on the side"
reply = [{ text = "Because of \u001b[2Jthe clock." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I am a sub-agent." }]
[[rule]]
when = { user = "delegate", turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "Work." } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

/// A project with a session that has been told `prompt`, and its id.
fn project(name: &str, prompt: &str) -> (Project, String) {
    let project = Project::new(name, TALK);
    let output = project.run(&["-p", prompt, "--output-format", "json"]);
    let told: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let id = told["session_id"].as_str().unwrap().to_owned();
    (project, id)
}

fn object(project: &Project, arguments: &[&str]) -> Value {
    let output = project.run(arguments);
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

// proves FK-13 (part: side question; no trace)
#[test]
fn a_session_is_asked_and_stays_as_it_was() {
    let (project, id) = project("ask", &"words ".repeat(2000));
    let entries = || stdout(&project.run(&["sessions", "export", &id]));
    let before = entries();
    let output = project.run(&["ask", &id[..30], "why?"]);
    let said = (output.status.code(), stdout(&output), stderr(&output));
    assert_eq!(
        said,
        (
            Some(0),
            "Because of \\u{1b}[2Jthe clock.\n".to_owned(),
            String::new()
        )
    );
    assert_eq!(
        stdout(&project.run(&["ask", &id, "--progress"])),
        "Half of it is done.\n"
    );
    assert_eq!(
        stdout(&project.run(&["ask", &id, "--remember"])),
        "Tests need a clock.\n"
    );
    assert_eq!(entries(), before, "nothing was added");

    let told = object(&project, &["ask", &id, "why?", "--json"]);
    assert_eq!(
        (&told["text"], &told["purpose"]),
        (&"Because of \u{1b}[2Jthe clock.".into(), &"question".into())
    );
    let usage = &told["usage"];
    assert!(
        usage["cache_read_input_tokens"].as_u64().unwrap() > 2000,
        "{told}"
    );
    assert_eq!(usage["cache_creation_input_tokens"], 0, "{told}");
    let cost = |session: &str| {
        object(&project, &["cost", session, "--json"])["total_cost_usd"]
            .as_f64()
            .unwrap()
    };
    let before = cost(&id);
    let asked = object(&project, &["ask", &id, "and how?", "--json"])["cost_usd"]
        .as_f64()
        .unwrap();
    assert!(
        asked > 0.0 && (cost(&id) - before - asked).abs() < 1e-9,
        "{before} {asked} {}",
        cost(&id)
    );
}

#[test]
fn a_sub_agent_is_asked_by_its_own_id() {
    let (project, id) = project("ask-sub", "delegate");
    let agents = object(&project, &["cost", &id, "--json"])["agents"].clone();
    let sub = agents[1]["agent_id"].as_str().unwrap().to_owned();
    let told = object(&project, &["ask", &sub, "--progress", "--json"]);
    assert_eq!(
        (&told["text"], &told["agent_id"]),
        (&"Half of it is done.".into(), &sub.clone().into())
    );
    let after = object(&project, &["cost", &id, "--json"])["agents"].clone();
    assert!(
        after[1]["cost_usd"].as_f64() > agents[1]["cost_usd"].as_f64(),
        "it is booked where it belongs"
    );
    assert_eq!(after[0]["cost_usd"], agents[0]["cost_usd"]);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let (project, id) = project("ask-wrong", "go");
    let check = |arguments: &[&str], what: &str, hint: &str| {
        let output = project.run(arguments);
        let said = stderr(&output);
        assert!(
            said.contains(what) && said.contains(hint),
            "{arguments:?}: {said}"
        );
        assert_eq!(
            (output.status.code(), stdout(&output).as_str()),
            (Some(1), ""),
            "{arguments:?}"
        );
        let told = object(&project, &[arguments, &["--json"]].concat());
        assert!(
            told["error"].as_str().unwrap().contains(what) && told["hint"].is_string(),
            "{told}"
        );
    };
    check(
        &["ask", "abc", "why?"],
        "no session abc",
        "sessions list --all",
    );
    check(
        &["ask", &id, " "],
        "there is no question",
        "posse ask SESSION",
    );
    check(
        &["ask", &id, "why?", "--base-url", "http://127.0.0.1:9"],
        "cannot connect",
        "posse doctor",
    );
    check(
        &["ask", &id, "why?", "--base-url", "https://nowhere.invalid"],
        "ANTHROPIC_API_KEY is not set",
        "export",
    );
    check(
        &["ask", &id, "why?", "--model", "other"],
        "uses claude-opus-5-5",
        "keeps its model",
    );
    check(
        &["ask", &id, "nothing to say"],
        "did not answer",
        "rephrase the question",
    );
    let local = ["--provider", "openai", "--base-url", "http://127.0.0.1:9"];
    check(
        &[&["ask", &id, "why?"], &local[..]].concat(),
        "recorded with the anthropic API",
        "--provider",
    );
    for wrong in [
        &["ask"][..],
        &["ask", &id, "why?", "--progress"],
        &["ask", &id, "--remember", "--progress"],
    ] {
        assert_eq!(project.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn the_question_may_come_by_standard_input() {
    let (project, id) = project("ask-stdin", "go");
    let mut command = project.posse(&["ask", &id]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"why, from a pipe")
        .unwrap();
    assert!(stdout(&child.wait_with_output().unwrap()).starts_with("Because of"));
}

// proves TU-05 (part: SIGINT)
#[test]
fn on_a_terminal_the_answer_shows_while_it_arrives_and_ctrl_c_ends_it_at_once() {
    let (project, id) = project("ask-terminal", "go");
    let posse = project.posse(&[]);
    let asking = format!("{} ask {id} slowly", env!("CARGO_BIN_EXE_posse"));
    let mut command = Command::new("script");
    for (name, value) in posse.get_envs() {
        value.map(|value| command.env(name, value));
    }
    command
        .args(["-qec", &asking, "/dev/null"])
        .current_dir(posse.get_current_dir().unwrap());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 3];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    assert_eq!(&first, b"one", "streamed while it arrives");
    let at = Instant::now();
    child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
    let shown = stdout(&output);
    assert!(
        shown.contains("interrupted") && !shown.contains("eight"),
        "{shown}"
    );
    assert!(
        shown.contains("tokens in ("),
        "what it took is said: {shown}"
    );
}
