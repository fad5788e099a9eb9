//! `posse ask-model`.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Server, posse, run, stderr, stdout};

const SLOW: &str =
    "[[rule]]\nreply = [{ text = 'one two three four five six seven eight' }]\ntokens_per_s = 4\n";

#[test]
fn a_reply_goes_to_stdout_and_nothing_else_does() {
    let server = Server::start("plain", "");
    let output = run(&["ask-model", "--base-url", &server.url, "what?"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "You said: what?\n")
    );
    assert_eq!(stderr(&output), "", "quiet in a pipe");
    let openai = run(&[
        "ask-model",
        "--provider",
        "openai",
        "--model",
        "x",
        "--base-url",
        &(server.url.clone() + "/v1"),
        "what?",
    ]);
    assert_eq!(stdout(&openai), "You said: what?\n");
    let old = run(&[
        "ask-model",
        "--anthropic-version",
        "2023-06-01",
        "--base-url",
        &server.url,
        "what?",
    ]);
    assert_eq!(stdout(&old), "You said: what?\n");
}

#[test]
fn json_is_one_object_with_usage_and_cost() {
    let server = Server::start("json", "");
    let output = run(&["ask-model", "--json", "--base-url", &server.url, "what?"]);
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&told["text"], &told["stop_reason"]),
        (&"You said: what?".into(), &"end_turn".into())
    );
    assert!(
        told["cost_usd"].as_f64().unwrap() > 0.0
            && told["usage"]["output_tokens"].as_u64().unwrap() > 0
    );
}

#[test]
fn the_question_may_come_by_standard_input() {
    let server = Server::start("stdin", "");
    let mut child = posse()
        .args(["ask-model", "--base-url", &server.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"from a pipe")
        .unwrap();
    assert_eq!(
        stdout(&child.wait_with_output().unwrap()),
        "You said: from a pipe\n"
    );
    let empty = run(&["ask-model", "--base-url", &server.url]);
    assert!(
        stderr(&empty).contains("there is no question"),
        "{}",
        stderr(&empty)
    );
    assert_eq!(empty.status.code(), Some(1));
}

#[test]
fn errors_say_what_to_do() {
    let check = |arguments: &[&str], what: &str, hint: &str| {
        let output = run(arguments);
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
    };
    check(
        &["ask-model", "x"],
        "ANTHROPIC_API_KEY is not set",
        "posse scripted-model",
    );
    check(
        &["ask-model", "--base-url", "nowhere", "x"],
        "`nowhere` is not a valid base URL",
        "hint: a base URL looks like",
    );
    check(
        &["ask-model", "--base-url", "http://127.0.0.1:9", "x"],
        "cannot connect",
        "posse doctor",
    );
    let server = Server::start("errors", "");
    check(
        &[
            "ask-model",
            "--base-url",
            &server.url,
            "--model",
            "nobody",
            "x",
        ],
        "404",
        "--model",
    );
    check(
        &[
            "ask-model",
            "--provider",
            "openai",
            "--base-url",
            &server.url,
            "x",
        ],
        "no model",
        "POSSE_MODEL",
    );
    assert_eq!(
        run(&["ask-model", "--max-tokens", "none", "x"])
            .status
            .code(),
        Some(2),
        "usage errors"
    );
}

#[test]
fn a_retry_is_told_and_the_reply_still_comes() {
    let script = "[[rule]]\ntimes = 1\nreply = [{ text = 'x' }]\nfault = { kind = 'status', status = 529, retry_after_ms = 5 }\n[[rule]]\nreply = [{ text = 'there' }]\n";
    let server = Server::start("retry", script);
    let output = run(&["ask-model", "--base-url", &server.url, "x"]);
    assert_eq!(stdout(&output), "there\n");
    assert!(
        stderr(&output).starts_with("attempt 1 failed"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn escape_sequences_of_a_model_do_not_reach_the_terminal() {
    let server = Server::start(
        "escape",
        "[[rule]]\nreply = [{ text = \"a\\u001b]52;c;eA==\\u0007b\" }]\n",
    );
    let output = run(&["ask-model", "--base-url", &server.url, "x"]);
    assert_eq!(stdout(&output), "a\\u{1b}]52;c;eA==\\u{7}b\n");
}

/// Asks on a terminal of its own, whose keys are the child's stdin.
fn ask_on_terminal(server: &Server) -> Child {
    let asking = format!(
        "{} ask-model --base-url {} x",
        env!("CARGO_BIN_EXE_posse"),
        server.url
    );
    Command::new("script")
        .args(["-qec", &asking, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

// proves TU-05 (part: SIGINT)
#[test]
fn on_a_terminal_the_reply_shows_while_it_arrives_and_ctrl_c_ends_it_at_once() {
    let server = Server::start("slow", SLOW);
    let mut child = ask_on_terminal(&server);
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
    assert!(
        at.elapsed() < Duration::from_millis(500),
        "{:?}",
        at.elapsed()
    );
    let shown = stdout(&output);
    assert!(
        shown.contains("interrupted") && !shown.contains("eight"),
        "{shown}"
    );
}

#[test]
fn a_pipe_gets_no_word_of_an_attempt_that_failed() {
    let reply = "reply = [{ text = 'a text of a few words' }]";
    let script = format!(
        "[[rule]]\ntimes = 1\n{reply}\nfault = {{ kind = 'garbage', at = 1000 }}\n[[rule]]\n{reply}\n"
    );
    let server = Server::start("void", &script);
    let output = run(&["ask-model", "--base-url", &server.url, "x"]);
    assert_eq!(stdout(&output), "a text of a few words\n");
    assert!(
        stderr(&output).starts_with("attempt 1 failed"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn json_is_given_whatever_happens() {
    for arguments in [
        &["--base-url", "http://127.0.0.1:9"][..],
        &[],
        &["--base-url", "nowhere"],
    ] {
        let output = run(&[&["ask-model", "--json", "x"], arguments].concat());
        let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert!(told["error"].is_string(), "{told}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_reader_that_leaves_ends_it_without_a_word() {
    let server = Server::start("pipe", SLOW);
    let mut command = posse();
    command.args(["ask-model", "--base-url", &server.url, "x"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "")
    );
}
