//! Hooks in the life of a session: its agents, its transcript, hooks that nobody waits for.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use super::models::requests;
use super::{SETTINGS, objects};
use crate::binary::{Project, stderr};
use crate::definitions::{project, write};
use crate::run::Talk;
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

// proves HK-11 (part: stop)
#[test]
fn a_prompt_whose_hook_was_stopped_is_not_worked_on() {
    let script = "[[rule]]\nreply = [{ text = \"hello\" }]\n";
    let hooks = json!({ "UserPromptSubmit": command("touch started; sleep 600") });
    let project = with_hooks("hooks-gate-stopped", script, &hooks);
    let mut child = project.posse(&["-p", "go"]).spawn().unwrap();
    let started = || project.file("started").exists();
    crate::conversation_rules::until("the hook runs", started);
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(requests(&project).len(), 0);
}

/// Only the first has a hook to pass.
#[test]
fn prompts_keep_their_order_while_the_session_starts() {
    let script = "[[rule]]\nreply = [{ text = \"hello\" }]\n";
    let hooks = json!({ "SessionStart": command("touch started; sleep 1") });
    let project = with_hooks("hooks-gate-order", script, &hooks);
    let mut talk = Talk::start(&project, &[]);
    talk.prompt("FIRST");
    crate::conversation_rules::until("the hook runs", || project.file("started").exists());
    talk.prompt("SECOND");
    talk.hear("result");
    assert_eq!(talk.end(), Some(0));
    let asked = requests(&project)[0]["body"]["messages"].to_string();
    assert!(asked.contains("FIRST"), "{asked}");
}

// proves HK-01 (part: teams)
#[test]
fn a_teammate_goes_on_if_a_hook_wants_it_to() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "TeamCreate", input = { team_name = "crew", description = "d" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "Work.", name = "mate", team_name = "crew" } }]
[[rule]]
when = { agent = "re:^/main$" }
reply = [{ text = "I see." }]
[[rule]]
when = { user = "NOT-YET" }
reply = [{ text = "now" }]
[[rule]]
reply = [{ text = "done" }]
"#;
    let line = "cat >>idle.jsonl; mkdir lock || exit 0; echo NOT-YET >&2; exit 2";
    let project = with_hooks(
        "hooks-idle",
        script,
        &json!({ "TeammateIdle": command(line) }),
    );
    run(&project);
    let text = fs::read_to_string(project.file("idle.jsonl")).unwrap();
    let inputs: Vec<Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(inputs.len(), 2, "{text}");
    for input in &inputs {
        assert_eq!(
            (&input["teammate_name"], &input["team_name"]),
            (&json!("mate"), &json!("crew"))
        );
    }
    let told = |request: &&Value| request["body"].to_string().contains("NOT-YET");
    assert_eq!(requests(&project).iter().filter(told).count(), 1);
}

