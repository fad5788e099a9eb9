//! Flags and requests of programs made for Claude Code: what posse does about each, or says that it does not.

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::run::{LINES, Talk, lines, result};
use crate::team_run::requests;

/// The bodies of all requests to the model.
pub(crate) fn bodies(project: &Project) -> Vec<Value> {
    let all = requests(project).into_iter();
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    // The record has a body as text.
    all.map(|(_, body)| read(read(&body).as_str().unwrap()))
        .collect()
}

/// The names of the tools that a request offers.
fn offered(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

// proves FC-10 (part: effort and thinking; opusplan)
#[test]
fn the_model_gets_what_the_flags_ask_for() {
    let project = Project::new("flags-model", "");
    let table = [
        ("--effort=low", "/output_config/effort", json!("low")),
        ("--thinking=adaptive", "/thinking/type", json!("adaptive")),
        ("--thinking=disabled", "/thinking/type", json!("disabled")),
        (
            "--max-thinking-tokens=2048",
            "/thinking/budget_tokens",
            json!(2048),
        ),
        (
            "--max-thinking-tokens=0",
            "/thinking/type",
            json!("disabled"),
        ),
        ("--model=opusplan", "/model", json!("claude-sonnet-5-5")),
        ("--model=haiku", "/model", json!("claude-haiku-5-5")),
    ];
    for (flag, place, expected) in table {
        // Not every model can do without thinking.
        let small = (!flag.starts_with("--model")).then_some("--model=haiku");
        let flags: Vec<&str> = ["-p", "hello", flag].into_iter().chain(small).collect();
        let output = project.run(&flags);
        assert!(output.status.success(), "{flag}: {}", stderr(&output));
        let body = bodies(&project).pop().unwrap();
        assert_eq!(body.pointer(place), Some(&expected), "{flag}");
    }
    project.run(&[
        "-p",
        "hi",
        "--model",
        "opusplan",
        "--permission-mode",
        "plan",
    ]);
    assert_eq!(bodies(&project).pop().unwrap()["model"], "claude-opus-5-5");
    let again = [
        "-p", "-c", "more", "--effort", "high", "--model", "opusplan",
    ];
    let output = project.run(&again);
    let told = "--effort is for new sessions: this one continues as it was started";
    assert!(
        output.status.success() && stderr(&output).contains(told),
        "{}",
        stderr(&output)
    );
}

/// Reads a file, whatever it may do.
const READS: &str = "[[rule]]\nwhen.tool = 're:.'\nreply = [{ text = 'it said: {{tool}}' }]\n[[rule]]\nreply = [{ \
                     tool = 'Read', input = { file_path = 'a.txt' } }]\n";

// proves FC-10 (part: tools)
#[test]
fn only_the_named_tools_are_offered_and_run() {
    let project = Project::new("flags-tools", READS);
    std::fs::write(project.file("a.txt"), "heron\n").unwrap();
    let told = |flags: &[&str]| {
        result(&project.run(&[&["-p", "x", "--output-format", "json"], flags].concat()))
    };
    let first = told(&["--tools", "Read,Task,WebSearch"]);
    assert!(
        first["result"].as_str().unwrap().contains("heron"),
        "{first}"
    );
    assert_eq!(offered(&bodies(&project)[0]), ["Read", "Agent"]);
    let id = first["session_id"].as_str().unwrap();
    let again = told(&["--resume", id, "--tools", "Grep"]);
    let text = again["result"].as_str().unwrap();
    assert!(text.contains("Read is not one of the tools"), "{text}");
    let count = bodies(&project).len();
    let none = project.run(&["-p", "x", "--tools", "", "--max-turns", "1"]);
    assert_eq!(none.status.code(), Some(3), "{}", stderr(&none));
    assert_eq!(offered(&bodies(&project)[count]), [""; 0]);
    let odd = project.run(&["-p", "x", "--tools", "Read,WebSearch"]);
    assert!(
        stderr(&odd).contains("there is no tool WebSearch here"),
        "{}",
        stderr(&odd)
    );
}

// proves FC-10 (part: session id)
#[test]
fn a_session_has_the_id_it_is_given() {
    let project = Project::new("flags-id", "");
    let id = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    let run =
        |more: &[&str]| project.run(&[&["-p", "x", "--output-format", "json"], more].concat());
    assert_eq!(result(&run(&["--session-id", id]))["session_id"], id);
    assert_eq!(result(&run(&["--resume", id]))["session_id"], id);
    let taken = run(&["--session-id", id]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(stderr(&taken).contains(&format!("--resume {id} continues it")));
    for more in [
        &["--session-id", "seven"][..],
        &["--session-id", id, "--resume", id],
    ] {
        assert_eq!(run(more).status.code(), Some(2), "{more:?}");
    }
}

/// Answers with a value that lacks a key, then with a whole one.
const BIRDS: &str = "[[rule]]\nwhen.user = 'not the required JSON'\nreply = [{ text = '{\"name\": \"heron\", \"legs\": 2}' }]\n\
                     [[rule]]\nreply = [{ text = '{\"name\": \"heron\"}' }]\n";

// proves FC-10 (part: schema)
// proves FC-11 (part: schema)
#[test]
fn an_answer_matches_its_schema_or_the_run_fails() {
    let project = Project::new("flags-schema", BIRDS);
    let schema = r#"{"type": "object", "required": ["name", "legs"]}"#;
    let ask = |schema: &str, more: &[&str]| {
        let flags = [
            "-p",
            "a bird",
            "--output-format",
            "json",
            "--json-schema",
            schema,
        ];
        project.run(&[&flags[..], more].concat())
    };
    let told = result(&ask(schema, &[]));
    assert_eq!(
        told["structured_output"],
        json!({"name": "heron", "legs": 2})
    );
    assert_eq!(
        (&told["subtype"], &told["num_turns"]),
        (&json!("success"), &json!(2))
    );
    let system = bodies(&project)[0]["system"].to_string();
    assert!(system.contains("JSON Schema"), "{system}");
    let again = result(&ask(schema, &["--continue"]));
    assert_eq!(again["structured_output"]["legs"], 2, "{again}");
    let other = r#"{"type": "object", "required": ["wings"]}"#;
    let output = ask(other, &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = result(&output);
    assert_eq!(
        told["subtype"], "error_max_structured_output_retries",
        "{told}"
    );
    assert_eq!(
        ask(schema, &["--continue"]).status.code(),
        Some(1),
        "it has another"
    );
    assert_eq!(ask("{", &[]).status.code(), Some(2));
}

// proves FC-10 (part: told; modes of others)
#[test]
fn what_posse_does_not_do_is_said() {
    let project = Project::new("flags-told", "");
    let config = r#"{"mcpServers": {"calc": {"command": "calc"}}}"#;
    let table: [(&[&str], &str); 4] = [
        (
            &["--fallback-model", "haiku"],
            "--fallback-model haiku is not used",
        ),
        (
            &["--settings", r#"{"statusLine": {"type": "command"}}"#],
            "warning: --settings: posse does not use statusLine\n",
        ),
        (
            &["--permission-mode", "auto"],
            "--permission-mode auto is not a mode of posse; it counts as `default`",
        ),
        (&["--permission-mode", "bubble"], "it counts as `default`"),
    ];
    for (flags, words) in table {
        let output = project.run(&[&["-p", "well"], flags].concat());
        assert_eq!(stdout(&output), "You said: well\n", "{flags:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let init =
        lines(&project.run(&[&LINES[..], &["x", "--mcp-config", config]].concat())).remove(0);
    let server = &init["mcp_servers"][0];
    assert_eq!(
        (&server["name"], &server["status"]),
        (&json!("calc"), &json!("failed"))
    );
    assert!(server["error"].to_string().contains("calc: not found"));
    for wrong in [
        &["--permission-mode", "yolo"][..],
        &["--permission-prompt-tool", "stdio"],
        &["--permission-prompt-tool", "mcp__ask__me"],
        &["--setting-sources", "home"],
        &["--effort", "enormous"],
    ] {
        let output = project.run(&[&["-p", "x"], wrong].concat());
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            stderr(&output)
        );
    }
}

// proves FC-10 (part: modes of others)
#[test]
fn an_agent_file_with_a_mode_of_others_is_loaded() {
    let project = Project::new("flags-agent-mode", "");
    let path = project.file(".claude/agents/bird.md");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "---\nname: bird\ndescription: A bird.\npermissionMode: auto\n---\nSing.\n";
    std::fs::write(path, text).unwrap();
    let output = project.run(&[&LINES[..], &["hello"]].concat());
    let words = "bird.md:4: warning: posse has no permission mode `auto`; it counts as `default`";
    let said = stderr(&output).replace(
        "warning: .claude/agents/bird.md:4: ",
        "bird.md:4: warning: ",
    );
    assert!(said.contains(words), "{}", stderr(&output));
    let agents = lines(&output).remove(0)["agents"].clone();
    assert!(
        agents.as_array().unwrap().contains(&json!("bird")),
        "{agents}"
    );
}

fn initialize(more: Value) -> Value {
    let mut request = json!({"subtype": "initialize"});
    request
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"type": "control_request", "request_id": "1", "request": request})
}

// proves FC-11 (part: hooks)
#[test]
fn a_program_whose_hooks_are_not_understood_gets_no_session() {
    for (event, words) in [
        ("PreToolUs", "`PreToolUs` is not a hook event"),
        ("CwdChanged", "CwdChanged never happens in posse"),
    ] {
        let project = Project::new("flags-hooks", "");
        let mut talk = Talk::start(&project, &[]);
        talk.tell(&initialize(
            json!({"hooks": {event: [{"hookCallbackIds": ["h"]}]}}),
        ));
        let answer = talk.hear("control_response")["response"].clone();
        assert_eq!(answer["subtype"], "error");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(words), "{error}");
        let told = talk.hear("result");
        assert_eq!(
            (&told["is_error"], &told["errors"]),
            (&json!(true), &json!([error]))
        );
        assert_eq!(talk.end(), Some(1));
        assert_eq!(bodies(&project).len(), 0);
    }
}

// proves FC-11 (part: hooks)
#[test]
fn a_program_answers_its_hooks_by_lines() {
    let project = Project::new("flags-callbacks", WRITES);
    let mut talk = Talk::start(&project, &["--permission-mode", "acceptEdits"]);
    let hooks = json!({"PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["h"]}]});
    talk.tell(&initialize(json!({"hooks": hooks})));
    let answer = talk.hear("control_response")["response"]["response"].clone();
    assert_eq!(answer["hook_on_failure_supported"], true);
    talk.prompt("kept/1.txt");
    let asked = talk.hear("control_request");
    let (id, request) = (&asked["request_id"], &asked["request"]);
    assert_eq!(
        (&request["subtype"], &request["callback_id"]),
        (&json!("hook_callback"), &json!("h"))
    );
    let input = &request["input"];
    assert_eq!(input["tool_use_id"], request["tool_use_id"]);
    assert_eq!(input["hook_event_name"], "PreToolUse");
    let denies = json!({"decision": "block", "reason": "not by this program"});
    talk.tell(&json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": id, "response": denies},
    }));
    talk.hear("result");
    assert_eq!(talk.end(), Some(0));
    assert!(!project.file("kept/1.txt").exists());
    let last = bodies(&project).pop().unwrap()["messages"].to_string();
    assert!(last.contains("not by this program"), "{last}");
}

// proves FC-11 (part: agents)
#[test]
fn the_first_request_shapes_the_session() {
    let project = Project::new("flags-initialize", "");
    let mut talk = Talk::start(&project, &[]);
    let bird = json!({"description": "Knows a word.", "prompt": "You are a bird."});
    let more = json!({"agents": {"bird": bird}, "systemPrompt": ["Be a tree."],
                      "appendSystemPrompt": "Be tall.", "title": "x", "hooks": null});
    talk.tell(&initialize(more.clone()));
    let init = talk.hear("init");
    assert!(
        init["agents"].as_array().unwrap().contains(&json!("bird")),
        "{init}"
    );
    let answer = talk.hear("control_response")["response"]["response"].clone();
    let told = json!({"name": "bird", "description": "Knows a word."});
    assert!(
        answer["agents"].as_array().unwrap().contains(&told),
        "{answer}"
    );
    assert_eq!(answer["unused"], json!(["title"]));
    talk.prompt("hello");
    talk.hear("result");
    talk.tell(&initialize(more));
    let late = talk.hear("control_response")["response"].clone();
    assert_eq!(late["subtype"], "error", "{late}");
    assert_eq!(talk.end(), Some(0));
    let system = bodies(&project)[0]["system"].to_string();
    assert!(
        system.contains("Be a tree.") && system.contains("Be tall."),
        "{system}"
    );
    assert!(!system.contains("You are posse"), "{system}");
}

// proves QU-07 (part: lines of a program)
#[test]
fn a_program_sends_a_suggestion_back() {
    let project = Project::new("flags-suggestions", WRITES);
    let mut talk = Talk::start(&project, &["--permission-prompt-tool", "stdio"]);
    talk.prompt("kept/1.txt");
    let asked = talk.hear("control_request");
    let suggested = asked["request"]["permission_suggestions"].clone();
    let directory = project.file("").canonicalize().unwrap();
    let file = format!("/{}/kept/1.txt", directory.display());
    let rules = |content: &str| json!([{"toolName": "Edit", "ruleContent": content}]);
    let update = |rules: Value| json!({"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"});
    assert_eq!(suggested[0], update(rules(&file)), "{suggested}");
    let response = json!({"subtype": "success", "request_id": asked["request_id"],
                          "response": {"behavior": "allow", "updatedPermissions": [suggested[0]]}});
    talk.tell(&json!({"type": "control_response", "response": response}));
    talk.hear("result");
    std::fs::remove_file(project.file("kept/1.txt")).unwrap();
    talk.prompt("kept/1.txt");
    assert_eq!(talk.hear("result")["permission_denials"], json!([]));
    talk.prompt("kept/2.txt");
    assert_eq!(
        talk.hear("control_request")["request"]["input"]["file_path"],
        "kept/2.txt"
    );
    assert_eq!(talk.end(), Some(0));
    assert!(project.file("kept/1.txt").exists() && !project.file("kept/2.txt").exists());
}

// proves PE-08 (part: lines of a program; a yes)
#[test]
fn a_program_answers_questions_with_options() {
    let project = Project::new("flags-choices", crate::requests::CHOICES);
    let mut talk = Talk::start(&project, &["--permission-prompt-tool", "stdio"]);
    talk.prompt("go");
    let asked = talk.hear("control_request");
    assert_eq!(asked["request"]["tool_name"], "AskUserQuestion", "{asked}");
    let mut input = asked["request"]["input"].clone();
    input["answers"] = json!({"Which library?": "serde", "Which systems?": "Linux, macOS"});
    let chosen = json!({"behavior": "allow", "updatedInput": input});
    let response =
        json!({"subtype": "success", "request_id": asked["request_id"], "response": chosen});
    talk.tell(&json!({"type": "control_response", "response": response}));
    let told =
        "The user answered:\n- Which library?\n  → serde\n- Which systems?\n  → Linux, macOS\n";
    assert_eq!(talk.hear("result")["result"], told);
    assert_eq!(talk.end(), Some(0));
    let mut talk = Talk::start(&project, &["--permission-prompt-tool", "stdio"]);
    talk.prompt("go");
    let asked = talk.hear("control_request");
    let yes = json!({"subtype": "success", "request_id": asked["request_id"], "response": {"behavior": "allow"}});
    talk.tell(&json!({"type": "control_response", "response": yes}));
    let told = talk.hear("result")["result"].to_string();
    assert!(told.contains("closed without an answer"), "{told}");
    assert_eq!(talk.end(), Some(0));
}

/// Writes the file that the prompt names.
const WRITES: &str = "[[rule]]\nwhen.tool = 're:.'\nreply = [{ text = 'done' }]\n[[rule]]\nwhen.user = 're:(\\S+)'\nreply = [{ \
                      tool = 'Write', input = { file_path = '{{user.1}}', content = 'x' } }]\n";

// proves FC-11 (part: updated permissions)
// proves FC-12
#[test]
fn an_approval_can_bring_rules_that_hold_at_once_and_later() {
    let project = Project::new("flags-updates", WRITES);
    std::fs::create_dir_all(project.file(".git")).unwrap();
    let mut talk = Talk::start(&project, &["--permission-prompt-tool", "stdio"]);
    talk.prompt("kept/1.txt");
    let asked = talk.hear("control_request");
    let updates = json!([
        {"type": "addRules", "rules": [{"toolName": "Edit", "ruleContent": "kept/**"}], "behavior": "allow",
         "destination": "localSettings"},
        {"type": "addRules", "rules": [{"toolName": "Glob"}], "behavior": "allow", "destination": "projectSettings"},
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
    ]);
    let response = json!({"subtype": "success", "request_id": asked["request_id"],
                          "response": {"behavior": "allow", "updatedPermissions": updates}});
    talk.tell(&json!({"type": "control_response", "response": response}));
    let told = [talk.hear("unheard"), talk.hear("unheard")].map(|line| line["message"].to_string());
    assert!(told[0].contains("is not written to"), "{told:?}");
    assert!(
        told[1].contains("must be chosen when posse starts"),
        "{told:?}"
    );
    talk.hear("result");
    talk.prompt("kept/2.txt");
    assert_eq!(talk.hear("result")["permission_denials"], json!([]));
    talk.prompt("other.txt");
    assert_eq!(
        talk.hear("control_request")["request"]["input"]["file_path"],
        "other.txt"
    );
    assert_eq!(talk.end(), Some(0));
    assert!(project.file("kept/2.txt").exists() && !project.file("other.txt").exists());
    // Nothing was written to the repository; in this directory the rule holds in later sessions.
    assert!(!project.file(".claude").exists() && !project.file(".posse").exists());
    let later = |directory: &str| {
        let mut posse = project.posse(&["-p", "kept/3.txt"]);
        posse.current_dir(project.file(directory)).output().unwrap()
    };
    assert_eq!(later("").status.code(), Some(0));
    assert!(project.file("kept/3.txt").exists());
    std::fs::create_dir_all(project.file("../elsewhere/.git")).unwrap();
    later("../elsewhere");
    assert!(!project.file("../elsewhere/kept/3.txt").exists());
}
