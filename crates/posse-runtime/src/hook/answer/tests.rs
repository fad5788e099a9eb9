//! Answers by event, exit code and output.

use serde_json::json;

use super::*;
use crate::hook::tests::hook;
use crate::hook::{OnFailure, RunsBeside};

/// Returns what a program has said that ended with this code.
fn said(code: i32, output: &str, errors: &str) -> HookReturn {
    HookReturn {
        output: output.into(),
        errors: errors.into(),
        code: Some(code),
        ..HookReturn::default()
    }
}

fn of(event: HookEvent, returned: &HookReturn) -> Answer {
    interpret(&hook(event), returned)
}

fn denied(answer: &Answer) -> Option<&str> {
    match &answer.decision {
        Some(HookDecision::Deny(why)) => Some(why),
        _ => None,
    }
}

#[test]
fn exit_code_2_refuses_where_something_can_be_refused() {
    for event in HookEvent::ALL {
        let answer = of(event, &said(2, "", "no\n"));
        match event.veto() {
            Veto::Prevents | Veto::TellsModel => assert_eq!(denied(&answer), Some("no"), "{event}"),
            Veto::TellsPerson => {
                assert_eq!(
                    (answer.decision, answer.message.as_deref()),
                    (None, Some("no"))
                );
            }
            Veto::Ignored => assert_eq!((answer.decision, answer.message), (None, None)),
        }
        assert_eq!(answer.failure, None, "{event}");
    }
}

#[test]
fn exit_code_2_refuses_whatever_the_json_says() {
    let allow = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "additionalContext": "c",
    }});
    let answer = of(
        HookEvent::PreToolUse,
        &said(2, &allow.to_string(), "errors"),
    );
    assert_eq!(denied(&answer), Some("errors"));
    assert_eq!(answer.context.as_deref(), Some("c"));
    let deny = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "reason",
    }});
    let answer = of(HookEvent::PreToolUse, &said(2, &deny.to_string(), ""));
    assert_eq!(denied(&answer), Some("reason"));
    let broken = of(
        HookEvent::PreToolUse,
        &said(2, r#"{"decision": 7}"#, "errors"),
    );
    assert_eq!((denied(&broken), &broken.failure), (Some("errors"), &None));
}

