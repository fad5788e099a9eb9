//! Declared teams as people look at them, and members as people speak to them without a process that has them.

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::team::{lines, refused, succeed, with_team};

fn declare(project: &Project, name: &str, text: &str) {
    let directory = project.file(".posse/teams");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(format!("{name}.toml")), text).unwrap();
}

const GOOD: &str =
    "description = \"Mends it.\"\n[roles.dev]\ncount = 2\n[[tasks]]\nsubject = \"mend\"\n";

// proves TE-14 (part: the file)
#[test]
fn what_is_declared_is_listed_and_checked() {
    let project = Project::new("declared", "");
    assert_eq!(succeed(&project, &["team", "list", "--declared"]), "");
    declare(&project, "parser", GOOD);
    assert_eq!(
        succeed(&project, &["team", "check"]),
        "1 definition: 0 errors, 0 warnings, 0 notes\n"
    );
    let table = succeed(&project, &["team", "list", "--declared"]);
    assert!(
        table.contains("parser  project  2 dev      1  Mends it."),
        "{table}"
    );
    let [told] = &lines(&project, &["team", "list", "--declared", "--json"])[..] else {
        panic!()
    };
    assert_eq!(
        (&told["roles"], &told["tasks"]),
        (&json!({"dev": 2}), &json!(1))
    );
    declare(
        &project,
        "docs",
        "[roles.writer]\nagent = \"nobody\"\n[[tasks]]\nsubject = \"x\"\nrole = \"ghost\"\n",
    );
    let output = project.run(&["team", "check"]);
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains(".posse/teams/docs.toml:2: error: there is no agent type `nobody`"),
        "{told}"
    );
    assert!(
        told.contains(".posse/teams/docs.toml:3: error: no role takes task 1"),
        "{told}"
    );
    assert!(succeed(&project, &["team", "check", "parser"]).starts_with("1 definition: 0 errors"));
    refused(
        &project,
        &["team", "check", "printer"],
        1,
        &["no team printer is declared here"],
    );
}

