//! `posse requests`: questions wait in the store, and any process answers them, once.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::definitions::write;
use crate::team::{lines, refused, succeed};

pub(crate) const TOUCHES: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "It is done." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch made" } }]
"#;

/// A run that waits for a person.
pub(crate) fn asking(project: &Project, more: &[&str]) -> (Child, Value) {
    let arguments = [&["-p", "touch it", "--on-question", "wait"][..], more].concat();
    let child = started(project, &arguments);
    (child, question(project))
}

/// Starts posse without a terminal.
pub(crate) fn started(project: &Project, arguments: &[&str]) -> Child {
    project
        .posse(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The question that waits, once it does.
pub(crate) fn question(project: &Project) -> Value {
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

pub(crate) fn id(question: &Value) -> &str {
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

/// Runs three commands in turn, two of which are the same.
const REPEATS: &str = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
when.turn = 2
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
when.turn = 3
reply = [{ tool = "Bash", input = { command = "touch made other" } }]
[[rule]]
reply = [{ text = "It is done." }]
"#;

/// The commands that a later session is not allowed, in this directory.
fn denied_later(project: &Project, directory: &str) -> Vec<String> {
    let mut posse = project.posse(&["-p", "touch it", "--output-format", "json"]);
    let output = posse.current_dir(project.file(directory)).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let denials = result["permission_denials"].as_array().unwrap().iter();
    let command = |denial: &Value| denial["tool_input"]["command"].as_str().unwrap().to_owned();
    denials.map(command).collect()
}

// proves QU-07 (part: the session; its directory; everywhere; never wider)
#[test]
fn an_answer_from_another_process_accepts_a_rule() {
    let all = vec!["touch made", "touch made", "touch made other"];
    let wider = vec!["touch made other"];
    for (scope, here, elsewhere) in [
        ("--always", &all, &all),
        ("--always=directory", &wider, &all),
        ("--always=everywhere", &wider, &wider),
    ] {
        let project = Project::new(&format!("requests{}", scope.replace('=', "-")), REPEATS);
        for directory in [".git", "../elsewhere/.git"] {
            std::fs::create_dir_all(project.file(directory)).unwrap();
        }
        let (child, asked) = asking(&project, &[]);
        let narrow = serde_json::json!([{"rules": ["Bash(touch made)"]}]);
        assert_eq!(asked["suggestions"][0], narrow[0], "{asked}");
        let shown = succeed(&project, &["requests", "show", id(&asked)]);
        assert!(shown.contains("  1  Bash(touch made)\n"), "{shown}");
        let wrong = ["requests", "answer", id(&asked), "--always", "--rule", "9"];
        refused(&project, &wrong, 1, &["there is no suggestion 9"]);
        let wrong = ["requests", "answer", id(&asked), "deny", "--always"];
        refused(&project, &wrong, 1, &["--always is an allow"]);
        let told = succeed(&project, &["requests", "answer", id(&asked), scope]);
        let kept = told.contains("is kept in");
        assert_eq!(kept, scope != "--always", "{told}");
        // The same again is not asked about, and what is wider is.
        let next = question(&project);
        assert_eq!(next["input"]["command"], "touch made other", "{next}");
        succeed(&project, &["requests", "answer", id(&next), "deny"]);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let shown = succeed(&project, &["requests", "show", id(&asked)]);
        assert!(
            shown.contains("allowed by a person, and Bash(touch made)"),
            "{shown}"
        );
        assert_eq!(denied_later(&project, ""), *here, "{scope}");
        assert_eq!(
            denied_later(&project, "../elsewhere"),
            *elsewhere,
            "{scope}"
        );
    }
}

// proves QU-07 (part: the change)
#[test]
fn a_request_shows_the_change_that_would_be_made() {
    let script = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "Read", input = { file_path = "notes" } }]
[[rule]]
when.turn = 2
reply = [{ tool = "Edit", input = { file_path = "notes", old_string = "two", new_string = "three" } }]
[[rule]]
when.turn = 3
reply = [{ tool = "Write", input = { file_path = "long", content = "LONG" } }]
[[rule]]
reply = [{ text = "It is done." }]
"#;
    let long = "0123456789\\n".repeat(4_000);
    let project = Project::new("requests-change", &script.replace("LONG", &long));
    std::fs::write(project.file("notes"), "one\ntwo\n").unwrap();
    let (child, asked) = asking(&project, &[]);
    let shown = succeed(&project, &["requests", "show", id(&asked)]);
    let diff = "  --- notes\n  +++ notes\n  @@ -1,2 +1,2 @@\n   one\n  -two\n  +three\n";
    assert!(shown.contains(diff), "{shown}");
    assert!(!shown.contains("old_string"), "{shown}");
    assert_eq!(asked["shown"]["added"], 1, "{asked}");
    succeed(&project, &["requests", "answer", id(&asked), "allow"]);
    // What is stored of a long change is bounded, and says what is missing.
    let asked = question(&project);
    let shown = succeed(&project, &["requests", "show", id(&asked)]);
    assert!(shown.len() < 24_000 && shown.contains(" more lines are not shown"));
    assert_eq!(asked["shown"]["added"], 4_000);
    succeed(&project, &["requests", "answer", id(&asked), "deny"]);
    assert!(child.wait_with_output().unwrap().status.success());
}

/// Asks two questions, and says what it was told.
pub(crate) const CHOICES: &str = r#"
[[rule]]
when.tool = "re:(?s).+"
reply = [{ text = "{{tool}}" }]
[[rule]]
reply = [{ tool = "AskUserQuestion", input = { questions = [
    { question = "Which library?", header = "Library", options = [
        { label = "serde", description = "The usual one." },
        { label = "miniserde", description = "Small.", preview = "use miniserde::json;" },
    ], multiSelect = false },
    { question = "Which systems?", header = "Systems", options = [
        { label = "Linux", description = "" }, { label = "macOS", description = "" },
    ], multiSelect = true },
] } }]
"#;

// proves PE-08 (part: from anywhere)
#[test]
fn questions_with_options_are_answered_from_another_process() {
    let project = Project::new("requests-choose", CHOICES);
    let (child, asked) = asking(&project, &[]);
    assert_eq!(
        (&asked["kind"], &asked["tool"]),
        (&"choice".into(), &"AskUserQuestion".into())
    );
    let table = succeed(&project, &["requests", "list"]);
    assert!(table.contains("Which library? Which systems?"), "{table}");
    let shown = succeed(&project, &["requests", "show", id(&asked)]);
    let options = "  [Library] Which library?\n  1  serde: The usual one.\n  2  miniserde: Small.\n     ┊ use \
                   miniserde::json;\n  [Systems] Which systems? (several are possible)\n  1  Linux\n  2  macOS\n";
    assert!(shown.contains(options), "{shown}");
    let answer = |more: &[&str]| -> Vec<String> {
        let words = [&["requests", "answer", id(&asked)], more].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    for (more, said) in [
        (&["allow"][..], "Library is not answered"),
        (&["--choose", "1"], "Systems is not answered"),
        (
            &["--choose", "3", "--choose", "1"],
            "Library: choose from 1 to 2",
        ),
        (&["--choose", "1,2", "--choose", "1"], "Library: only one"),
        (
            &["--choose", "1", "--choose", "1", "--choose", "1"],
            "more answers than questions",
        ),
        (&["allow", "--input", r#"{"answers":{}}"#], "has no answer"),
        (
            &["deny", "--choose", "1"],
            "--choose is an answer of its own",
        ),
    ] {
        let words = answer(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        refused(&project, &words, 1, &[said]);
    }
    let words = answer(&["--choose", "systems=linux, macos", "--choose", "my own"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(
        succeed(&project, &words),
        "answered: main agent continues\n"
    );
    let output = child.wait_with_output().unwrap();
    let told =
        "The user answered:\n- Which library?\n  → my own\n- Which systems?\n  → Linux, macOS\n";
    assert_eq!(stdout(&output), told);
    assert!(
        stderr(&output).contains("asks: Which library?"),
        "{}",
        stderr(&output)
    );
    let shown = succeed(&project, &["requests", "show", id(&asked)]);
    assert!(
        shown.contains("answered by a person:\n  Library → my own\n"),
        "{shown}"
    );
}

// proves PE-08 (part: in time)
#[test]
fn questions_that_nobody_answers_in_time_are_told_as_unanswered() {
    let project = Project::new("requests-unanswered", CHOICES);
    let output = project.run(&["-p", "go", "--on-question", "wait=1s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = stdout(&output);
    assert!(
        told.starts_with("Not answered: nobody answered in time"),
        "{told}"
    );
    assert!(
        told.contains("state in your answer what you assumed"),
        "{told}"
    );
}

const SKILLED: &str = r#"
[[rule]]
when.user = "re:>\\s*it is made"
reply = [{ text = "It is made." }]
[[rule]]
reply = [{ text = "Fine." }]
"#;

/// A skill whose instructions hold a command, and a model that knows whether it ran.
fn skilled(name: &str) -> Project {
    let project = Project::new(name, SKILLED);
    let skill = "---\ndescription: Makes it.\n---\nIt says: !`touch made && echo it is made`\n";
    write(&project, ".posse/skills/make/SKILL.md", skill);
    project
}

/// Starts a run that calls the skill.
fn calls_skill(project: &Project, on_question: &str) -> Child {
    started(project, &["-p", "/make", "--on-question", on_question])
}

// proves QU-01 (part: the store; a killed process)
// proves QU-02 (part: from anywhere)
// proves QU-03 (part: time)
#[test]
fn a_question_about_a_skills_command_is_answered_from_anywhere() {
    let project = skilled("requests-skill");
    for (verdict, is_made) in [("deny", false), ("allow", true)] {
        let child = calls_skill(&project, "wait");
        let asked = question(&project);
        assert_eq!(asked["input"]["command"], "touch made && echo it is made");
        assert!(waits(&asked) >= Duration::from_secs(599), "{asked}");
        succeed(&project, &["requests", "answer", id(&asked), verdict]);
        let output = child.wait_with_output().unwrap();
        let said = if is_made { "It is made.\n" } else { "Fine.\n" };
        assert_eq!(stdout(&output), said, "{}", stderr(&output));
        assert_eq!(project.file("made").exists(), is_made, "{verdict}");
        assert_eq!(succeed(&project, &["requests", "list"]), "");
    }
    std::fs::remove_file(project.file("made")).unwrap();

    let output = calls_skill(&project, "wait=1s").wait_with_output().unwrap();
    assert_eq!(stdout(&output), "Fine.\n", "{}", stderr(&output));
    assert!(!project.file("made").exists());
    assert_eq!(succeed(&project, &["requests", "list"]), "");

    // Its process is killed: the command has lost its skill, and nothing runs later.
    let mut child = calls_skill(&project, "wait");
    let asked = question(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    let session = asked["agent"].as_str().unwrap();
    let output = project.run(&["-p", "--resume", session, "go on"]);
    assert_eq!(stdout(&output), "Fine.\n", "{}", stderr(&output));
    refused(
        &project,
        &["requests", "answer", id(&asked), "allow"],
        1,
        &["withdrawn"],
    );
    assert!(!project.file("made").exists());
}
