//! Teams of a directory: listed, not started twice, and deleted by name.

use std::cell::RefCell;
use std::fs::File;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::binary::{stderr, stdout};
use crate::team::{lines, refused, succeed};
use crate::team_run::{HELD, LINES, Listening, project, until};

// proves TE-14 (part: once)
#[test]
fn a_team_that_runs_here_is_listed_and_not_started_again() {
    let project = project("team-twice", HELD);
    let run = ["team", "run", "mend", "make it work"];
    let mut first = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    first.until_held(&project);
    let listed = succeed(&project, &["team", "list"]);
    let rows: Vec<&str> = listed.lines().collect();
    assert!(
        rows.len() == 2 && rows[1].starts_with("mend  running        3  1 of 2 done  "),
        "{listed}"
    );
    let [row] = &lines(&project, &["team", "list", "--json"])[..] else {
        panic!("one team")
    };
    let here = project.file("").canonicalize().unwrap();
    assert_eq!(
        (&row["state"], &row["completed_tasks"], &row["cwd"]),
        (&json!("running"), &json!(1), &json!(here))
    );
    let pid = format!("run by pid {}", first.child.id());
    let session = row["session_id"].as_str().unwrap();
    let attach = format!("posse attach {}", &session[..18]);
    refused(
        &project,
        &run,
        1,
        &["already runs in this directory", &pid, &attach, "--another"],
    );
    // Elsewhere nothing of it is listed but with --all, and it may start there.
    let elsewhere = |arguments: &[&str]| {
        let mut posse = project.posse(arguments);
        stdout(&posse.current_dir("/").output().unwrap())
    };
    assert_eq!(elsewhere(&["team", "list"]), "");
    let all = elsewhere(&["team", "list", "--all"]);
    assert!(
        all.contains("running") && all.contains(here.to_str().unwrap()),
        "{all}"
    );
    // The model holds the first one only.
    succeed(
        &project,
        &["team", "run", "mend", "make it work", "--another"],
    );
    drop(first);
    let sessions = |arguments: &[&str]| lines(&project, arguments).len();
    assert_eq!(sessions(&["team", "list", "--json"]), 0);
    assert_eq!(sessions(&["team", "list", "--all", "--json"]), 2);
    let states = succeed(&project, &["team", "list", "--all"]);
    assert!(
        states.contains("mend  done ") && states.contains("mend  stopped "),
        "{states}"
    );
}

// proves TE-14 (part: once)
#[test]
fn of_starts_at_the_same_moment_one_runs() {
    let project = project("team-at-once", HELD);
    // All of them have found no team before the first one can go on.
    let gate = File::open(project.file("")).unwrap();
    gate.lock().unwrap();
    let start = |_| {
        let mut posse = project.posse(&["team", "run", "mend", "make it work"]);
        let posse = posse.stdout(Stdio::piped()).stderr(Stdio::piped());
        posse.spawn().unwrap()
    };
    let open: Vec<Child> = (0..4).map(start).collect();
    until("all have come to the lock", || {
        let waits = |posse: &Child| {
            let files = std::fs::read_dir(format!("/proc/{}/fd", posse.id())).unwrap();
            let here = project.file("").canonicalize().unwrap();
            files
                .filter_map(|file| std::fs::read_link(file.unwrap().path()).ok())
                .any(|file| file == here)
        };
        open.iter().all(waits)
    });
    drop(gate);
    let ended = RefCell::new(Vec::new());
    let left = RefCell::new(open);
    until("three of four have ended", || {
        let (mut left, mut ended) = (left.borrow_mut(), ended.borrow_mut());
        for at in (0..left.len()).rev() {
            if left[at].try_wait().unwrap().is_some() {
                ended.push(left.remove(at).wait_with_output().unwrap());
            }
        }
        ended.len() >= 3
    });
    for output in ended.into_inner() {
        let said = stderr(&output);
        assert!(said.contains("already runs in this directory"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
    for mut running in left.into_inner() {
        running.kill().unwrap();
        running.wait().unwrap();
    }
    assert_eq!(
        lines(&project, &["team", "list", "--all", "--json"]).len(),
        1
    );
}

#[test]
fn a_team_is_deleted_without_its_session_if_its_directory_has_one_of_the_name() {
    let project = project("team-delete-here", "");
    let other = project.file("other");
    std::fs::create_dir_all(other.join(".posse")).unwrap();
    std::fs::rename(project.file(".posse/teams"), other.join(".posse/teams")).unwrap();
    let at = |place: &std::path::Path, arguments: &[&str]| {
        let mut posse = project.posse(arguments);
        posse
            .env("POSSE_TRUST", place)
            .current_dir(place)
            .output()
            .unwrap()
    };
    let run = ["team", "run", "mend", "make it work"];
    assert!(at(&other, &run).status.success());
    std::fs::rename(other.join(".posse/teams"), project.file(".posse/teams")).unwrap();
    assert!(project.run(&run).status.success());
    let told = stdout(&at(&other, &["team", "delete", "mend", "--json"]));
    let told: Value = serde_json::from_str(&told).unwrap();
    let left = lines(&project, &["team", "list", "--all", "--json"]);
    assert_eq!((&told["deleted"], left.len()), (&json!(true), 1));
    assert_ne!(left[0]["session_id"], told["session_id"]);
    let root = at(std::path::Path::new("/"), &["team", "delete", "mend"]);
    assert!(
        root.status.success(),
        "the only one of all: {}",
        stderr(&root)
    );
}
