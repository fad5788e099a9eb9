//! `posse store`, and where the store is.

use std::os::unix::fs::PermissionsExt;

use crate::binary::{Project, stderr, stdout};
use crate::team::{lines, refused, succeed, with_team};

#[test]
fn a_whole_store_is_said_to_be_whole() {
    let project = with_team("store-check");
    succeed(&project, &["-p", "hello"]);
    let said = succeed(&project, &["store", "check"]);
    assert!(
        said.ends_with("is intact: 1 agent, 2 entries, 1 team, 3 tasks, 1 message\n"),
        "{said}"
    );
    let [told] = &lines(&project, &["store", "check", "--json"])[..] else {
        panic!("one object")
    };
    assert_eq!(
        (&told["entries"], &told["faults"]),
        (&2.into(), &serde_json::json!([]))
    );
}

#[test]
fn a_flipped_bit_is_found() {
    let project = Project::new("store-bit", "");
    succeed(&project, &["-p", "a prompt with a flaw"]);
    let store = project.file("../home/posse.db");
    succeed(&project, &["store", "backup", "whole.db"]);
    let full = ["sessions", "export", "--output", "/dev/full"];
    refused(
        &project,
        &full,
        1,
        &["cannot write /dev/full: No space left", "free some space"],
    );
    let mut bytes = std::fs::read(&store).unwrap();
    let at = bytes
        .windows(4)
        .position(|window| window == b"flaw")
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(&store, bytes).unwrap();
    let output = project.run(&["store", "check"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("is damaged at entry "),
        "{}",
        stdout(&output)
    );
    assert!(
        stderr(&output).contains("hint: make a copy first"),
        "{}",
        stderr(&output)
    );
    std::fs::write(
        &store,
        "no database at all, but long enough to be looked at as one",
    )
    .unwrap();
    refused(
        &project,
        &["store", "check"],
        1,
        &["not a database", "move this one away"],
    );
    let mut bytes = std::fs::read(project.file("whole.db")).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&store, bytes).unwrap();
    refused(
        &project,
        &["sessions", "list"],
        1,
        &["malformed", "posse store check", "backup"],
    );
}

#[test]
fn a_copy_is_a_store() {
    let project = with_team("store-backup");
    succeed(&project, &["-p", "hello"]);
    let said = succeed(&project, &["store", "backup", "copy.db"]);
    assert!(said.starts_with("copied to copy.db: "), "{said}");
    let mode = std::fs::metadata(project.file("copy.db"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let left: Vec<_> = std::fs::read_dir(project.file("."))
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains(".new")),
        "{left:?}"
    );
    let sessions = lines(
        &project,
        &["sessions", "list", "--json", "--store", "sqlite:copy.db"],
    );
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        lines(
            &project,
            &[
                "team",
                "list",
                "--all",
                "--json",
                "--store",
                "sqlite:copy.db"
            ]
        )
        .len(),
        1
    );
    succeed(&project, &["store", "check", "--store", "sqlite:copy.db"]);
    refused(
        &project,
        &["store", "backup", "copy.db"],
        1,
        &["already exists", "new file"],
    );
    refused(
        &project,
        &["store", "backup", "sqlite:b.db"],
        1,
        &["is not a file", "posse store backup b.db"],
    );
    refused(
        &project,
        &["store", "backup", "no/where.db"],
        1,
        &["no directory no", "create it first"],
    );
}

