//! Hooks in the life of a session: its agents, its transcript, hooks that nobody waits for.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use super::models::requests;
use super::{SETTINGS, objects};
use crate::binary::{Project, stderr};
use crate::definitions::{project, write};
use crate::turns;

fn with_hooks(name: &str, script: &str, hooks: &Value) -> Project {
    let project = project(name, script);
    write(&project, SETTINGS, &json!({ "hooks": hooks }).to_string());
    project
}

fn command(line: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": line}]}])
}

fn run(project: &Project) -> Value {
    let flags = ["-p", "go", "--output-format", "json"];
    let output = project.run(&[&flags[..], &["--permission-mode", "bypassPermissions"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    objects(&output).pop().unwrap()
}

const SPAWNS: &str = r#"
[[rule]]
when = { agent = "re:^/main/." }
reply = [{ text = "SUB-DONE" }]
[[rule]]
when = { tool = "re:." }
reply = [{ text = "The tool said: {{tool}}" }]
[[rule]]
when = { user = "go" }
reply = [{ tool = "Agent", input = { description = "x", prompt = "Work.", subagent_type = "general-purpose" } }]
"#;

// proves HK-04 (part: veto)
#[test]
fn an_agent_that_a_hook_refuses_is_not_born() {
    let hook = command("echo NOT-NOW >&2; exit 2");
    let project = with_hooks("hooks-veto", SPAWNS, &json!({ "SubagentStart": hook }));
    let result = run(&project);
    let said = result["result"].as_str().unwrap();
    assert!(
        said.contains("NOT-NOW") && !said.contains("SUB-DONE"),
        "{said}"
    );
    assert_eq!(requests(&project).len(), 2);
    let session = result["session_id"].as_str().unwrap();
    let shown = project.run(&["sessions", "show", session, "--json"]);
    assert_eq!(objects(&shown)[0]["agents"], 1);
}

// proves HK-04 (part: context)
#[test]
fn an_agent_reads_what_a_hook_adds_to_its_beginning() {
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "SubagentStart", "additionalContext": "CHILD-CONTEXT"}});
    let hook = command(&format!("cat >start.json; echo '{said}'"));
    let project = with_hooks("hooks-context", SPAWNS, &json!({ "SubagentStart": hook }));
    let result = run(&project);
    assert!(result["result"].as_str().unwrap().contains("SUB-DONE"));
    let all = requests(&project);
    let has = |request: &Value| request["body"].to_string().contains("CHILD-CONTEXT");
    assert_eq!(
        all.iter().map(has).collect::<Vec<_>>(),
        [false, true, false]
    );
    let input: Value =
        serde_json::from_slice(&fs::read(project.file("start.json")).unwrap()).unwrap();
    assert_eq!(input["agent_type"], "general-purpose");
    assert!(input["agent_id"].is_string());
}

// proves HK-03 (part: main agent; sub-agents; posse)
#[test]
fn scripts_find_the_transcript_the_tasks_and_who_asks() {
    let copies = |name: &str, path: &str| {
        command(&format!(
            "cat >{name}.json; cp \"$(jq -r {path} {name}.json)\" {name}.jsonl"
        ))
    };
    let hooks = json!({
        "Stop": copies("stop", ".transcript_path"),
        "SubagentStop": copies("sub", ".agent_transcript_path"),
    });
    let project = with_hooks("hooks-transcript", SPAWNS, &hooks);
    run(&project);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(project.file(name)).unwrap()).unwrap()
    };
    let lines = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(project.file(name)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let stop = read("stop.json");
    assert_eq!(stop["background_tasks"], json!([]));
    assert_eq!(stop["session_crons"], json!([]));
    assert!(stop["agent_id"].is_null() && stop["agent_type"].is_null());
    assert_eq!(
        (&stop["posse"]["path"], &stop["posse"]["depth"]),
        (&json!("/main"), &json!(0))
    );
    let main = lines("stop.jsonl");
    let types: Vec<&str> = main
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["user", "assistant", "user", "assistant"]);
    let call = &main[1]["message"]["content"][0];
    assert_eq!(
        (&call["type"], &call["name"]),
        (&json!("tool_use"), &json!("Agent"))
    );
    assert_eq!(main[0]["sessionId"], stop["session_id"]);
    let sub = read("sub.json");
    assert_eq!(sub["agent_type"], "general-purpose");
    assert_eq!(sub["agent_id"], sub["posse"]["agent"]);
    assert_eq!(sub["posse"]["depth"], 1);
    assert_eq!(sub["transcript_path"], stop["transcript_path"]);
    assert_eq!(sub["session_id"], stop["session_id"]);
    let last = lines("sub.jsonl").pop().unwrap();
    assert_eq!(last["isSidechain"], true);
    assert_eq!(last["message"]["content"][0]["text"], "SUB-DONE");
}

