//! `posse sessions`, and going on with one.

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};

fn told(project: &Project, arguments: &[&str]) -> Value {
    let output = project.run(&[arguments, &["--output-format", "json"]].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

// proves TR-04 (open: another machine)
#[test]
fn a_session_goes_on_in_another_process() {
    let project = Project::new("sessions-resume", "");
    let first = told(&project, &["-p", "one"]);
    let id = first["session_id"].as_str().unwrap();
    assert_eq!(told(&project, &["-p", "--continue", "two"])["session_id"], id);
    assert_eq!(told(&project, &["-p", "--resume", &id[..30], "three"])["session_id"], id);
    let fork = told(&project, &["-p", "--resume", id, "--fork-session", "four"]);
    let copy = fork["session_id"].as_str().unwrap();
    assert_ne!(copy, id);

    let list = stdout(&project.run(&["sessions", "list", "--json"]));
    let ids: Vec<Value> =
        list.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["session_id"].clone()).collect();
    assert_eq!(ids, [copy, id], "the one used last first");
    let table = stdout(&project.run(&["sessions", "list"]));
    assert!(table.contains("idle") && table.contains(" one\n"), "{table}");

    let shown = stdout(&project.run(&["sessions", "show", copy]));
    for words in ["> one", "You said: one", "> four", "You said: four"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let exported = stdout(&project.run(&["sessions", "export", id]));
    let kinds: Vec<String> = exported
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["prompt", "reply", "prompt", "reply", "prompt", "reply"], "the fork left it alone");
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
        assert!(said.contains(what) && said.contains(hint), "{arguments:?}: {said}");
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{arguments:?}");
    };
    check(&["-p", "--continue", "x"], "no session of", "sessions list --all");
    check(&["-p", "--resume", "abc", "x"], "no session abc", "sessions list --all");
    let id = told(&project, &["-p", "one"])["session_id"].as_str().unwrap().to_owned();
    check(&["-p", "--resume", &id], "nothing left to do", "tell it something");
    check(&["-p", "--resume", &id, "--model", "other", "x"], "held with claude-opus-5-5", "keeps its model");
    check(
        &["-p", "--resume", &id, "--system-prompt", "y", "x"],
        "system prompt it began with",
        "new session",
    );
    check(&["sessions", "show", "abc"], "no session abc", "sessions list --all");
    told(&project, &["-p", "two"]);
    check(&["-p", "--resume", &id[..2], "x"], "several sessions", &id);
}
