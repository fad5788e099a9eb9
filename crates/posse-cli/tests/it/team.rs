//! `posse team`: looking at teams, and taking them elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};

/// A team as another program would write it.
const PARSER: [(&str, &str); 6] = [
    (
        "config.json",
        r#"{"name": "parser", "description": "Rewrite \u001b[2Jit", "createdAt": 1763190000000,
            "leadAgentId": "team-lead@parser", "leadSessionId": "elsewhere", "hidden": {}, "members": [
            {"agentId": "team-lead@parser", "name": "team-lead", "agentType": "team-lead", "model": "opus"},
            {"agentId": "alice@parser", "name": "alice", "agentType": "general", "color": "blue", "cwd": "/w"}]}"#,
    ),
    (
        "tasks/1.json",
        r#"{"id": "1", "subject": "lex", "status": "completed", "owner": "alice", "blocks": ["2"]}"#,
    ),
    (
        "tasks/2.json",
        r#"{"id": 2, "subject": "parse", "status": "pending", "metadata": {"b": 1, "a": [1.5]}}"#,
    ),
    (
        "tasks/4.json",
        r#"{"id": "4", "subject": "print", "blockedBy": ["2", "1"]}"#,
    ),
    (
        "inboxes/alice.json",
        r#"[{"from": "team-lead", "text": "begin\nsoon", "timestamp": "2026-11-15T08:00:00.5Z", "read": false}]"#,
    ),
    ("notes/plan.md", "# the plan"),
];

fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// A project whose store has the team.
pub(crate) fn with_team(name: &str) -> Project {
    let project = Project::new(name, "");
    write(&project.file("parser"), &PARSER);
    succeed(&project, &["team", "import", "parser"]);
    project
}

pub(crate) fn succeed(project: &Project, arguments: &[&str]) -> String {
    let output = project.run(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output)
}

pub(crate) fn lines(project: &Project, arguments: &[&str]) -> Vec<Value> {
    let out = succeed(project, arguments);
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// It fails with this code, and says what and what to do.
pub(crate) fn refused(project: &Project, arguments: &[&str], code: i32, said: &[&str]) {
    let output = project.run(arguments);
    let error = stderr(&output);
    assert!(
        said.iter().all(|words| error.contains(words)),
        "{arguments:?}: {error}"
    );
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(code), ""),
        "{arguments:?}: {error}"
    );
    if code == 1 {
        assert!(error.contains("hint: "), "{arguments:?}: {error}");
    }
}

/// Everything beneath a directory.
fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(directory)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn a_team_of_another_program_is_shown() {
    let project = with_team("team-show");
    let shown = succeed(&project, &["team", "show", "parser"]);
    for words in [
        "Rewrite \\u{1b}[2Jit",
        "alice",
        "not running",
        "tasks: 2 pending, 1 completed",
        "plan",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("lex\n"), "only what is open: {shown}");
    let [team] = &lines(&project, &["team", "list", "--all", "--json"])[..] else {
        panic!("one team")
    };
    assert_eq!(
        (&team["team"], &team["members"], &team["open_tasks"]),
        (&"parser".into(), &2.into(), &2.into())
    );
    let [told] = &lines(&project, &["team", "show", "--json"])[..] else {
        panic!("one object")
    };
    assert_eq!(told["members"][1]["waiting_mail"], 1);
    assert_eq!(
        told["tasks"][2]["waits_for"],
        serde_json::json!([2]),
        "of 1 and 2 the open one"
    );
    assert_eq!(told["notes"][0]["text"], "# the plan");
    assert!(!shown.contains("# the plan"), "{shown}");
    assert!(succeed(&project, &["team", "show", "--verbose"]).contains("\n    # the plan\n"));
    let table = succeed(&project, &["team", "list", "--all"]);
    assert!(
        table.starts_with("TEAM ") && table.contains("parser"),
        "{table}"
    );
}

#[test]
fn an_export_imported_elsewhere_exports_the_same_bytes() {
    let project = with_team("team-round");
    succeed(
        &project,
        &["mail", "send", "--team", "parser", "*", "hello \u{202e}all"],
    );
    succeed(
        &project,
        &[
            "task", "update", "4", "--team", "parser", "--status", "deleted",
        ],
    );
    succeed(&project, &["team", "export", "one"]);
    let first = content(&project.file("one"));
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "config.json",
            "inboxes/alice.json",
            "inboxes/team-lead.json",
            "notes/plan.md",
            "tasks/1.json",
            "tasks/2.json",
            "tasks/4.json"
        ]
    );
    succeed(&project, &["team", "export", "two"]);
    assert_eq!(
        content(&project.file("two")),
        first,
        "nothing changes by itself"
    );
    let other = "--store=sqlite:other/posse.db";
    succeed(&project, &["team", "import", "one", other]);
    succeed(&project, &["team", "export", "three", other]);
    assert_eq!(content(&project.file("three")), first, "nothing is lost");
    // Here the realm and its agents are taken: the copy gets new ones, and only they differ.
    let said = succeed(&project, &["team", "import", "one"]);
    let (_, hint) = said.split_once("look at it: posse ").unwrap();
    assert!(
        said.contains("there is another team parser; this one belongs to session "),
        "{said}"
    );
    succeed(&project, &hint.split_whitespace().collect::<Vec<_>>());
    let teams = lines(&project, &["team", "list", "--all", "--json"]);
    assert_eq!(teams.len(), 2);
    assert_ne!(teams[0]["session_id"], teams[1]["session_id"]);
    for team in &teams {
        let id = team["session_id"].as_str().unwrap();
        refused(
            &project,
            &["team", "show", "parser"],
            1,
            &["several sessions have a team parser", id],
        );
        succeed(&project, &["team", "show", "parser", "--session", id]);
    }
    assert!(succeed(&project, &["store", "check"]).contains("is intact"));
}