// proves AD-01 (part: hooks)
// proves HK-02 (part: definitions)
#[test]
fn hooks_of_an_agent_type_hold_for_its_agents_and_their_end_is_theirs() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "Bash", input = { command = "touch main-ran" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "Work.", subagent_type = "careful" } }]
[[rule]]
when = { agent = "re:^/main$" }
reply = [{ text = "The tool said: {{tool}}" }]
[[rule]]
when = { user = "NOT-YET" }
reply = [{ text = "SUB-SECOND" }]
[[rule]]
when = { tool = "NO-SHELL" }
reply = [{ text = "SUB-FIRST" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch sub-ran" } }]
"#;
    let project = project("hooks-definition", script);
    write(
        &project,
        ".claude/agents/careful.md",
        "---\nname: careful\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        \
         - type: command\n          command: echo NO-SHELL >&2; exit 2\n  Stop:\n    - hooks:\n        \
         - type: command\n          command: mkdir lock || exit 0; jq -r .hook_event_name >stop; echo NOT-YET >&2; exit 2\n---\nTake care.\n",
    );
    let result = run(&project);
    let said = result["result"].as_str().unwrap();
    assert!(said.contains("SUB-SECOND"), "{said}");
    assert!(project.file("main-ran").exists() && !project.file("sub-ran").exists());
    let stop = fs::read_to_string(project.file("stop")).unwrap();
    assert_eq!(stop.trim(), "SubagentStop");
}

// proves HK-01 (part: front end)
#[test]
fn hooks_hear_what_people_are_shown_and_asked() {
    let script = "[[rule]]\nwhen.turn = 1\nreply = [{ text = \"SAID-FIRST\" }, { tool = \"Bash\", input = { command = \"touch ran\" } }]\n\
                  [[rule]]\nreply = [{ text = \"SAID-LAST\" }]\n";
    let hooks = json!({
        "Notification": command("cat >draft.json; mv draft.json asked.json"),
        "MessageDisplay": command("cat >>shown.jsonl; echo >>shown.jsonl"),
        "InstructionsLoaded": command("cat >loaded.json"),
    });
    let project = with_hooks("hooks-front-end", script, &hooks);
    write(&project, "CLAUDE.md", "Be brief.\n");
    let mut child = project
        .posse(&["-p", "go", "--on-question", "wait"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    crate::conversation_rules::until("a hook has heard the question", || {
        project.file("asked.json").exists()
    });
    let listed = project.run(&["requests", "list", "--json"]);
    let question = objects(&listed).remove(0);
    let id = question["request_id"].as_str().unwrap();
    let answered = project.run(&["requests", "answer", id, "allow"]);
    assert!(answered.status.success(), "{}", stderr(&answered));
    assert!(child.wait().unwrap().success());
    let read = |name: &str| fs::read_to_string(project.file(name)).unwrap();
    let asked: Value = serde_json::from_str(&read("asked.json")).unwrap();
    assert_eq!(asked["notification_type"], "permission_prompt");
    assert!(
        asked["message"].as_str().unwrap().contains("Bash"),
        "{asked}"
    );
    let loaded: Value = serde_json::from_str(&read("loaded.json")).unwrap();
    assert!(
        loaded["file_path"]
            .as_str()
            .unwrap()
            .ends_with("/CLAUDE.md")
    );
    assert_eq!(
        (&loaded["load_reason"], &loaded["memory_type"]),
        (&json!("session_start"), &json!("Project"))
    );
    let shown = read("shown.jsonl");
    let shown = shown
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let texts: Vec<String> = shown
        .map(|it| it["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["SAID-FIRST", "SAID-LAST"]);
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

/// Otherwise a repository could run what it wants with the next command that a person lets out.
#[test]
fn variables_of_a_repository_hold_in_the_sandbox_only() {
    let commands = turns::commands(&["echo $WORD", "printenv WORD"]);
    let project = Project::new("hooks-variables-held", &commands);
    fs::create_dir(project.file(".git")).unwrap();
    let sets = |word: &str| {
        let line = format!("echo 'export WORD=\"$WORD {word}\"' >>\"$CLAUDE_ENV_FILE\"");
        json!({ "SessionStart": command(&line) })
    };
    let theirs = json!({ "hooks": sets("theirs") });
    write(&project, SETTINGS, &theirs.to_string());
    let mine = json!({"hooks": sets("mine"), "permissions": {"allow": ["Outside(printenv *)"]}});
    write(&project, "../home/.claude/settings.json", &mine.to_string());
    let output = project
        .posse(&["-p", "go"])
        .env("POSSE_SANDBOX", "required")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Vec<String> = requests(&project)
        .iter()
        .skip(1)
        .map(|request| {
            let last = request["body"]["messages"]
                .as_array()
                .unwrap()
                .last()
                .unwrap();
            last["content"][0]["content"][0]["text"]
                .as_str()
                .unwrap()
                .trim()
                .to_owned()
        })
        .collect();
    assert_eq!(told, ["theirs mine", "mine"]);
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