#[test]
fn of_other_codes_the_json_decides_and_without_any_the_hook_has_failed() {
    let deny = r#"{"decision": "block", "reason": "because"}"#;
    for code in [0, 1, 3] {
        let answer = of(HookEvent::PreToolUse, &said(code, deny, "ignored"));
        assert_eq!(
            (denied(&answer), &answer.failure),
            (Some("because"), &None),
            "{code}"
        );
    }
    for (code, output, errors, failure) in [
        (0, "", "", None),
        (0, "some text", "", None),
        (1, "", "", Some("exit code 1")),
        (
            127,
            "some text",
            "not found\n",
            Some("exit code 127: not found"),
        ),
        (
            0,
            r#"{"decision": "maybe"}"#,
            "",
            Some("`decision` is `maybe`, not block or approve"),
        ),
        (
            0,
            r#"{"continue": "no"}"#,
            "",
            Some("`continue` is not true or false"),
        ),
        (
            0,
            r#"{"hookSpecificOutput": []}"#,
            "",
            Some("`hookSpecificOutput` is not an object"),
        ),
        (0, r#"{"decision": "#, "", Some("it printed broken JSON")),
        (0, "[1]", "", None),
    ] {
        let answer = of(HookEvent::PreToolUse, &said(code, output, errors));
        let told = answer.failure.clone().unwrap_or_default();
        assert_eq!(
            answer.failure.is_some(),
            failure.is_some(),
            "{output}: {told}"
        );
        assert!(told.contains(failure.unwrap_or_default()), "{told}");
        assert_eq!(answer.decision, None);
    }
}

#[test]
fn text_is_context_at_some_events_only() {
    for event in HookEvent::ALL {
        let answer = of(event, &said(0, "  plain\ntext\n", ""));
        let expected = match event {
            HookEvent::SessionStart
            | HookEvent::UserPromptSubmit
            | HookEvent::UserPromptExpansion => Some("plain\ntext"),
            _ => None,
        };
        assert_eq!(answer.context.as_deref(), expected, "{event}");
        let worktree = (event == HookEvent::WorktreeCreate).then(|| PathBuf::from("text"));
        assert_eq!(answer.more.worktree, worktree, "{event}");
    }
    let failed = of(HookEvent::SessionStart, &said(1, "text", ""));
    assert_eq!(
        (failed.context, failed.failure.as_deref()),
        (None, Some("exit code 1"))
    );
    let failed = of(HookEvent::WorktreeCreate, &said(1, "/t", "no room"));
    assert_eq!(failed.failure.as_deref(), Some("exit code 1: no room"));
}

#[test]
fn a_call_is_decided_about_in_new_words_and_in_old_ones() {
    let pre = |own: Value| {
        let output = json!({ "hookSpecificOutput": own });
        of(HookEvent::PreToolUse, &said(0, &output.to_string(), ""))
    };
    let reason = || "r".to_owned();
    for (word, expected) in [
        ("allow", HookDecision::Allow),
        ("ask", HookDecision::Ask(reason())),
        ("defer", HookDecision::Defer(reason())),
        ("deny", HookDecision::Deny(reason())),
    ] {
        let answer = pre(json!({
            "hookEventName": "PreToolUse", "permissionDecision": word,
            "permissionDecisionReason": "r", "updatedInput": {"command": "x"},
        }));
        assert_eq!((answer.decision, answer.failure), (Some(expected), None));
        assert_eq!(answer.input.unwrap().get(), r#"{"command":"x"}"#);
    }
    let approve = of(
        HookEvent::PreToolUse,
        &said(0, r#"{"decision": "approve"}"#, ""),
    );
    assert_eq!(approve.decision, Some(HookDecision::Allow));
    for wrong in [
        json!({"permissionDecision": "perhaps"}),
        json!({"updatedInput": "ls"}),
        json!({"hookEventName": "PostToolUse"}),
    ] {
        let answer = pre(wrong.clone());
        assert!(
            answer.failure.is_some() && answer.decision.is_none(),
            "{wrong}"
        );
    }
}

#[test]
fn what_a_person_would_be_asked_is_answered() {
    let request = |decision: Value| {
        let own = json!({"hookEventName": "PermissionRequest", "decision": decision});
        let output = json!({ "hookSpecificOutput": own }).to_string();
        of(HookEvent::PermissionRequest, &said(0, &output, ""))
    };
    let rules = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
    let answer = request(json!({
        "behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": rules,
    }));
    assert_eq!(answer.decision, Some(HookDecision::Allow));
    assert_eq!(answer.more.permissions, *rules.as_array().unwrap());
    assert!(answer.input.is_some());
    let answer = request(json!({"behavior": "deny", "message": "m", "interrupt": true}));
    assert_eq!((denied(&answer), answer.more.interrupts), (Some("m"), true));
    assert!(request(json!({"behavior": "later"})).failure.is_some());
    // Exit code 2 is no answer to it.
    assert_eq!(
        of(HookEvent::PermissionRequest, &said(2, "", "e")).decision,
        None
    );
}

#[test]
fn a_run_is_ended_and_people_are_told() {
    let output = r#"{"continue": false, "stopReason": "enough", "systemMessage": "look"}"#;
    for event in HookEvent::ALL {
        let answer = of(event, &said(0, output, ""));
        assert_eq!(answer.ends_run.as_deref(), Some("enough"), "{event}");
        assert_eq!(answer.message.as_deref(), Some("look"), "{event}");
    }
}

#[test]
fn parts_of_single_events_are_read() {
    let own = |event: HookEvent, own: Value| {
        let output = json!({ "hookSpecificOutput": own }).to_string();
        of(event, &said(0, &output, ""))
    };
    let answer = own(
        HookEvent::PostToolUse,
        json!({"updatedToolOutput": {"stdout": "x"}}),
    );
    assert_eq!(answer.more.output, Some(json!({"stdout": "x"})));
    let answer = own(HookEvent::PostToolUse, json!({"updatedMCPToolOutput": "x"}));
    assert_eq!(answer.more.output, Some(json!("x")));
    assert!(
        own(HookEvent::PermissionDenied, json!({"retry": true}))
            .more
            .retry
    );
    let start = json!({"initialUserMessage": "go", "watchPaths": [".env"]});
    let answer = own(HookEvent::SessionStart, start);
    assert_eq!(answer.more.first_prompt.as_deref(), Some("go"));
    assert_eq!(answer.more.watch, [PathBuf::from(".env")]);
    let prompt = json!({"suppressOriginalPrompt": true, "additionalContext": "c"});
    let answer = own(HookEvent::UserPromptSubmit, prompt);
    assert!(answer.more.hides_prompt && answer.context.as_deref() == Some("c"));
    let answer = own(HookEvent::MessageDisplay, json!({"displayContent": "d"}));
    assert_eq!(answer.more.display.as_deref(), Some("d"));
    let answer = own(HookEvent::WorktreeCreate, json!({"worktreePath": "/t"}));
    assert_eq!(answer.more.worktree, Some("/t".into()));
    assert!(
        own(HookEvent::SessionStart, json!({"watchPaths": [1]}))
            .failure
            .is_some()
    );
}

// proves HK-08 (part: onFailure)
#[test]
fn a_failure_is_a_refusal_if_the_hook_says_so() {
    use posse_port::hooks::HookFailure;
    let strict = |event| Hook {
        on_failure: OnFailure::Block,
        ..hook(event)
    };
    let failures = [
        said(1, "", "broken"),
        said(127, "", ""),
        said(0, r#"{"decision": 1}"#, ""),
        HookReturn {
            failure: Some(HookFailure::NotRun("no such program".into())),
            ..HookReturn::default()
        },
        HookReturn {
            failure: Some(HookFailure::TimedOut(std::time::Duration::from_secs(1))),
            ..HookReturn::default()
        },
    ];
    for failed in &failures {
        let lenient = of(HookEvent::PreToolUse, failed);
        assert!(lenient.failure.is_some() && lenient.decision.is_none());
        let answer = interpret(&strict(HookEvent::PreToolUse), failed);
        assert!(
            denied(&answer).unwrap().contains("onFailure: block"),
            "{answer:?}"
        );
        // It would hold back for ever.
        for event in [
            HookEvent::Stop,
            HookEvent::SubagentStop,
            HookEvent::TaskCompleted,
            HookEvent::TeammateIdle,
        ] {
            assert_eq!(interpret(&strict(event), failed).decision, None, "{event}");
        }
        let beside = Hook {
            beside: RunsBeside::Async,
            ..strict(HookEvent::PreToolUse)
        };
        assert_eq!(interpret(&beside, failed).decision, None);
    }
    assert_eq!(
        interpret(&strict(HookEvent::PreToolUse), &said(0, "", "")).decision,
        None
    );
}

// proves HK-08 (part: onFailure)
#[test]
fn a_guard_that_allows_and_then_fails_refuses() {
    let strict = Hook {
        on_failure: OnFailure::Block,
        ..hook(HookEvent::PreToolUse)
    };
    let allow = r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#;
    let failed = said(1, allow, "HOOK");
    let answer = interpret(&strict, &failed);
    assert!(denied(&answer).unwrap().contains("HOOK"), "{answer:?}");
    let lenient = of(HookEvent::PreToolUse, &failed);
    assert_eq!(lenient.decision, Some(HookDecision::Allow));
    let deny = said(1, r#"{"decision": "block", "reason": "r"}"#, "");
    assert_eq!(denied(&interpret(&strict, &deny)), Some("r"));
}

#[test]
fn a_server_says_json_or_nothing() {
    let mut server = hook(HookEvent::PreToolUse);
    server.action = HookAction::Http {
        url: "http://localhost".into(),
        headers: Vec::new(),
        variables: Vec::new(),
    };
    assert_eq!(interpret(&server, &said(0, "", "")), Answer::default());
    assert!(interpret(&server, &said(0, "hello", "")).failure.is_some());
    let deny = r#"{"decision": "block", "reason": "r"}"#;
    assert_eq!(denied(&interpret(&server, &said(0, deny, ""))), Some("r"));
}

#[test]
fn a_model_says_whether_it_holds_and_why_not() {
    let asks = |event, continues| Hook {
        action: HookAction::Prompt {
            prompt: "Is it fine?".into(),
            model: None,
            continues,
        },
        ..hook(event)
    };
    let answered = |event, continues, text: &str| {
        let answer = interpret(&asks(event, continues), &said(0, text, ""));
        assert_eq!(answer.failure, None, "{text}");
        answer
    };
    let no = "```json\n{\"ok\": false, \"reason\": \"no tests\"}\n```";
    let yes = answered(HookEvent::PreToolUse, false, r#"{"ok": true}"#);
    assert_eq!(yes, Answer::default());
    // The run ends with a call that is refused, unless the hook lets it go on.
    let answer = answered(HookEvent::PreToolUse, false, no);
    assert_eq!(denied(&answer), Some("no tests"));
    assert_eq!(answer.ends_run.as_deref(), Some("no tests"));
    let answer = answered(HookEvent::PreToolUse, true, no);
    assert_eq!(
        (denied(&answer), &answer.ends_run),
        (Some("no tests"), &None)
    );
    // At its end the agent goes on, unless that is of no use.
    let answer = answered(HookEvent::Stop, false, no);
    assert_eq!(
        (denied(&answer), &answer.ends_run),
        (Some("no tests"), &None)
    );
    let never = r#"{"ok": false, "reason": "no network", "impossible": true}"#;
    let answer = answered(HookEvent::Stop, false, never);
    assert_eq!(answer.decision, None);
    assert_eq!(answer.message.as_deref(), Some("no network"));
    for broken in ["fine", "{}", r#"{"ok": "yes"}"#, "{\"ok\": true"] {
        let answer = interpret(&asks(HookEvent::Stop, true), &said(0, broken, ""));
        assert!(
            answer.failure.is_some() && answer.decision.is_none(),
            "{broken}"
        );
    }
}