#[test]
fn an_export_that_was_broken_off_goes_on() {
    let project = with_team("team-broken");
    succeed(&project, &["team", "export", "whole"]);
    let whole = content(&project.file("whole"));
    // What is left by one that ends in the middle: a description that says so, and some of the files.
    succeed(&project, &["team", "export", "out"]);
    std::fs::remove_dir_all(project.file("out/tasks")).unwrap();
    write(
        &project.file("out"),
        &[("notes/plan.md", "old"), ("notes/plan.md.4711.new", "ol")],
    );
    let config = std::str::from_utf8(&whole["config.json"]).unwrap();
    let missing = [
        "cannot be imported:",
        "tasks/1.json: it does not exist, but config.json lists it",
    ];
    refused(
        &project,
        &["team", "import", "out", "--store", "sqlite:other.db"],
        1,
        &missing,
    );
    assert!(
        !project.file("other.db").exists(),
        "what cannot be imported makes no store"
    );
    let marked = config.replace("\"lastTask\"", "\"unfinished\": true, \"lastTask\"");
    write(&project.file("out"), &[("config.json", &marked)]);
    refused(
        &project,
        &["team", "import", "out"],
        1,
        &["config.json: the export is incomplete; export"],
    );
    let said = succeed(&project, &["team", "export", "out"]);
    assert!(said.ends_with(" to out; 5 files written\n"), "{said}");
    assert_eq!(content(&project.file("out")), whole);
    assert!(succeed(&project, &["team", "export", "out"]).ends_with("all files were up to date\n"));
    let mode = |name: &str| {
        std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(project.file(name)).unwrap().permissions(),
        )
    };
    assert_eq!(
        mode("out/inboxes/alice.json") & 0o777,
        0o600,
        "mail is private"
    );
    assert_ne!(mode("out/tasks/1.json") & 0o044, 0);
}

#[test]
fn two_exports_at_once_into_a_new_directory_do_not_meet() {
    let project = with_team("team-both");
    succeed(&project, &["team", "export", "alone"]);
    for _ in 0..5 {
        let exports = [0; 4].map(|_| project.posse(&["team", "export", "both"]).spawn().unwrap());
        for mut export in exports {
            assert!(export.wait().unwrap().success());
        }
        assert_eq!(
            content(&project.file("both")),
            content(&project.file("alone"))
        );
        std::fs::remove_dir_all(project.file("both")).unwrap();
    }
}

