//! Plan mode from outside: `posse requests` and a program that sends lines.

use std::process::Child;

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::requests::{id, question, started};
use crate::run::Talk;
use crate::team::{refused, succeed};

const PLANS: &str = r#"
[[rule]]
when.tool = "approved it"
reply = [{ tool = "Write", input = { file_path = "made", content = "x" } }]
[[rule]]
when.tool = "has not approved"
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Test.\n2. Build." } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It is done." }]
[[rule]]
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
"#;

fn planning(project: &Project) -> Child {
    let flags = ["--permission-mode", "plan", "--on-question", "wait"];
    started(project, &[&["-p", "build it"][..], &flags].concat())
}

// proves PM-03 (part: posse requests; killed)
#[test]
fn a_plan_is_sent_back_and_approved_from_another_terminal_after_its_process_was_killed() {
    let project = Project::new("plan-requests", PLANS);
    let mut child = planning(&project);
    let first = question(&project);
    assert_eq!(
        (&first["kind"], &first["tool"]),
        (&json!("plan"), &json!("ExitPlanMode"))
    );
    let shown = succeed(&project, &["requests", "show", id(&first)]);
    assert!(shown.contains("ExitPlanMode:\n  1. Build.\n"), "{shown}");
    let back = [
        "requests",
        "answer",
        id(&first),
        "deny",
        "-m",
        "Test first.",
    ];
    succeed(&project, &back);
    let second = loop {
        let second = question(&project);
        if id(&second) != id(&first) {
            break second;
        }
    };
    assert_eq!(second["input"]["plan"], "1. Test.\n2. Build.");
    child.kill().unwrap();
    child.wait().unwrap();
    let answer = |more: &[&'static str]| [&["requests", "answer", id(&second)][..], more].concat();
    let bypass = answer(&["allow", "--mode", "bypassPermissions"]);
    refused(&project, &bypass, 1, &["leave out --mode"]);
    refused(
        &project,
        &answer(&["deny", "--mode", "default"]),
        1,
        &["--mode and --edit"],
    );
    refused(
        &project,
        &answer(&["allow", "--edit", "none.md"]),
        1,
        &["none.md"],
    );
    std::fs::write(project.file("better.md"), "1. Only test.").unwrap();
    let told = succeed(
        &project,
        &answer(&["allow", "--mode", "acceptEdits", "--edit", "better.md"]),
    );
    assert!(told.contains("is not running"), "{told}");
    let session = second["agent"].as_str().unwrap();
    let output = project.run(&["-p", "--resume", session]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "It is done.\n");
    assert!(project.file("made").exists(), "mode acceptEdits");
    let said = succeed(&project, &["sessions", "show", session]);
    assert!(
        said.contains("Test first.") && said.contains("1. Only test."),
        "{said}"
    );
    let shown = succeed(&project, &["requests", "show", id(&second)]);
    let approved =
        "approved by a person, to continue in acceptEdits, with this plan:\n  1. Only test.";
    assert!(shown.contains(approved), "{shown}");
}

// proves PM-03 (part: lines of a program)
#[test]
fn a_program_approves_a_plan_with_edits_and_a_mode() {
    let project = Project::new("plan-lines", PLANS);
    let mut talk = Talk::start(&project, &["--permission-mode", "plan"]);
    talk.prompt("build it");
    let asked = talk.hear("control_request");
    let request = &asked["request"];
    assert_eq!(
        (&request["tool_name"], &request["input"]),
        (&json!("ExitPlanMode"), &json!({"plan": "1. Build."}))
    );
    let answer = json!({
        "behavior": "allow", "updatedInput": {"plan": "1. Only test."},
        "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
    });
    let response =
        json!({"subtype": "success", "request_id": asked["request_id"], "response": answer});
    talk.tell(&json!({"type": "control_response", "response": response}));
    let result = loop {
        let line = talk.hear("user");
        let content: &Value = &line["message"]["content"][0]["content"];
        if content.to_string().contains("edited your plan") {
            break content.to_string();
        }
    };
    assert!(
        result.contains("1. Only test.") && result.contains("acceptEdits"),
        "{result}"
    );
    assert_eq!(talk.hear("result")["result"], "It is done.");
    assert_eq!(talk.end(), Some(0));
    assert!(project.file("made").exists());
}

// proves PM-02 (part: nobody)
#[test]
fn with_nobody_there_a_run_in_plan_mode_ends_with_the_plan() {
    let project = Project::new("plan-nobody", PLANS);
    let output = project.run(&["-p", "build it", "--permission-mode", "plan"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "It is done.\n");
    assert!(!project.file("made").exists());
}
