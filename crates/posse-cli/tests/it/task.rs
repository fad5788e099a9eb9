//! `posse task`.

use std::io::Write;
use std::process::Stdio;

use crate::binary::{Project, stderr, stdout};
use crate::team::{lines, refused, succeed, with_team};

#[test]
fn a_list_leaves_out_what_is_deleted_and_shows_open_blockers() {
    let project = with_team("task-list");
    let table = succeed(&project, &["task", "list", "--team", "parser"]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[3], ["4", "pending", "–", "2", "print"], "{table}");
    succeed(
        &project,
        &[
            "task", "update", "2", "--team", "parser", "--status", "deleted",
        ],
    );
    let left = lines(&project, &["task", "list", "--team", "parser", "--json"]);
    let left: Vec<_> = left
        .iter()
        .map(|task| (task["id"].clone(), task["waits_for"].clone()))
        .collect();
    assert_eq!(
        left,
        [
            (1.into(), serde_json::json!([])),
            (4.into(), serde_json::json!([]))
        ]
    );
    let pending = lines(
        &project,
        &[
            "task", "list", "--team", "parser", "--status", "pending", "--json",
        ],
    );
    assert_eq!(pending.len(), 1);
    assert!(succeed(&project, &["task", "show", "2", "--team", "parser"]).contains("deleted"));
}

#[test]
fn a_task_is_added_and_changed() {
    let project = with_team("task-change");
    let run = |arguments: &[&str]| {
        succeed(
            &project,
            &[&["task"], arguments, &["--team", "parser"]].concat(),
        )
    };
    let added = [
        "add",
        "fmt \u{1b}[2J",
        "--active-form",
        "Formatting",
        "--blocked-by",
        "1,2",
        "--metadata",
        "effort={\"h\":3}",
        "--metadata",
        "x=\"y\"",
    ];
    assert_eq!(run(&added), "added task 5\n");
    let mut child = project
        .posse(&[
            "task",
            "update",
            "5",
            "--team",
            "parser",
            "--description",
            "-",
            "--owner",
            "alice",
            "--json",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"at length\nin two lines\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let told: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(told["description"], "at length\nin two lines");
    assert_eq!(
        (&told["owner"], &told["version"]),
        (&"alice".into(), &2.into())
    );
    assert_eq!(
        told["metadata"],
        serde_json::json!({"effort": {"h": 3}, "x": "y"})
    );
    let shown = run(&["show", "5"]);
    for words in [
        "task 5: fmt \\u{1b}[2J",
        "pending · alice · version 2",
        "waits for 2\n",
        "x = \"y\"",
        "in two lines",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    run(&[
        "update",
        "5",
        "--no-owner",
        "--metadata",
        "x=null",
        "--if-version",
        "2",
    ]);
    let completed = ["update", "#2", "--status", "completed"];
    assert_eq!(
        run(&completed),
        "task 2: completed (version 2)\nready to start now: 4, 5\n"
    );
    assert_eq!(run(&completed), "task 2: nothing changed\n");
    run(&[
        "update",
        "5",
        "--role",
        "printer",
        "--check",
        "make \u{1b}[2J",
    ]);
    let shown = run(&["show", "5"]);
    assert!(
        shown.contains("for printer\nchecked by: make \\u{1b}[2J\n"),
        "{shown}"
    );
    let table = run(&["list"]);
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        (rows[0][3], &rows[4][..4]),
        ("ROLE", ["5", "pending", "–", "printer"].as_slice()),
        "{table}"
    );
    run(&["update", "5", "--role", "", "--check", ""]);
    assert!(!run(&["show", "5"]).contains("check"));
    assert_eq!(
        run(&["add", "ship", "--role", "lexer", "--check", "make"]),
        "added task 6\n"
    );
    let told = &lines(
        &project,
        &["task", "show", "6", "--team", "parser", "--json"],
    )[0];
    assert_eq!(
        (&told["role"], &told["check"]),
        (&"lexer".into(), &"make".into())
    );
    assert_eq!(
        run(&["update", "6", "--status", "completed"]),
        "task 6: completed (version 2)\n"
    );
    run(&["update", "6", "--status", "deleted"]);
    run(&["update", "5", "--blocked-by", "4"]);
    assert!(run(&["show", "5"]).contains("waits for 4\n"));
    run(&["update", "5", "--not-blocked-by", " 4"]);
    assert!(!run(&["show", "5"]).contains("waits for"));
}

#[test]
fn what_is_refused_is_told_with_what_to_do() {
    let project = with_team("task-refused");
    let check = |arguments: &[&str], code, said: &[&str]| {
        refused(
            &project,
            &[&["task"], arguments, &["--team", "parser"]].concat(),
            code,
            said,
        );
    };
    check(
        &["show", "9"],
        1,
        &["there is no task 9", "posse task list"],
    );
    check(&["show", "x"], 2, &["`x` is not a task number"]);
    check(
        &["update", "2"],
        2,
        &["nothing to change", "Usage: posse task update"],
    );
    check(&["add", "two\nlines"], 2, &["one line", "--description"]);
    check(&["add", &"x".repeat(501)], 2, &["at most 500 characters"]);
    check(&["add", " "], 2, &["needs a subject"]);
    check(
        &["update", "2", "--owner", "bob"],
        1,
        &["no agent is named bob", "posse team show"],
    );
    check(
        &["update", "2", "--subject", "x", "--if-version", "7"],
        1,
        &["at version 1", "--if-version 1"],
    );
    check(
        &["update", "2", "--blocked-by", "4"],
        1,
        &["wait for each other", "--not-blocked-by"],
    );
    check(&["update", "2", "--status", "done"], 2, &["in_progress"]);
    check(
        &["update", "2", "--owner", "alice", "--no-owner"],
        2,
        &["cannot be used with"],
    );
    check(
        &["add", "x", "--blocked-by", "9"],
        1,
        &["there is no task 9"],
    );
    check(&["add", "x", "--metadata", "a=b"], 2, &["a='\"text\"'"]);
    check(
        &[
            "add",
            "x",
            "--description",
            &"x".repeat(100_000),
            "--active-form",
            &"x".repeat(100_000),
            "--metadata",
            &format!("a=\"{}\"", "x".repeat(100_000)),
        ],
        1,
        &["too many", "shorten it"],
    );
    succeed(
        &project,
        &[
            "task", "update", "2", "--team", "parser", "--status", "deleted",
        ],
    );
    check(
        &["update", "2", "--subject", "x"],
        1,
        &["task 2 was deleted", "posse task add"],
    );
}

#[test]
fn without_a_team_it_is_the_list_of_the_session() {
    let project = Project::new("task-session", "");
    refused(
        &project,
        &["task", "list"],
        1,
        &["no task list given", "--team NAME"],
    );
    succeed(&project, &["-p", "hello"]);
    assert_eq!(
        succeed(&project, &["task", "add", "first"]),
        "added task 1\n"
    );
    let output = project.run(&["sessions", "list", "--json"]);
    let session: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let id = session["session_id"].as_str().unwrap();
    let elsewhere = project
        .posse(&["task", "list", "--session", &id[..20]])
        .current_dir("/")
        .output()
        .unwrap();
    assert!(
        stdout(&elsewhere).contains("1  pending"),
        "{}",
        stderr(&elsewhere)
    );
    assert!(
        succeed(
            &project,
            &["task", "update", "1", "--status", "in_progress"]
        )
        .contains("in_progress (version 2)")
    );
    assert_eq!(
        lines(&project, &["task", "show", "1", "--json"])[0]["owner"],
        "user"
    );
}
