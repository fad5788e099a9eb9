//! Hooks that ask a model: what they are asked, what follows, and who pays.

use serde_json::{Value, json};

use super::{SETTINGS, objects};
use crate::binary::{Project, stderr, stdout};
use crate::definitions::{project, write};

/// A call, and an answer to what hooks ask.
const SCRIPT: &str = r#"
[[rule]]
when = { user = "CHECK-STOP" }
times = 1
reply = [{ text = '{"ok": false, "reason": "MORE-TESTS"}' }]
[[rule]]
when = { user = "CHECK-STOP" }
reply = [{ text = '{"ok": true}' }]
[[rule]]
when = { user = "CHECK-NO" }
reply = [{ text = 'It is not: {"ok": false, "reason": "BAD-IDEA"}' }]
[[rule]]
when = { user = "CHECK-YES" }
reply = [{ text = '{"ok": true}' }]
[[rule]]
when = { user = "CHECK-FILES", tool = "SECRET-WORD" }
reply = [{ text = '{"ok": false, "reason": "the file says SECRET-WORD"}' }]
[[rule]]
when = { user = "CHECK-FILES" }
reply = [{ tool = "Bash", input = { command = "cat notes.txt" } }]
[[rule]]
when = { user = "MORE-TESTS" }
reply = [{ text = "more tests are there" }]
[[rule]]
when = { tool = "re:." }
reply = [{ text = "all done" }]
[[rule]]
when = { user = "go" }
reply = [{ tool = "Bash", input = { command = "touch ran" } }]
"#;

fn with_hook(name: &str, event: &str, hook: &Value) -> Project {
    let project = project(name, SCRIPT);
    let settings = json!({"hooks": {event: [{"hooks": [hook]}]}});
    write(&project, SETTINGS, &settings.to_string());
    project
}

fn run(project: &Project) -> (Option<i32>, Value, String) {
    let flags = ["-p", "go", "--output-format", "stream-json", "--verbose"];
    let output = project.run(&[&flags[..], &["--permission-mode", "bypassPermissions"]].concat());
    let result = objects(&output).pop().unwrap();
    (output.status.code(), result, stderr(&output))
}

/// The requests that the model has got.
pub(super) fn requests(project: &Project) -> Vec<Value> {
    project.requests()
}

fn with(requests: &[Value], word: &str) -> Vec<Value> {
    let has = |request: &&Value| request.to_string().contains(word);
    requests.iter().filter(has).cloned().collect()
}

// proves HK-11 (part: budget)
#[test]
fn a_question_is_asked_of_a_small_model_and_paid_for_by_the_agent() {
    let hook = json!({"type": "prompt", "prompt": "CHECK-YES $ARGUMENTS"});
    let project = with_hook("hooks-prompt-yes", "PreToolUse", &hook);
    let (code, result, errors) = run(&project);
    assert_eq!(
        (code, &result["result"]),
        (Some(0), &json!("all done")),
        "{errors}"
    );
    assert!(project.file("ran").exists());
    let asked = with(&requests(&project), "CHECK-YES");
    assert_eq!(asked.len(), 1);
    let asked = asked[0].to_string();
    assert!(
        asked.contains("touch ran") && asked.contains("PreToolUse"),
        "{asked}"
    );
    assert!(asked.contains("haiku"), "{asked}");
    // Three calls: two of the agent's own, and that of the hook.
    let costs = stdout(&project.run(&["cost", "--json"]));
    assert!(costs.contains("\"hook\""), "{costs}");
    let used = &result["modelUsage"];
    assert_eq!(used.as_object().unwrap().len(), 2, "{used}");
}

#[test]
fn a_refusal_ends_the_run_or_is_told_as_the_hook_wants() {
    let hook = json!({"type": "prompt", "prompt": "CHECK-NO"});
    let project = with_hook("hooks-prompt-no", "PreToolUse", &hook);
    let (code, result, errors) = run(&project);
    assert!(!project.file("ran").exists());
    assert_eq!(
        (code, &result["terminal_reason"]),
        (Some(3), &json!("hook"))
    );
    assert!(errors.contains("BAD-IDEA"), "{errors}");
    let hook = json!({"type": "prompt", "prompt": "CHECK-NO", "continueOnBlock": true});
    let project = with_hook("hooks-prompt-told", "PreToolUse", &hook);
    let (code, result, errors) = run(&project);
    assert_eq!(
        (code, &result["result"]),
        (Some(0), &json!("all done")),
        "{errors}"
    );
    assert!(!project.file("ran").exists());
    let told = with(&requests(&project), "BAD-IDEA");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn at_the_end_of_a_turn_the_question_continues_the_conversation() {
    let hook = json!({"type": "prompt", "prompt": "CHECK-STOP"});
    let project = with_hook("hooks-prompt-stop", "Stop", &hook);
    let (code, result, errors) = run(&project);
    let end = json!("more tests are there");
    assert_eq!((code, &result["result"]), (Some(0), &end), "{errors}");
    let all = requests(&project);
    let asked = with(&all, "CHECK-STOP");
    assert_eq!(asked.len(), 2);
    // The agent's own model, system prompt and tools: what it has said is cached.
    for field in ["model", "system", "tools"] {
        let own = &all[0]["body"][field];
        assert!(!own.is_null());
        assert_eq!(&asked[0]["body"][field], own, "{field}");
    }
    assert!(asked[0].to_string().contains("touch ran"));
    // Nothing of it is in the conversation.
    let last = with(&all, "MORE-TESTS").len();
    assert_eq!(last, 2, "told once, and seen by the second question");
}

// proves HK-11 (part: budget)
#[test]
fn a_question_that_the_budget_does_not_allow_is_not_asked() {
    let hook = json!({"type": "prompt", "prompt": "CHECK-NO", "model": "opus"});
    let project = with_hook("hooks-prompt-budget", "PreToolUse", &hook);
    let flags = ["-p", "go", "--max-budget-usd", "0.0000001"];
    let output = project.run(&flags);
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(with(&requests(&project), "CHECK-NO").len(), 0);
}

#[test]
fn an_agent_hook_looks_at_files_first() {
    let hook = json!({"type": "agent", "prompt": "CHECK-FILES"});
    let project = with_hook("hooks-agent", "PreToolUse", &hook);
    write(&project, "notes.txt", "SECRET-WORD\n");
    let (code, result, errors) = run(&project);
    assert_eq!(
        (code, &result["result"]),
        (Some(0), &json!("all done")),
        "{errors}"
    );
    assert!(!project.file("ran").exists());
    let asked = with(&requests(&project), "CHECK-FILES");
    assert_eq!(asked.len(), 2, "one that looks, one that answers");
    let told = with(&requests(&project), "the file says SECRET-WORD");
    assert_eq!(told.len(), 1);
}
