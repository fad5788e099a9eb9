//! `posse requests`: questions wait in the store, and any process answers them, once.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::team::{lines, refused, succeed};

const TOUCHES: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "It is done." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch made" } }]
"#;

/// A run that waits for a person.
fn asking(project: &Project, more: &[&str]) -> (Child, Value) {
    let arguments = [&["-p", "touch it", "--on-question", "wait"][..], more].concat();
    let child = project
        .posse(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, question(project))
}

/// The question that waits, once it does.
fn question(project: &Project) -> Value {
    let begun = Instant::now();
    loop {
        let open = lines(project, &["requests", "list", "--json"]);
        if let [one] = &open[..] {
            return one.clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{open:?}");
    }
}

/// How long a question waits.
pub(crate) fn waits(question: &Value) -> Duration {
    let time = |key: &str| -> jiff::Timestamp { question[key].as_str().unwrap().parse().unwrap() };
    time("until")
        .duration_since(time("asked_at"))
        .try_into()
        .unwrap()
}

fn id(question: &Value) -> &str {
    question["request_id"].as_str().unwrap()
}

// proves QU-02 (part: from anywhere; told)
#[test]
fn a_question_is_answered_from_another_process_once() {
    let project = Project::new("requests-answer", TOUCHES);
    let (child, asked) = asking(&project, &[]);
    assert_eq!(asked["tool"], "Bash");
    assert_eq!(asked["input"]["command"], "touch made");
    let table = succeed(&project, &["requests", "list"]);
    assert!(table.contains("Bash touch made"), "{table}");
    let shown = succeed(&project, &["requests", "show", &id(&asked)[..8]]);
    assert!(
        shown.contains("touch made") && shown.contains("waits for an answer"),
        "{shown}"
    );
    let agents = lines(&project, &["agents", "ps", "--json"]);
    assert_eq!(agents[0]["state"], "waiting", "{agents:?}");
    assert_eq!(agents[0]["asks"]["request_id"], asked["request_id"]);
    let table = succeed(&project, &["agents", "ps"]);
    assert!(table.contains(" asks "), "{table}");
    assert!(!project.file("made").exists());
    let told = succeed(&project, &["requests", "answer", &id(&asked)[..8], "allow"]);
    assert_eq!(told, "allowed: main agent continues\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "It is done.\n");
    let note = format!("posse requests answer {} allow", &id(&asked)[..8]);
    assert!(stderr(&output).contains(&note), "{}", stderr(&output));
    assert!(project.file("made").exists());
    let late = ["requests", "answer", id(&asked), "deny"];
    refused(&project, &late, 1, &["it was answered"]);
    let shown = succeed(&project, &["requests", "show", id(&asked)]);
    assert!(shown.contains("allowed by a person"), "{shown}");
    assert_eq!(succeed(&project, &["requests", "list"]), "");
}

// proves QU-01 (part: a killed process; continues)
#[test]
fn a_question_outlives_its_process_which_continues_with_the_answer() {
    let project = Project::new("requests-killed", TOUCHES);
    let (mut child, asked) = asking(&project, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(id(&question(&project)), id(&asked), "it still waits");
    let told = succeed(&project, &["requests", "answer", id(&asked), "allow"]);
    let session = asked["agent"].as_str().unwrap();
    assert!(
        told.contains("is not running") && told.contains(&format!("--resume {session}")),
        "{told}"
    );
    assert!(!project.file("made").exists());
    let output = project.run(&["-p", "--resume", session, "Are you there?"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "It is done.\n");
    assert!(project.file("made").exists());
    // What is said with it is part of the same run.
    let said = succeed(&project, &["sessions", "show", session]);
    assert!(said.contains("Are you there?"), "{said}");
    let shown = succeed(&project, &["requests", "show", id(&asked), "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["state"], "done", "{shown}");
}

// proves QU-01 (part: asked again)
#[test]
fn a_question_that_nobody_answered_is_asked_again_when_its_session_is_resumed() {
    let project = Project::new("requests-again", TOUCHES);
    let (mut child, asked) = asking(&project, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    let session = asked["agent"].as_str().unwrap();
    let again = project
        .posse(&["-p", "--resume", session, "--on-question", "wait"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(id(&question(&project)), id(&asked), "the same question");
    succeed(&project, &["requests", "answer", id(&asked), "allow"]);
    let output = again.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "It is done.\n");
    assert!(project.file("made").exists());
}

// proves QU-03 (part: deny)
#[test]
fn a_question_that_was_left_is_denied_by_a_run_that_asks_nobody() {
    let project = Project::new("requests-left", TOUCHES);
    let (mut child, asked) = asking(&project, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    let session = asked["agent"].as_str().unwrap();
    let output = project.run(&["-p", "--resume", session]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!project.file("made").exists());
    let shown = succeed(&project, &["requests", "show", id(&asked)]);
    assert!(shown.contains("denied because nobody answered"), "{shown}");
}

// proves QU-03 (part: time)
#[test]
fn a_question_waits_as_long_as_it_was_told_to() {
    let project = Project::new("requests-late", TOUCHES);
    let output = project.run(&["-p", "touch it", "--on-question", "wait=1s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!project.file("made").exists());
    let asked = lines(&project, &["sessions", "list", "--json"]);
    let session = asked[0]["session_id"].as_str().unwrap();
    let said = succeed(&project, &["sessions", "show", session]);
    assert!(
        said.contains("nobody answered in time") && said.contains("posse requests answer"),
        "{said}"
    );
}

// proves QU-03 (part: deny)
#[test]
fn without_anybody_a_question_is_not_asked() {
    let project = Project::new("requests-deny", TOUCHES);
    let output = project.run(&["-p", "touch it"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(succeed(&project, &["requests", "list"]), "");
    let wrong = ["-p", "x", "--on-question", "ask"];
    refused(&project, &wrong, 2, &["wait=10m"]);
}