#[test]
fn what_nobody_uses_goes_and_the_rest_stays() {
    let project = with_team("store-gc");
    succeed(&project, &["-p", "one"]);
    succeed(&project, &["-p", "--continue", "--fork-session", "two"]);
    succeed(&project, &["-p", "three"]);
    assert_eq!(succeed(&project, &["store", "gc"]), "nothing to remove\n");
    let would = &lines(
        &project,
        &["store", "gc", "--older-than", "0s", "--dry-run", "--json"],
    )[0];
    assert_eq!(
        (&would["sessions"], &would["teams"]),
        (&3.into(), &1.into()),
        "{would}"
    );
    let unused = would["unused"].as_array().unwrap();
    let team = &lines(&project, &["team", "list", "--all", "--json"])[0];
    assert_eq!(unused.len(), 3, "{would}");
    assert!(
        unused
            .iter()
            .any(|it| it["session_id"] == team["session_id"]),
        "{would}"
    );
    let listed = succeed(
        &project,
        &["store", "gc", "--older-than", "0s", "--dry-run"],
    );
    assert!(
        listed.contains("  2 sessions (2 agents), in /") && listed.contains("  team parser\n"),
        "{listed}"
    );
    assert!(
        listed.ends_with("would remove 3 sessions (3 agents), 1 team\n"),
        "{listed}"
    );
    assert_eq!(
        lines(&project, &["sessions", "list", "--json"]).len(),
        3,
        "nothing is gone yet"
    );
    let gone = succeed(&project, &["store", "gc", "--older-than", "0s"]);
    assert!(
        gone.starts_with("removed 3 sessions (3 agents), 1 team; "),
        "{gone}"
    );
    assert_eq!(lines(&project, &["sessions", "list", "--json"]).len(), 0);
    assert_eq!(
        lines(&project, &["team", "list", "--all", "--json"]).len(),
        0
    );
    assert!(succeed(&project, &["store", "check"]).contains("is intact: 0 agents, 0 entries, "));
    refused(
        &project,
        &["store", "gc", "--older-than", "30"],
        2,
        &["30d"],
    );
}

#[test]
fn a_store_is_brought_up_to_date_and_said_to_be() {
    let project = Project::new("store-migrate", "");
    refused(
        &project,
        &["store", "migrate"],
        1,
        &["there is no store", "--store sqlite:PATH"],
    );
    std::fs::create_dir_all(project.file("../home")).unwrap();
    std::fs::write(project.file("../home/posse.db"), "").unwrap();
    assert_eq!(
        lines(&project, &["store", "migrate", "--json"])[0]["from"],
        0
    );
    assert!(succeed(&project, &["store", "migrate"]).contains("is up to date: version "));
}

