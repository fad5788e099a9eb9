//! `posse sessions`, and going on with one.

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};

fn told(project: &Project, arguments: &[&str]) -> Value {
    let output = project.run(&[arguments, &["--output-format", "json"]].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

// proves TR-04 (part: --continue; --resume; --fork-session; another process)
#[test]
fn a_session_goes_on_in_another_process() {
    let project = Project::new("sessions-resume", "");
    let first = told(&project, &["-p", "one"]);
    let id = first["session_id"].as_str().unwrap();
    assert_eq!(
        told(&project, &["-p", "--continue", "two"])["session_id"],
        id
    );
    assert_eq!(
        told(&project, &["-p", "--resume", &id[..30], "three"])["session_id"],
        id
    );
    let fork = told(&project, &["-p", "--resume", id, "--fork-session", "four"]);
    let copy = fork["session_id"].as_str().unwrap();
    assert_ne!(copy, id);

    let list = stdout(&project.run(&["sessions", "list", "--json"]));
    let ids: Vec<Value> = list
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["session_id"].clone())
        .collect();
    assert_eq!(ids, [copy, id], "the one used last first");
    let table = stdout(&project.run(&["sessions", "list"]));
    assert!(
        table.contains("idle") && table.contains(" one\n"),
        "{table}"
    );

    let shown = stdout(&project.run(&["sessions", "show", copy]));
    for words in ["> one", "You said: one", "> four", "You said: four"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let exported = stdout(&project.run(&["sessions", "export", id]));
    let kinds: Vec<String> = exported
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        ["prompt", "reply", "prompt", "reply", "prompt", "reply"],
        "the fork left it alone"
    );
    let file = project.file("export.jsonl");
    project.run(&["sessions", "export", id, "--output", file.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), exported);
}

#[test]
fn what_cannot_go_on_is_said() {
    let project = Project::new("sessions-wrong", "");
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
    };
    check(
        &["-p", "--continue", "x"],
        "no session of",
        "sessions list --all",
    );
    check(
        &["-p", "--resume", "abc", "x"],
        "no session abc",
        "sessions list --all",
    );
    let id = told(&project, &["-p", "one"])["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    check(
        &["-p", "--resume", &id],
        "nothing left to do",
        "give it a prompt",
    );
    check(
        &["-p", "--resume", &id, "--model", "other", "x"],
        "uses claude-opus-5-5",
        "keeps its model",
    );
    check(
        &["-p", "--resume", &id, "--system-prompt", "y", "x"],
        "system prompt it started with",
        "new session",
    );
    check(
        &["sessions", "show", "abc"],
        "no session abc",
        "sessions list --all",
    );
    told(&project, &["-p", "two"]);
    check(
        &["-p", "--resume", &id[..2], "x"],
        "several session ids",
        &id,
    );
}

/// Asks for a command, then is done; a reply also for `x`.
const RUNS: &str = "[[rule]]\nwhen.tool = 're:.'\nreply = [{ text = 'done' }]\n[[rule]]\nreply = [{ tool = \
                    'Bash', input = { command = 'echo ran >> log' } }]\n";