// proves HK-13 (part: async)
#[test]
fn what_an_async_hook_says_comes_with_a_later_turn() {
    let script = r#"
[[rule]]
when = { marker = "LATE-WORD" }
reply = [{ text = "heard" }]
[[rule]]
times = 200
reply = [{ tool = "Bash", input = { command = "touch ran; sleep 0.1" } }]
"#;
    let said = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "additionalContext": "LATE-WORD"}});
    // If it were waited for, the call would never run, and it would wait for ever.
    let line =
        format!("mkdir lock || exit 0; until [ -e ran ]; do sleep 0.05; done; echo '{said}'");
    let hook = json!({"type": "command", "command": line, "async": true});
    let hooks = json!({"PreToolUse": [{"hooks": [hook]}]});
    let project = with_hooks("hooks-async", script, &hooks);
    assert_eq!(run(&project)["result"], "heard");
}

// proves HK-13 (part: asyncRewake)
#[test]
fn an_async_hook_that_refuses_wakes_the_agent() {
    let script = "[[rule]]\nwhen = { user = \"WAKE-WORD\" }\nreply = [{ text = \"awake\" }]\n\
                  [[rule]]\nreply = [{ text = \"asleep\" }]\n";
    let line =
        "mkdir lock || exit 0; until [ -e go ]; do sleep 0.05; done; echo WAKE-WORD >&2; exit 2";
    let hook = json!({"type": "command", "command": line, "asyncRewake": true});
    let hooks = json!({"Stop": [{"hooks": [hook]}]});
    let project = with_hooks("hooks-rewake", script, &hooks);
    let mut child = project
        .posse(&[
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut results = lines
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .filter(|line| line["type"] == "result");
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    writeln!(input, "{prompt}").unwrap();
    assert_eq!(results.next().unwrap()["result"], "asleep");
    fs::write(project.file("go"), "").unwrap();
    assert_eq!(results.next().unwrap()["result"], "awake");
    drop(input);
    assert!(child.wait().unwrap().success());
}

// proves PE-14 (part: hooks)
#[test]
fn hooks_of_a_repository_are_held_and_those_of_the_user_are_not() {
    let project = Project::new("hooks-held", &turns::commands(&["ls"]));
    fs::create_dir(project.file(".git")).unwrap();
    let line = |word: &str| {
        format!(
            "touch ../{word}; touch ../home/{word}; ls ../home/*.db >{word}.seen 2>&1; \
             curl -s -m 5 {}/_scripted/requests >{word}.net; cat {word}.seen {word}.net >&2; true",
            project.url()
        )
    };
    let settings = |word: &str| json!({"hooks": {"PreToolUse": command(&line(word))}}).to_string();
    write(&project, SETTINGS, &settings("repository"));
    write(&project, "../home/.claude/settings.json", &settings("user"));
    let output = project
        .posse(&["-p", "go", "--permission-mode", "acceptEdits"])
        .env("POSSE_SANDBOX", "required")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for (word, free) in [("repository", false), ("user", true)] {
        for file in [format!("../{word}"), format!("../home/{word}")] {
            assert_eq!(
                project.file(&file).exists(),
                free,
                "{file}: {}",
                stderr(&output)
            );
        }
        // It did run: what an agent may change, it may, too.
        let answered = fs::read_to_string(project.file(&format!("{word}.net"))).unwrap();
        assert_eq!(!answered.is_empty(), free, "{word}");
        let seen = fs::read_to_string(project.file(&format!("{word}.seen"))).unwrap();
        assert_eq!(
            seen.contains("posse.db"),
            free && seen.contains("posse.db"),
            "{word}: {seen}"
        );
    }
}
