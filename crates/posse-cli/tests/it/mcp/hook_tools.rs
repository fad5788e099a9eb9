//! Hooks that call tools of servers.

use serde_json::{Value, json};

use super::project;
use super::served::{flag, logged, told};
use crate::binary::Project;
use crate::definitions::write;

const TOUCHES: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "{{tool}}" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch made" } }]
"#;

/// Runs a call of Bash that a tool of this server decides about, and returns what the model said.
fn guarded(project: &Project, hook: &Value) -> String {
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] } });
    write(project, "../home/hooks.json", &hooks.to_string());
    let file = project.file("../home/hooks.json");
    let flag = flag(project, &[]);
    let settings = [
        "--mcp-config",
        &flag,
        "--settings",
        file.to_str().unwrap(),
        "go",
    ];
    let told = told(project, &settings);
    told.last().unwrap()["result"].as_str().unwrap().to_owned()
}

// proves HK-15 (part: called)
#[test]
fn a_tool_of_a_server_decides_about_a_call() {
    let project = project("mcp-hook", TOUCHES);
    let says = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "never ${tool_input.command}"}}"#;
    let input = json!({ "message": says });
    let hook = json!({ "type": "mcp_tool", "server": "calc", "tool": "echo", "input": input });
    let said = guarded(&project, &hook);
    assert!(said.contains("never touch made"), "{said}");
    assert!(!project.file("made").exists());
    let calls = logged(&project, "call");
    assert_eq!(calls.len(), 1, "{calls:?}");
    let message = calls[0]["arguments"]["message"].as_str().unwrap();
    assert!(message.contains("\"never touch made\""), "{message}");
}

// proves HK-15 (part: not there)
#[test]
fn a_hook_whose_server_is_not_there_refuses_if_it_must() {
    for (on_failure, is_made) in [("block", false), ("continue", true)] {
        let project = project(&format!("mcp-hook-{on_failure}"), TOUCHES);
        let hook = json!({
            "type": "mcp_tool", "server": "other", "tool": "echo", "onFailure": on_failure,
        });
        let said = guarded(&project, &hook);
        assert_eq!(project.file("made").exists(), is_made, "{said}");
        if !is_made {
            assert!(said.contains("there is no MCP server other here"), "{said}");
        }
        assert!(logged(&project, "call").is_empty());
    }
}