#[test]
fn the_store_is_the_flags_then_the_environments_then_the_settings() {
    let project = Project::new("store-choice", "");
    std::fs::create_dir_all(project.file("../home")).unwrap();
    std::fs::write(
        project.file("../home/settings.json"),
        r#"{"store": "sqlite:set/posse.db"}"#,
    )
    .unwrap();
    succeed(&project, &["-p", "one"]);
    assert!(
        project.file("../home/set/posse.db").exists() && !project.file("../home/posse.db").exists()
    );
    let by_variable = project
        .posse(&["-p", "two"])
        .env("POSSE_STORE", "sqlite:variable.db")
        .output()
        .unwrap();
    assert_eq!(
        by_variable.status.code(),
        Some(0),
        "{}",
        stderr(&by_variable)
    );
    assert!(project.file("variable.db").exists());
    let by_flag = project
        .posse(&["-p", "three", "--store", "sqlite:flag.db"])
        .env("POSSE_STORE", "nonsense")
        .output();
    assert_eq!(by_flag.unwrap().status.code(), Some(0));
    for (store, words) in [("sqlite:flag.db", "three"), ("sqlite:variable.db", "two")] {
        let table = succeed(&project, &["sessions", "list", "--store", store]);
        assert!(
            table.lines().count() == 2 && table.contains(words),
            "{table}"
        );
    }
    for directory in [".git", ".posse"] {
        std::fs::create_dir_all(project.file(directory)).unwrap();
    }
    std::fs::write(
        project.file(".posse/settings.json"),
        r#"{"store": "sqlite:/tmp/theirs.db"}"#,
    )
    .unwrap();
    let output = project.run(&["-p", "four"]);
    assert!(
        stderr(&output).contains("ignored: 1 store in"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        lines(&project, &["sessions", "list", "--json"]).len(),
        2,
        "still one's own"
    );
}

#[test]
fn looking_makes_no_store() {
    let project = Project::new("store-look", "");
    let looks: [&[&str]; 9] = [
        &["team", "list"],
        &["sessions", "list", "--all"],
        &["agents", "ps"],
        &["team", "show"],
        &["task", "list", "--team", "x"],
        &[
            "task",
            "update",
            "1",
            "--team",
            "x",
            "--status",
            "completed",
        ],
        &["mail", "send", "a@x", "hello"],
        &["store", "check"],
        &["sessions", "show", "ffff"],
    ];
    for look in looks {
        let output = project.run(look);
        let empty = look.contains(&"list") && !look.contains(&"x") || look.contains(&"ps");
        assert_eq!(
            output.status.code(),
            Some(i32::from(!empty)),
            "{look:?}: {}",
            stderr(&output)
        );
        refused(
            &project,
            &[look, &["--store", "sqlite:no/x.db"]].concat(),
            1,
            &["there is no store no/x.db yet"],
        );
        let output = project
            .posse(look)
            .env("POSSE_STORE", "sqlite:~/no/y.db")
            .output()
            .unwrap();
        assert!(
            stderr(&output).contains("home/no/y.db yet"),
            "{look:?}: {}",
            stderr(&output)
        );
    }
    assert!(!project.file("no").exists() && !project.file("../home").exists());
}

#[test]
fn what_is_wrong_with_the_file_is_said_with_what_to_do() {
    let project = with_team("store-trouble");
    let at = ["team", "list", "--store", "sqlite:x.db"];
    let another = std::process::Command::new("python3")
        .args([
            "-c",
            "import sqlite3; sqlite3.connect('x.db').execute('CREATE TABLE bookmark (url)')",
        ])
        .current_dir(project.file("."))
        .status();
    assert!(another.unwrap().success());
    let before = std::fs::read(project.file("x.db")).unwrap();
    let words = [
        "x.db is a database, but not a posse store",
        "name another file",
    ];
    refused(&project, &at, 1, &words);
    for other in [
        &["team", "import", "parser"][..],
        &["store", "migrate"],
        &["store", "backup", "b.db"],
    ] {
        refused(
            &project,
            &[other, &["--store", "sqlite:x.db"]].concat(),
            1,
            &words,
        );
    }
    assert_eq!(std::fs::read(project.file("x.db")).unwrap(), before);
    for wrong in ["sqlite::memory:", "sqlite:x.db?mode=ro", "sqlite:"] {
        refused(
            &project,
            &["team", "list", "--store", wrong],
            2,
            &["a store is "],
        );
    }
    succeed(&project, &["store", "backup", "y.db"]);
    let newer = "import sqlite3; sqlite3.connect('y.db').execute('PRAGMA user_version = 99')";
    let changed = std::process::Command::new("python3")
        .args(["-c", newer])
        .current_dir(project.file("."))
        .status();
    assert!(changed.unwrap().success());
    refused(
        &project,
        &["team", "list", "--store", "sqlite:y.db"],
        1,
        &["a newer posse", "--store sqlite:PATH"],
    );
}

#[test]
fn a_copy_that_is_interrupted_leaves_nothing() {
    let project = with_team("store-interrupted");
    // Large enough that a copy takes its time.
    let fill = "import sqlite3; c = sqlite3.connect('../home/posse.db'); c.execute(\"INSERT INTO preamble SELECT \
                x'00', randomblob(8), NULL, randomblob(200000) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL \
                SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n)\"); c.commit()";
    let filled = std::process::Command::new("python3")
        .args(["-c", fill])
        .current_dir(project.file("."))
        .status();
    assert!(filled.unwrap().success());
    let mut copying = project
        .posse(&["store", "backup", "copy.db"])
        .spawn()
        .unwrap();
    let begun = || {
        let names = std::fs::read_dir(project.file("."))
            .unwrap()
            .map(|it| it.unwrap());
        names
            .into_iter()
            .any(|it| it.file_name().to_string_lossy().ends_with(".new"))
    };
    while !begun() {
        assert_eq!(copying.try_wait().unwrap(), None, "it has not ended before");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&copying);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(copying.wait().unwrap().code(), Some(130));
    assert!(!begun() && !project.file("copy.db").exists());
}
