//! What servers ask people while they work on a call.

use std::fs;

use serde_json::{Value, json};

use super::project;
use super::served::{assert_nothing_missed, flag, logged, told};
use crate::binary::{Project, stderr, stdout};
use crate::definitions::write;
use crate::requests::{id, question, started};
use crate::run::Talk;
use crate::team::succeed;

/// Lets the server ask by a form and by an address, and says what its answers were.
const ASKS: &str = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__ask" } }]
[[rule]]
when.turn = 2
reply = [{ tool = "mcp__calc__ask", input = {} }]
[[rule]]
when.turn = 3
reply = [{ tool = "mcp__calc__ask", input = { mode = "url" } }]
[[rule]]
reply = [{ text = "the end" }]
"#;

/// What the calls were answered with.
fn answers(project: &Project) -> Vec<Value> {
    let requests = project.requests();
    let last = requests.last().unwrap();
    let messages = last["body"]["messages"].as_array().unwrap();
    let blocks = messages
        .iter()
        .flat_map(|it| it["content"].as_array().unwrap());
    let results = blocks.filter(|it| it["type"] == "tool_result");
    let texts = results.filter_map(|it| it["content"][0]["text"].as_str());
    texts
        .filter_map(|it| serde_json::from_str(it).ok())
        .collect()
}

/// The options that make the server ask in each era of the protocol.
const ERAS: [[&str; 2]; 2] = [["--elicit", "--old"], ["--elicit", "--new"]];

// proves MC-11 (part: nobody)
#[test]
fn what_a_server_asks_is_declined_if_nobody_is_there() {
    for (number, era) in ERAS.iter().enumerate() {
        let project = project(&format!("mcp-nobody-{number}"), ASKS);
        told(&project, &["--mcp-config", &flag(&project, era), "go"]);
        let declined = json!({ "action": "decline" });
        assert_eq!(answers(&project), [declined.clone(), declined]);
        assert_eq!(succeed(&project, &["requests", "list"]), "");
        assert_nothing_missed(&project);
    }
}

// proves MC-11 (part: form; address)
#[test]
fn a_person_answers_a_server_from_another_process() {
    for (number, era) in ERAS.iter().enumerate() {
        let project = project(&format!("mcp-asked-{number}"), ASKS);
        let flag = flag(&project, era);
        let free = ["--permission-mode", "bypassPermissions"];
        let waits = ["--mcp-config", &flag, "--on-question", "wait", "-p", "go"];
        let child = started(&project, &[&free[..], &waits].concat());
        let form = question(&project);
        assert_eq!(
            (&form["kind"], &form["tool"]),
            (&json!("form"), &json!("mcp__calc__ask"))
        );
        let shown = succeed(&project, &["requests", "show", id(&form)]);
        let asks = "[name] The server calc asks: What is your name?";
        assert!(shown.contains(asks), "{shown}");
        // What the form does not take is asked about again.
        let odd = r#"{"action": "accept", "content": {"name": 7}}"#;
        succeed(
            &project,
            &["requests", "answer", id(&form), "allow", "--input", odd],
        );
        let again = loop {
            let asked = question(&project);
            if id(&asked) != id(&form) {
                break asked;
            }
        };
        let why = again["why"].as_str().unwrap();
        assert!(why.contains("does not fit"), "{why}");
        let given = succeed(
            &project,
            &["requests", "answer", id(&again), "--choose", "Ada"],
        );
        assert_eq!(given, "answered: main agent continues\n");
        let address = loop {
            let asked = question(&project);
            if id(&asked) != id(&again) {
                break asked;
            }
        };
        let shown = succeed(&project, &["requests", "show", id(&address)]);
        assert!(shown.contains("Open https://example.org/login"), "{shown}");
        succeed(
            &project,
            &["requests", "answer", id(&address), "--choose", "done"],
        );
        let output = child.wait_with_output().unwrap();
        assert_eq!(stdout(&output), "the end\n", "{}", stderr(&output));
        assert_eq!(
            answers(&project),
            [
                json!({ "action": "accept", "content": { "name": "Ada" } }),
                json!({ "action": "accept" }),
            ]
        );
        let calls = logged(&project, "call").len();
        // In the new era the answer comes with the call again.
        assert_eq!(calls, if number == 0 { 2 } else { 4 });
        assert_nothing_missed(&project);
    }
}

