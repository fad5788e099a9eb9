//! How often a person is asked during an hour of ordinary work: 200 commands, as agents usually run
//! them, by an agent whose person answers each question with yes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::binary::Project;
use crate::held::Checkout;

/// The commands, one a line.
const HOUR: &str = include_str!("hour.txt");

/// What a person was asked.
struct Asked {
    command: String,
    why: String,
}

impl Asked {
    fn is_about_a_host(&self) -> bool {
        self.why.starts_with("a command wants to connect to ")
    }
}

/// Lets an agent work for an hour, and returns what a person was asked.
#[expect(clippy::print_stdout, reason = "what is asked is the figure")]
fn asked(name: &str, arguments: &[&str], sandbox: &str) -> Vec<Asked> {
    let commands: Vec<&str> = HOUR.lines().collect();
    assert_eq!(commands.len(), 200);
    let checkout = Checkout::new(name);
    let (mut posse, _server) = checkout.agent(&commands, arguments);
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin");
    let path = format!("{}:{}", venv.display(), std::env::var("PATH").unwrap());
    posse
        .args(["-p", "--input-format", "stream-json"])
        .args(["--output-format", "stream-json"])
        .args(["--permission-prompt-tool", "stdio"])
        .env("POSSE_SANDBOX", sandbox)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut posse = posse.spawn().unwrap();
    let mut person = posse.stdin.take().unwrap();
    let work = json!({"type": "user", "message": {"role": "user", "content": "work"}});
    writeln!(person, "{work}").unwrap();
    let mut asked = Vec::new();
    for line in BufReader::new(posse.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "result" {
            assert_eq!(line["subtype"], "success", "{line}");
            break;
        }
        let request = &line["request"];
        if request["subtype"] == "can_use_tool" {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            asked.push(Asked {
                command: text(&request["input"]["command"]),
                why: text(&request["decision_reason"]),
            });
            let answer = json!({"type": "control_response", "response": {
                "subtype": "success", "request_id": line["request_id"],
                "response": {"behavior": "allow"},
            }});
            writeln!(person, "{answer}").unwrap();
        }
    }
    drop(person);
    assert!(posse.wait().unwrap().success());
    for question in &asked {
        println!("{}: {}", question.command, question.why);
    }
    println!("{name}: asked {} times", asked.len());
    asked
}

#[test]
fn while_edits_are_allowed_an_hour_is_a_question_for_each_host() {
    let edits = ["--permission-mode", "acceptEdits"];
    let asked = asked("hour-edits", &edits, "required");
    assert!(asked.iter().all(Asked::is_about_a_host));
    assert!(asked.len() <= 5, "{}", asked.len());
}

#[test]
fn in_default_mode_an_hour_is_a_question_for_each_change() {
    let asked = asked("hour-default", &[], "required");
    let root = Project::place("held-hour-default").join("work/");
    let root = root.display().to_string();
    let is_change = |it: &Asked| it.why.contains(&root) || it.is_about_a_host();
    assert!(asked.iter().all(is_change));
    assert!(asked.len() <= 72, "{}", asked.len());
}

#[test]
#[ignore = "the figure beside the others: `cargo xtask faults guard`"]
fn without_a_sandbox_an_hour_is_a_question_for_most_commands() {
    let asked = asked("hour-off", &[], "off");
    assert!(asked.len() > 100, "{}", asked.len());
}
