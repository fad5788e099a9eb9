//! Hooks that prepare a workspace, and hooks of calls that rules deny.

use serde_json::{Value, json};

use super::files::{commands, hook, logged, logs};
use crate::binary::{Project, stderr, stdout};
use crate::definitions::write;
use crate::team::succeed;

const OF_USER: &str = "../home/.claude/settings.json";

/// What hooks have logged of an input.
fn parts(input: &Value) -> (&str, &str) {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let about = match text("trigger") {
        "" => text("source"),
        trigger => trigger,
    };
    (text("hook_event_name"), about)
}

// proves HK-01 (part: setup)
#[test]
fn a_workspace_is_prepared_before_the_session_starts() {
    let project = Project::new("hooks-setup", "");
    let hooks = json!({"hooks": {
        "Setup": [
            hook("init", &format!("echo export A=1 > \"$CLAUDE_ENV_FILE\"; {}", logs("../log"))),
            hook("maintenance", &logs("../log")),
        ],
        "SessionStart": [hook("", &logs("../log"))],
    }});
    write(&project, OF_USER, &hooks.to_string());
    for (flag, trigger) in [("--init", "init"), ("--maintenance", "maintenance")] {
        succeed(&project, &["-p", flag, "hello"]);
        let log = logged(&project, "../log");
        let told: Vec<_> = log.iter().map(parts).collect();
        assert_eq!(told, [("Setup", trigger), ("SessionStart", "startup")]);
        std::fs::remove_file(project.file("../log")).unwrap();
    }
    succeed(&project, &["-p", "hello"]);
    let log = logged(&project, "../log");
    let told: Vec<_> = log.iter().map(parts).collect();
    assert_eq!(told, [("SessionStart", "startup")]);
}

#[test]
fn a_flag_that_prepares_nothing_says_so() {
    let project = Project::new("hooks-no-setup", "");
    let output = project.run(&["-p", "--init", "what is this"]);
    let told = "there are no Setup hooks: --init and --maintenance have nothing to run";
    assert_eq!(stderr(&output).matches(told).count(), 1);
    assert_eq!(stdout(&output), "You said: what is this\n");
    let output = project.run(&["-p", "--init", "--maintenance", "hello"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be used with"));
}

// proves HK-01 (part: permissions)
#[test]
fn hooks_are_told_of_calls_that_rules_deny() {
    let again = r#"
[[rule]]
when.marker = "you may try the Bash call again that was denied"
reply = [{ text = "I may try again." }]
"#;
    let script = format!("{again}{}", commands(&["rm precious".to_owned()]));
    let project = Project::new("hooks-denied", &script);
    let own = json!({"hookEventName": "PermissionDenied", "retry": true});
    let says = format!("echo '{}'", json!({ "hookSpecificOutput": own }));
    let answers = format!("{}; {says}", logs("../log"));
    let hooks = |command: &str| json!({"hooks": {"PermissionDenied": [hook("Bash", command)]}});
    write(&project, "precious", "");
    write(&project, OF_USER, &hooks(&answers).to_string());
    let run = ["-p", "go", "--disallowedTools", "Bash(rm *)"];
    assert_eq!(succeed(&project, &run), "I may try again.\n");
    let log = logged(&project, "../log");
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(log[0]["hook_event_name"], "PermissionDenied");
    assert_eq!(log[0]["tool_name"], "Bash");
    assert_eq!(log[0]["tool_input"]["command"], "rm precious");
    assert!(log[0]["tool_use_id"].is_string());
    let reason = log[0]["reason"].as_str().unwrap();
    assert!(reason.contains("Bash(rm *)"), "{reason}");
    assert!(project.file("precious").exists());
    write(&project, OF_USER, &hooks(&logs("../log")).to_string());
    assert_eq!(succeed(&project, &run), "Done.\n");
    assert_eq!(logged(&project, "../log").len(), 2);
}