#[test]
fn a_session_keeps_its_mode_but_no_bypass() {
    let project = Project::new("sessions-mode", RUNS);
    let ran = || {
        std::fs::read_to_string(project.file("log"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let bypass = ["--permission-mode", "bypassPermissions"];
    told(&project, &[&["-p", "run it"], &bypass[..]].concat());
    assert_eq!(ran(), 1);
    let output = project.run(&["-p", "--continue", "run it"]);
    let note = "the session was in bypassPermissions; add --permission-mode bypassPermissions to \
                continue in it\n";
    assert!(stderr(&output).starts_with(note), "{}", stderr(&output));
    assert_eq!(ran(), 1, "it was denied");
    let again = project.run(&["-p", "--continue", "run it"]);
    assert!(
        !stderr(&again).contains("the session was"),
        "{}",
        stderr(&again)
    );
    let output = project.run(&[&["-p", "--continue", "run it"], &bypass[..]].concat());
    assert!(
        !stderr(&output).contains("the session was"),
        "{}",
        stderr(&output)
    );
    assert_eq!(ran(), 2);

    let mode = |arguments: &[&str]| {
        let lines =
            stdout(&project.run(&[arguments, &["--output-format", "stream-json"]].concat()));
        let init: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        init["permissionMode"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        mode(&["-p", "run it", "--permission-mode", "acceptEdits"]),
        "acceptEdits"
    );
    assert_eq!(mode(&["-p", "-c", "run it"]), "acceptEdits", "kept");
    for directory in [".git", ".posse"] {
        std::fs::create_dir_all(project.file(directory)).unwrap();
    }
    std::fs::write(
        project.file(".posse/settings.json"),
        r#"{"permissions": {"defaultMode": "plan"}}"#,
    )
    .unwrap();
    assert_eq!(
        mode(&["-p", "-c", "run it"]),
        "plan",
        "a stricter repository counts"
    );
}

#[test]
fn what_came_to_nothing_is_not_continued() {
    let script = "[[rule]]\nwhen.user = 'pause'\nreply = [{ text = 'x' }]\nfault = { kind = 'status', status = \
                  409, retry_after_ms = 1 }\n[[rule]]\nwhen.user = 'fail'\nreply = [{ text = 'x' }]\nfault = { kind = 'status', status = \
                  404 }\n[[rule]]\nreply = [{ text = 'well' }]\n";
    let project = Project::new("sessions-nothing", script);
    let failed = told(&project, &["-p", "fail"]);
    assert_eq!(failed["is_error"], true);
    let output = project.run(&["-p", "--continue", "x"]);
    assert!(
        stderr(&output).contains("has a reply yet"),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.status.code(), Some(1));
    let good = told(&project, &["-p", "work"]);
    told(&project, &["-p", "fail"]);
    assert_eq!(
        told(&project, &["-p", "--continue", "x"])["session_id"],
        good["session_id"]
    );
    let paused = told(&project, &["-p", "pause"]);
    assert_eq!(paused["terminal_reason"], "paused", "{paused}");
    assert_eq!(
        told(&project, &["-p", "--continue", "x"])["session_id"],
        paused["session_id"]
    );
}

#[test]
fn the_id_that_is_told_is_one_to_go_on_with() {
    let project = Project::new("sessions-short", "");
    let said = stderr(&project.run(&["-p", "--verbose", "one"]));
    let (_, told) = said
        .split_once("continue with: posse -p --resume ")
        .unwrap();
    let id = told.split(' ').next().unwrap();
    let table = stdout(&project.run(&["sessions", "list"]));
    let listed = table.lines().nth(1).unwrap().split(' ').next().unwrap();
    assert!(id.len() < 36 && id.starts_with(listed), "{id} {listed}");
    assert_eq!(
        project.run(&["-p", "--resume", id, "two"]).status.code(),
        Some(0)
    );
}

#[test]
fn a_list_says_that_it_goes_on() {
    let project = Project::new("sessions-more", "");
    for prompt in ["one", "two", "three"] {
        told(&project, &["-p", prompt]);
    }
    let output = project.run(&["sessions", "list", "-n", "2"]);
    assert_eq!(stdout(&output).lines().count(), 3, "{}", stdout(&output));
    assert!(
        stderr(&output).contains("there are more; see them with -n 100"),
        "{}",
        stderr(&output)
    );
    for all in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "list", "-n", "3"],
    ] {
        let output = project.run(all);
        assert_eq!(stderr(&output), "");
        assert!(stdout(&output).lines().count() >= 3);
    }
}

// proves CV-01 (part: command line)
#[test]
fn a_conversation_is_branched_from_the_command_line() {
    let project = Project::new("sessions-branch", "");
    let id = |prompt: &str, more: &[&str]| {
        let output = project.run(&[&["-p", prompt, "--output-format", "json"][..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let result: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        result["session_id"].as_str().unwrap().to_owned()
    };
    let first = id("one", &[]);
    assert_eq!(id("two", &["--resume", &first]), first);
    let branch = id(
        "other",
        &["--resume", &first, "--fork-session", "--at", "1"],
    );
    assert_ne!(branch, first);
    let show = |session: &str| stdout(&project.run(&["sessions", "show", session]));
    let said = show(&branch);
    assert!(
        said.contains("one") && said.contains("other") && !said.contains("two"),
        "{said}"
    );
    assert!(show(&first).contains("two") && !show(&first).contains("other"));
    let beyond = ["-p", "x", "--resume", &first, "--fork-session", "--at", "9"];
    let output = project.run(&beyond);
    assert_ne!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("the entries 0 to 3"),
        "{}",
        stderr(&output)
    );
    let alone = project.run(&["-p", "x", "--resume", &first, "--at", "1"]);
    assert_eq!(alone.status.code(), Some(2), "{}", stderr(&alone));
}

#[test]
fn people_read_times_of_their_zone_and_programs_utc() {
    let project = Project::new("sessions-zone", "");
    told(&project, &["-p", "one"]);
    let shown = |zone: &str, arguments: &[&str]| {
        let output = project.posse(arguments).env("TZ", zone).output().unwrap();
        stdout(&output)
    };
    let json = shown("IST-5:30", &["sessions", "show", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let at: jiff::Timestamp = json["entries"][0]["at"].as_str().unwrap().parse().unwrap();
    for (zone, minutes) in [("UTC0", 0), ("IST-5:30", 330), ("NST3:30", -210)] {
        let local = at + jiff::SignedDuration::from_mins(minutes);
        let expected = local.strftime("> one (%Y-%m-%d %H:%M)\n").to_string();
        let text = shown(zone, &["sessions", "show"]);
        assert!(text.contains(&expected), "{zone}: {expected}: {text}");
    }
}