#[test]
fn a_team_that_cannot_be_raised_is_not_begun() {
    let project = Project::new("declared-wrong", "");
    declare(&project, "parser", GOOD);
    declare(&project, "broken", "[roles.dev]\nowns = [\"src\"]\n");
    let goal = "make it work";
    refused(
        &project,
        &["team", "run", "parsr", goal],
        1,
        &["no team parsr is declared here", "did you mean parser?"],
    );
    refused(
        &project,
        &["team", "run", "broken", goal],
        1,
        &["broken.toml:2: `owns`", "cannot own files yet"],
    );
    refused(
        &project,
        &["team", "run", "parser"],
        1,
        &["there is no goal"],
    );
    refused(
        &project,
        &["team", "run", "parser", "--resume"],
        1,
        &["has a team parser"],
    );
    refused(
        &project,
        &["team", "run", "parser", goal, "--include-partial-messages"],
        2,
        &["stream-json"],
    );
    assert_eq!(
        succeed(&project, &["sessions", "list", "--json"]),
        "",
        "nothing was begun"
    );
    for (format, arguments) in [
        ("json", &["team", "run", "parsr", goal][..]),
        ("stream-json", &["team", "run", "parser"]),
        ("json", &["team", "run", "parser", "--resume"]),
        ("json", &["-p"]),
    ] {
        let output = project.run(&[arguments, &["--output-format", format]].concat());
        let told = stdout(&output);
        let [line] = &told.lines().collect::<Vec<_>>()[..] else {
            panic!("{arguments:?}: {told}")
        };
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&line["type"], &line["is_error"]),
            (&json!("result"), &json!(true)),
            "{arguments:?}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_broken_file_that_does_not_count_is_in_nobodys_way() {
    let project = Project::new("declared-shadowed", "");
    declare(&project, "parser", GOOD);
    let own = project.file("../home/teams");
    std::fs::create_dir_all(own.join("old")).unwrap();
    std::fs::write(own.join("parser.toml"), "[roles").unwrap();
    std::fs::write(own.join("old/printer.toml"), GOOD).unwrap();
    let told = succeed(&project, &["team", "check"]);
    assert!(
        told.contains("note: ") && told.contains("1 definition: 0 errors"),
        "{told}"
    );
    // It runs; that its tasks stay open is another matter.
    let output = project.run(&["team", "run", "parser", "go"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    refused(
        &project,
        &["team", "run", "printer", "go"],
        1,
        &["no team printer is declared here"],
    );
    let long = format!("[roles.{}]\ncount = 12\n", "a".repeat(62));
    declare(&project, "long", &long);
    let told = stdout(&project.run(&["team", "check", "long"]));
    assert!(
        told.contains("error: the last member of role aaa"),
        "{told}"
    );
}

#[test]
fn a_team_is_deleted_by_its_name() {
    let project = with_team("team-delete");
    refused(
        &project,
        &["team", "delete", "printer"],
        1,
        &["there is no team printer"],
    );
    let told = succeed(&project, &["team", "delete", "parser"]);
    assert!(
        told.starts_with("parser of session ") && told.ends_with(" is deleted\n"),
        "{told}"
    );
    assert_eq!(succeed(&project, &["team", "list", "--all", "--json"]), "");
    succeed(&project, &["team", "import", "parser"]);
    let [told] = &lines(&project, &["team", "delete", "parser", "--json"])[..] else {
        panic!()
    };
    assert_eq!(
        (&told["team"], &told["deleted"]),
        (&json!("parser"), &json!(true))
    );
}

#[test]
fn whoever_is_meant_is_told_from_the_others() {
    let project = with_team("team-members");
    refused(
        &project,
        &["team", "interrupt", "alise"],
        1,
        &["no member alise in team parser", "did you mean alice?"],
    );
    refused(
        &project,
        &["team", "stop", "alice@printer"],
        1,
        &["there is no team printer"],
    );
    refused(
        &project,
        &["team", "attach", "../x@y/z"],
        1,
        &["is not a valid name"],
    );
    let told = succeed(&project, &["team", "interrupt", "alice@parser"]);
    assert!(
        told.starts_with("alice@parser is told to stop what it is doing; no process runs it"),
        "{told}"
    );
    assert!(told.contains("posse team run parser --resume "), "{told}");
    let [told] = &lines(&project, &["team", "stop", "alice", "--force", "--json"])[..] else {
        panic!()
    };
    assert_eq!(
        told,
        &json!({"member": "alice@parser", "dismissed": true, "held": false})
    );
    for arguments in [
        &["team", "interrupt", "team-lead"][..],
        &["team", "stop", "team-lead", "--force"],
    ] {
        refused(&project, arguments, 1, &["team-lead@parser leads the team"]);
    }
    refused(
        &project,
        &["team", "stop", "alice", "--reason", " "],
        1,
        &["the reason is empty"],
    );
    let kinds: Vec<Value> = lines(
        &project,
        &["mail", "list", "--to", "alice@parser", "--json"],
    )
    .into_iter()
    .map(|mail| mail["kind"].clone())
    .collect();
    assert_eq!(kinds, ["text", "interruption", "dismissal"]);
}

#[test]
fn a_member_is_asked_to_end_and_only_it_can_answer() {
    let project = with_team("team-requests");
    let stop = ["team", "stop", "alice", "--reason", "we are done", "--json"];
    let [asked] = &lines(&project, &stop)[..] else {
        panic!()
    };
    assert_eq!(
        lines(&project, &stop),
        std::slice::from_ref(asked),
        "it is not asked twice"
    );
    let [open] = &lines(&project, &["team", "requests", "--json"])[..] else {
        panic!("one is open")
    };
    assert_eq!(open["request_id"], asked["request_id"]);
    assert_eq!(
        (&open["kind"], &open["from"]),
        (&json!("shutdown"), &json!("user"))
    );
    assert_eq!(
        (&open["to"], &open["text"]),
        (&json!("alice"), &json!("we are done"))
    );
    let shown = succeed(&project, &["team", "show"]);
    assert!(
        shown.contains("requests") && shown.contains("we are done"),
        "{shown}"
    );
    let id = open["request_id"].as_str().unwrap();
    refused(
        &project,
        &["team", "reject", id],
        1,
        &["a rejection needs a reason"],
    );
    refused(
        &project,
        &["team", "approve", "ffff"],
        1,
        &["no request ffff is open"],
    );
    refused(
        &project,
        &["team", "approve", &id[..18]],
        1,
        &["only the member itself answers", "--force"],
    );
}

#[test]
fn one_can_look_at_a_member_that_has_never_worked() {
    let project = with_team("team-attach");
    let output = project.run(&["team", "attach", "alice"]);
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(told.starts_with("● alice@parser · general · "), "{told}");
    assert!(
        told.contains("● not running; its last state: idle"),
        "{told}"
    );
    let [state] = &lines(&project, &["team", "attach", "alice", "--json"])[..] else {
        panic!()
    };
    assert_eq!(
        (&state["type"], &state["held"], &state["task"]),
        (&json!("state"), &json!(false), &Value::Null)
    );
}
