//! Files with hooks, and what is wrong in them.

use serde_json::json;

use super::*;

fn file(layer: HookLayer) -> HookFile {
    HookFile {
        layer,
        path: "/w/.claude/settings.json".into(),
        of_repository: layer == HookLayer::Project,
        source: Source {
            name: "settings.json".into(),
            root: "/w".into(),
            cwd: "/w".into(),
            home: None,
        },
    }
}

fn read_user(hooks: Value) -> ReadHooks {
    read(&hooks, &file(HookLayer::User))
}

/// Returns the problems with their places, in words.
fn told(hooks: Value) -> Vec<String> {
    let in_words = |problem: FileProblem| {
        let steps = problem.path.iter().map(|step| match step {
            PathStep::Key(key) => key.clone(),
            PathStep::Index(index) => index.to_string(),
        });
        format!("{}: {}", steps.collect::<Vec<_>>().join("."), problem.what)
    };
    read_user(hooks)
        .problems
        .into_iter()
        .map(in_words)
        .collect()
}

#[test]
fn hooks_are_read_with_all_that_they_say() {
    let read = read_user(json!({
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [
                {"type": "command", "command": "./guard", "timeout": 2.5, "onFailure": "block",
                 "if": "Bash(git push *)", "statusMessage": "guarding"},
                {"type": "command", "command": "node", "args": ["${CLAUDE_PROJECT_DIR}/a.js"],
                 "async": true},
            ]},
            {"hooks": [{"type": "http", "url": "https://h/x", "headers": {"A": "$T"},
                        "allowedEnvVars": ["T"]}]},
        ],
        "Stop": [{"hooks": [
            {"type": "prompt", "prompt": "done? $ARGUMENTS", "model": "haiku",
             "continueOnBlock": true},
            {"type": "agent", "prompt": "check"},
            {"type": "command", "command": "p", "persistent": true, "shell": "bash",
             "asyncRewake": true},
        ]}],
    }));
    assert_eq!(read.problems, []);
    let hooks: Vec<&Hook> = read.hooks.iter().map(|(hook, _)| hook).collect();
    let titles: Vec<String> = hooks.iter().map(|hook| hook.title()).collect();
    let expected = [
        "./guard",
        "node ${CLAUDE_PROJECT_DIR}/a.js",
        "https://h/x",
        "prompt: done? $ARGUMENTS",
        "agent: check",
        "p",
    ];
    assert_eq!(titles, expected);
    let guard = hooks[0];
    assert_eq!(guard.limit(), Duration::from_millis(2500));
    assert!(guard.blocks_on_failure() && matches!(guard.condition, Condition::Calls(_)));
    assert_eq!(guard.status_message.as_deref(), Some("guarding"));
    assert_eq!(
        (hooks[1].beside, hooks[5].beside),
        (RunsBeside::Async, RunsBeside::Rewakes)
    );
    let limits = [600, 600, 600, 30, 60, 600].map(Duration::from_secs);
    assert_eq!(
        hooks[1..]
            .iter()
            .map(|hook| hook.limit())
            .collect::<Vec<_>>(),
        limits[1..]
    );
    assert!(matches!(
        &hooks[5].action,
        HookAction::Program {
            persistent: true,
            ..
        }
    ));
}

// proves HK-01 (part: unknown ones)
#[test]
fn what_is_unknown_is_told_with_its_place_and_the_rest_counts() {
    let hooks = json!({
        "PreToolUs": [{"hooks": []}],
        "PreToolUse": [
            {"matchr": "Bash", "hooks": [{"type": "command", "command": "a", "timout": 3}]},
            {"matcher": "Bash(", "hooks": [{"type": "shell", "command": "b"}]},
            {"hooks": [{"command": "c"}, {"type": "command"}, {"type": "mcp_tool", "server": "s"}]},
            {"hooks": [{"type": "command", "command": "d", "timeout": -1, "onFailure": "stop",
                        "if": "Bash("}]},
        ],
        "CwdChanged": [{"hooks": [{"type": "command", "command": "e"}]}],
        "SessionStart": [{"hooks": [{"type": "prompt", "prompt": "p"}]}],
        "Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "f", "if": "Bash"}]}],
    });
    let read = read_user(hooks.clone());
    let expected = [
        "PreToolUs: `PreToolUs` is not a hook event (did you mean `PreToolUse`?)",
        "PreToolUse.0.matchr: `matchr` is not known and ignored (did you mean `matcher`?)",
        "PreToolUse.0.hooks.0.timout: `timout` is not known and ignored (did you mean `timeout`?)",
        "PreToolUse.1.matcher: `Bash(` is not a pattern",
        "PreToolUse.1.hooks.0.type: `shell` is not a kind of hook",
        "PreToolUse.2.hooks.0: `type` is missing",
        "PreToolUse.2.hooks.1: `command` is missing",
        "PreToolUse.2.hooks.2: `tool` is missing",
        "PreToolUse.3.hooks.0.onFailure: `onFailure` must be continue or block",
        "PreToolUse.3.hooks.0.if: ",
        "PreToolUse.3.hooks.0.timeout: `timeout` must be a number of seconds",
        "CwdChanged: CwdChanged never happens in posse",
        "SessionStart.0.hooks.0.type: SessionStart has no hooks of the kind `prompt`",
        "Stop.0.matcher: Stop has nothing that `matcher` could be compared with",
        "Stop.0.hooks.0.if: `if` is about tool calls, and Stop is about none",
    ];
    let told = told(hooks);
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    assert_eq!(read.hooks.len(), 9);
    let runs =
        |hook: &&(Hook, Vec<PathStep>)| !matches!(hook.0.action, HookAction::Unsupported { .. });
    assert_eq!(read.hooks.iter().filter(runs).count(), 4);
    // A word that is no choice was meant to be another than the usual.
    assert!(read.hooks[5].0.blocks_on_failure());
}

#[test]
fn values_of_the_wrong_shape_are_told() {
    assert_eq!(told(json!([])), [": `hooks` must be an object of events"]);
    assert_eq!(
        told(json!({"Stop": {}})),
        ["Stop: `Stop` must be a list of groups, each with a matcher and hooks"]
    );
    assert_eq!(told(json!({"Stop": [{}]})), ["Stop.0: `hooks` is missing"]);
    assert_eq!(told(json!(null)), [""; 0]);
}

#[test]
fn only_programs_are_not_waited_for() {
    let server =
        json!({"type": "http", "url": "http://localhost/", "async": true, "onFailure": "block"});
    let read = read_user(json!({"PreToolUse": [{"hooks": [server]}]}));
    assert_eq!(read.hooks[0].0.beside, RunsBeside::No);
    assert!(read.hooks[0].0.blocks_on_failure());
}

#[test]
fn only_skills_have_hooks_that_run_once() {
    let hooks = json!({"Stop": [{"hooks": [{"type": "command", "command": "a", "once": true}]}]});
    assert!(read(&hooks, &file(HookLayer::Skill)).hooks[0].0.once);
    assert!(!read(&hooks, &file(HookLayer::User)).hooks[0].0.once);
}

#[test]
fn an_agent_type_that_stops_is_a_sub_agent_that_stops() {
    let hooks = json!({"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]});
    let event = |layer| read(&hooks, &file(layer)).hooks[0].0.event;
    assert_eq!(event(HookLayer::Definition), HookEvent::SubagentStop);
    assert_eq!(event(HookLayer::Skill), HookEvent::Stop);
}