#[test]
fn the_session_of_an_imported_team_stands_for_the_team() {
    let project = with_team("team-session");
    let id = lines(&project, &["team", "list", "--all", "--json"])[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let id = id.as_str();
    assert_eq!(
        lines(&project, &["task", "list", "--session", id, "--json"]).len(),
        3
    );
    assert_eq!(
        lines(
            &project,
            &["mail", "list", "--session", &id[..20], "--json"]
        )
        .len(),
        1
    );
    let only = ["that session has only the team parser", "use --team parser"];
    refused(&project, &["sessions", "show", id], 1, &only);
    refused(&project, &["agents", "ps", "--session", id], 1, &only);
    refused(&project, &["-p", "--resume", id, "x"], 1, &only);
}

#[test]
fn a_failure_is_an_object_too() {
    let project = with_team("team-json");
    for arguments in [
        &["team", "show", "other"][..],
        &["task", "show", "9", "--team", "parser"],
        &["mail", "send", "bob@parser", "x"],
        &["store", "backup", "no/where.db"],
        &["sessions", "show", "ffff"],
    ] {
        let output = project.run(&[arguments, &["--json"]].concat());
        let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = told["error"].as_str().unwrap();
        assert!(
            stderr(&output).contains(error) && told["hint"].is_string(),
            "{arguments:?}: {told}"
        );
    }
}

#[test]
fn a_later_export_removes_only_what_an_earlier_one_wrote() {
    let project = with_team("team-again");
    succeed(&project, &["team", "export", "out"]);
    let config = std::fs::read_to_string(project.file("out/config.json")).unwrap();
    let earlier = config.replace("\"notes\": [", "\"notes\": [ {\"name\": \"old\"},");
    let mine = [
        ("config.json", earlier.as_str()),
        ("notes/old.md", "gone"),
        ("notes/mine.md", "mine"),
        ("tasks/99.json", "{}"),
        ("README.md", ""),
    ];
    write(&project.file("out"), &mine);
    let output = project.run(&["team", "export", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains(
        "tasks/99.json does not belong to this team; an import would \
                                      read it"
    ));
    let files = content(&project.file("out"));
    assert!(!files.contains_key("notes/old.md"));
    for kept in ["notes/mine.md", "tasks/99.json", "README.md"] {
        assert!(files.contains_key(kept), "{kept}");
    }
    assert_eq!(files["config.json"], config.as_bytes());
    // A link in the place of a file is replaced, not followed.
    std::fs::remove_file(project.file("out/notes/plan.md")).unwrap();
    std::os::unix::fs::symlink(
        project.file("out/README.md"),
        project.file("out/notes/plan.md"),
    )
    .unwrap();
    succeed(&project, &["team", "export", "out"]);
    assert_eq!(content(&project.file("out"))["README.md"], b"");
    assert!(!project.file("out/notes/plan.md").is_symlink());

    refused(
        &project,
        &["team", "export", "."],
        1,
        &["is not empty, and not an export", "new directory"],
    );
    refused(
        &project,
        &["team", "export", "parser"],
        1,
        &["is not empty, and not an export"],
    );
    let other = config.replace("\"name\": \"parser\"", "\"name\": \"other\"");
    write(&project.file("out"), &[("config.json", &other)]);
    refused(
        &project,
        &["team", "export", "out"],
        1,
        &["another team, other"],
    );
}

#[test]
fn what_cannot_be_imported_is_named() {
    let project = Project::new("team-wrong", "");
    let import = |said: &[&str]| {
        refused(&project, &["team", "import", "parser"], 1, said);
        assert_eq!(
            lines(&project, &["team", "list", "--all", "--json"]).len(),
            0,
            "nothing of it is there"
        );
    };
    import(&["parser does not exist"]);
    write(&project.file("parser"), &PARSER[1..]);
    import(&["parser/config.json does not exist"]);
    let with = |name: &str, text: &str, said: &[&str]| {
        write(&project.file("parser"), &PARSER);
        write(&project.file("parser"), &[(name, text)]);
        import(said);
    };
    with(
        "tasks/2.json",
        "{\"id\": ",
        &["parser/tasks/2.json: EOF", "nothing was imported"],
    );
    with(
        "config.json",
        r#"{"name": "../x", "members": []}"#,
        &["config.json: `../x` is not a valid name"],
    );
    with(
        "inboxes/alice.json",
        "{}",
        &["parser/inboxes/alice.json: invalid type"],
    );
    with(
        "tasks/4.json",
        r#"{"subject": "x", "blockedBy": [9]}"#,
        &["tasks/4.json: it waits for 9"],
    );
    write(&project.file("parser"), &PARSER);
    std::fs::write(project.file("secret.json"), "[]").unwrap();
    std::fs::remove_file(project.file("parser/inboxes/alice.json")).unwrap();
    std::os::unix::fs::symlink(
        "../../secret.json",
        project.file("parser/inboxes/alice.json"),
    )
    .unwrap();
    import(&["inboxes/alice.json: it is a link"]);
    std::fs::remove_file(project.file("parser/inboxes/alice.json")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(project.file("parser/inboxes/alice.json"))
        .status();
    assert!(made.unwrap().success());
    import(&["inboxes/alice.json: it is not a file"]);
    std::fs::remove_file(project.file("parser/inboxes/alice.json")).unwrap();
    std::fs::File::create(project.file("parser/tasks/2.json"))
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    import(&["tasks/2.json: it is larger than 64 MiB"]);
}

#[test]
fn who_is_not_there_is_said() {
    let project = with_team("team-unknown");
    refused(
        &project,
        &["team", "show", "prser"],
        1,
        &["no team prser", "did you mean parser?"],
    );
    refused(
        &project,
        &["team", "show", "../x"],
        2,
        &["`../x` is not a valid name"],
    );
    refused(
        &project,
        &["team", "show", "parser", "--session", "ffff"],
        1,
        &["no session ffff"],
    );
    refused(
        &project,
        &["team", "list", "--store", "posse.db"],
        2,
        &["a store is sqlite:PATH"],
    );
    refused(
        &project,
        &["team", "list", "--store", "postgres:db"],
        2,
        &["postgres://USER@HOST/DATABASE"],
    );
    refused(
        &project,
        &["team", "list", "--store", "sqlite:."],
        1,
        &["is a directory", "sqlite:./posse.db"],
    );
    let output = project
        .posse(&["team", "list", "--all"])
        .env("POSSE_STORE", "nonsense")
        .output()
        .unwrap();
    assert!(stderr(&output).contains("POSSE_STORE is `nonsense`: a store is sqlite:PATH"));
}
