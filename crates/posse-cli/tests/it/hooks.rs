//! Hooks as files declare them: what `posse hooks` says, what a run says, and what trust does.

mod ecosystem;
mod everywhere;
mod files;
mod handlers;
mod killed;
mod life;
mod misbehaving;
mod models;
mod recipes;
mod scene;
mod seen;
mod setup;
mod table;
mod worktrees;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::definitions::{project, write};
use crate::trust::untrusted;

const SETTINGS: &str = ".claude/settings.json";

/// Settings with a guard of Bash.
fn guard(command: &str) -> String {
    let hook = json!({"type": "command", "command": command});
    json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}).to_string()
}

/// Writes a program.
fn program(project: &Project, file: &str, text: &str) {
    write(project, file, text);
    fs::set_permissions(project.file(file), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The number of processes that calls and hooks of a posse with this home have started.
pub(crate) fn living(home: &Path) -> usize {
    let home = format!("POSSE_HOME={}", home.display());
    let is_started = |process: &fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let has = |is_meant: &dyn Fn(&[u8]) -> bool| {
            let mut entries = environment.split(|byte| *byte == 0);
            entries.any(is_meant)
        };
        has(&|it| it == home.as_bytes()) && has(&|it| it.starts_with(b"POSSE_CALL="))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(is_started).count()
}

fn objects(output: &Output) -> Vec<Value> {
    let lines = stdout(output);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The hooks that are listed, in a line each: event, matcher, kind, state, file with line, title.
fn listed(output: &Output) -> Vec<String> {
    let word = |hook: &Value, key: &str| hook[key].as_str().unwrap_or_default().to_owned();
    let line = |hook: &Value| {
        let file = word(hook, "file");
        let file = file.rsplit('/').next().unwrap_or_default().to_owned();
        let words = ["event", "matcher", "type", "state", "what"].map(|key| word(hook, key));
        format!("{} {file}:{}", words.join(" "), hook["line"])
    };
    objects(output).iter().map(line).collect()
}

fn list(project: &Project) -> Vec<String> {
    listed(&project.run(&["hooks", "list", "--json"]))
}

#[test]
fn hooks_of_all_files_are_listed_in_the_order_in_which_they_count() {
    let project = project("hooks-list", "");
    write(
        &project,
        SETTINGS,
        "{\n  // ours\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash|Edit\", \"hooks\": [\n        \
         {\"type\": \"command\", \"command\": \"true\"},\n        {\"type\": \"http\", \"url\": \"http://127.0.0.1:9/x\"}\n      ]}\n    ]\n  }\n}\n",
    );
    write(&project, "../home/.claude/settings.json", &guard("echo"));
    write(&project, "../more.json", &guard("cd /"));
    let front = |event: &str| {
        format!(
            "---\nname: a\ndescription: d\nhooks:\n  {event}:\n    - hooks:\n        - type: command\n          command: echo {event}\n---\nWork.\n"
        )
    };
    write(&project, ".claude/agents/a.md", &front("Stop"));
    write(&project, ".claude/skills/s/SKILL.md", &front("PostToolUse"));
    let all = listed(&project.run(&["hooks", "list", "--json", "--settings", "../more.json"]));
    assert_eq!(
        all,
        [
            "PreToolUse Bash command active echo settings.json:1",
            "PreToolUse Bash|Edit command active true settings.json:6",
            "PreToolUse Bash|Edit http active http://127.0.0.1:9/x settings.json:7",
            "PreToolUse Bash command active cd / more.json:1",
            "PostToolUse * command active echo PostToolUse SKILL.md:7",
            "SubagentStop * command active echo Stop a.md:7",
        ]
    );
    let table = stdout(&project.run(&["hooks", "list"]));
    assert!(table.contains("settings.json:6"), "{table}");
}

// proves HK-01 (part: unknown ones)
// proves HK-08 (part: missing programs; reported)
#[test]
fn what_is_wrong_is_told_by_check_by_a_run_and_by_doctor() {
    let project = project("hooks-check", "");
    program(&project, "fine.sh", "#!/bin/sh\n");
    write(&project, "plain.sh", "#!/bin/sh\n");
    write(
        &project,
        SETTINGS,
        r#"{"hooks": {
  "PreToolUs": [{"hooks": []}],
  "PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/fine.sh", "timout": 3},
    {"type": "command", "command": "./plain.sh --now"},
    {"type": "command", "command": "A=1 no-such-program | cat"},
    {"type": "command", "command": "${CLAUDE_PROJECT_DIR}/gone", "args": ["x"]},
    {"type": "mcp_tool", "server": "s", "tol": "t"}
  ]}]
}}"#,
    );
    let root = project.file("").canonicalize().unwrap();
    let root = root.display();
    let expected = [
        "2: `PreToolUs` is not a hook event (did you mean `PreToolUse`?)".to_owned(),
        "4: `timout` is not known and ignored (did you mean `timeout`?)".to_owned(),
        format!("5: this PreToolUse hook cannot run: {root}/plain.sh is not executable"),
        "6: this PreToolUse hook cannot run: there is no program `no-such-program` in PATH"
            .to_owned(),
        format!("7: this PreToolUse hook cannot run: {root}/gone does not exist"),
        "8: `tol` is not known and ignored (did you mean `tool`?)".to_owned(),
        "8: `tool` is missing".to_owned(),
    ];
    let output = project.run(&["hooks", "check"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stdout(&output);
    let lines: Vec<&str> = told.lines().collect();
    let whole: Vec<String> = expected
        .iter()
        .map(|line| format!("{SETTINGS}:{line}"))
        .collect();
    assert_eq!(lines, whole);
    let run = stderr(&project.run(&["-p", "hello"]));
    let doctor = stdout(&project.run(&["doctor"]));
    for line in &expected {
        let line = format!("settings.json:{line}");
        assert_eq!(run.matches(&line).count(), 1, "{line}: {run}");
        assert_eq!(doctor.matches(&line).count(), 1, "{line}: {doctor}");
    }
    write(&project, SETTINGS, &guard("./fine.sh"));
    let output = project.run(&["hooks", "check"]);
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn all_hooks_can_be_switched_off_but_not_by_a_repository() {
    let project = project("hooks-off", "");
    write(&project, "../home/.claude/settings.json", &guard("true"));
    let off = r#"{"disableAllHooks": true}"#;
    write(&project, SETTINGS, off);
    assert_eq!(list(&project).len(), 1);
    let run = stderr(&project.run(&["-p", "hello"]));
    assert!(run.contains("ignored: 1 disableAllHooks in"), "{run}");
    let output = project.run(&["hooks", "list", "--json", "--settings", off]);
    assert_eq!(stdout(&output), "");
}

// proves HK-12 (part: hooks; content)
#[test]
fn hooks_of_a_repository_wait_until_the_person_has_accepted_them() {
    let project = project("hooks-trust", "");
    write(&project, SETTINGS, &guard("true"));
    write(&project, "../home/.claude/settings.json", &guard("echo"));
    let states = || {
        let output = untrusted(&project, &["hooks", "list", "--json"])
            .output()
            .unwrap();
        let hooks = objects(&output);
        let state = |hook: &Value| format!("{} {}", hook["what"], hook["state"]).replace('"', "");
        hooks.iter().map(state).collect::<Vec<_>>()
    };
    let trust = || {
        let output = untrusted(&project, &["trust", "--yes"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    assert_eq!(states(), ["echo active", "true waits"]);
    let output = untrusted(&project, &["hooks", "try", "PreToolUse", "--json"])
        .output()
        .unwrap();
    let waits = objects(&output)[0]["waits"].to_string();
    assert!(
        waits.contains("you have not accepted them as they are now"),
        "{waits}"
    );
    let run = stderr(&untrusted(&project, &["-p", "hello"]).output().unwrap());
    assert!(run.contains("not trusted: 1 settings file of"), "{run}");
    trust();
    assert_eq!(states(), ["echo active", "true active"]);
    write(&project, SETTINGS, &guard("false"));
    assert_eq!(states(), ["echo active", "false waits"]);
    let run = stderr(&untrusted(&project, &["-p", "hello"]).output().unwrap());
    assert!(run.contains("settings.json: its hooks do not run"), "{run}");
    trust();
    assert_eq!(states(), ["echo active", "false active"]);
}

#[test]
fn an_event_that_does_not_exist_cannot_be_tried() {
    let project = project("hooks-try", "");
    let output = project.run(&["hooks", "try", "PreToolUs"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("did you mean PreToolUse?"), "{said}");
    let output = project.run(&["hooks", "try", "Stop", "--json"]);
    let tried = &objects(&output)[0];
    assert_eq!(tried["hooks"], json!([]));
    assert_eq!(tried["input"]["hook_event_name"], "Stop");
    assert_eq!(tried["input"]["stop_hook_active"], false);
}