// proves MC-11 (part: programs)
#[test]
fn a_program_answers_a_server() {
    let project = project("mcp-asked-program", ASKS);
    let flag = flag(&project, &ERAS[0]);
    let more = [
        "--mcp-config",
        &flag,
        "--permission-mode",
        "bypassPermissions",
    ];
    let mut talk = Talk::start(&project, &more);
    let begin = json!({"subtype": "initialize"});
    talk.tell(&json!({"type": "control_request", "request_id": "1", "request": begin}));
    talk.hear("control_response");
    talk.prompt("go");
    let name = json!({ "type": "string", "title": "Name" });
    let schema = json!({ "type": "object", "properties": { "name": name }, "required": ["name"] });
    for (asked, answer) in [
        (
            json!({
                "subtype": "elicitation", "mcp_server_name": "calc", "message": "What is your name?",
                "mode": "form", "requested_schema": schema,
            }),
            json!({ "action": "accept", "content": { "name": "Ada" } }),
        ),
        (
            json!({
                "subtype": "elicitation", "mcp_server_name": "calc", "message": "Please log in",
                "mode": "url", "url": "https://example.org/login", "elicitation_id": "login-1",
            }),
            json!({ "action": "cancel" }),
        ),
    ] {
        let request = talk.hear("control_request");
        assert_eq!(request["request"], asked);
        let response = json!({
            "subtype": "success", "request_id": request["request_id"], "response": answer,
        });
        talk.tell(&json!({"type": "control_response", "response": response}));
    }
    assert_eq!(talk.hear("result")["result"], "the end");
    assert_eq!(talk.end(), Some(0));
    assert_eq!(
        answers(&project),
        [
            json!({ "action": "accept", "content": { "name": "Ada" } }),
            json!({ "action": "cancel" }),
        ]
    );
}

// proves HK-01 (part: Elicitation)
#[test]
fn hooks_answer_servers_or_change_the_answer() {
    let project = project("mcp-asked-hooks", ASKS);
    let hook = |line: &str| json!([{ "matcher": "calc", "hooks": [{ "type": "command", "command": line }] }]);
    let said = |event: &str, action: &str| {
        let content = json!({ "name": "Bot" });
        let own = json!({ "hookEventName": event, "action": action, "content": content });
        json!({ "hookSpecificOutput": own })
    };
    let accepts = said("Elicitation", "accept");
    let changes = said("ElicitationResult", "cancel");
    let settings = json!({ "hooks": {
        "Elicitation": hook(&format!(
            "cat >one.json; cat one.json >>asked.jsonl; echo >>asked.jsonl; \
             case $(cat one.json) in *'\"form\"'*) echo '{accepts}';; esac"
        )),
        "ElicitationResult": hook(&format!("cat >>answered.jsonl; echo '{changes}'")),
    }});
    write(&project, "../home/hooks.json", &settings.to_string());
    let flag = flag(&project, &ERAS[0]);
    let file = project.file("../home/hooks.json");
    told(
        &project,
        &[
            "--mcp-config",
            &flag,
            "--settings",
            file.to_str().unwrap(),
            "go",
        ],
    );
    assert_eq!(
        answers(&project),
        [
            json!({ "action": "accept", "content": { "name": "Bot" } }),
            json!({ "action": "cancel" }),
        ]
    );
    let read = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(project.file(name)).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let asked = read("asked.jsonl");
    assert_eq!(asked[0]["mcp_server_name"], "calc");
    assert_eq!(asked[0]["requested_schema"]["required"], json!(["name"]));
    assert_eq!(asked[1]["elicitation_id"], "login-1");
    // Nobody was there for the address, which a hook has called a cancellation.
    let answered = read("answered.jsonl");
    assert_eq!(answered.len(), 1, "{answered:?}");
    assert_eq!(
        (&answered[0]["action"], &answered[0]["mode"]),
        (&json!("decline"), &json!("url"))
    );
}
