//! Prompts and resources of servers.

use serde_json::Value;

use super::project;
use super::served::{assert_nothing_missed, flag, told};
use crate::binary::{Project, stderr};

/// Calls what is there, and ends.
const READS: &str = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "ListMcpResourcesTool", input = {} }]
[[rule]]
when.turn = 2
reply = [
  { tool = "ReadMcpResourceTool", input = { server = "calc", uri = "test://greeting" } },
  { tool = "ReadMcpResourceTool", input = { server = "calc", uri = "test://nothing" } },
]
[[rule]]
reply = [{ text = "the end" }]
"#;
const ENDS: &str = "[[rule]]\nreply = [{ text = 'the end' }]\n";

/// The blocks of the last message of a request.
fn last_blocks(project: &Project, request: usize) -> Vec<Value> {
    let requests = project.requests();
    let messages = requests[request]["body"]["messages"].as_array().unwrap();
    let content = &messages.last().unwrap()["content"];
    content.as_array().cloned().unwrap_or_default()
}

fn texts(blocks: &[Value]) -> String {
    let texts = blocks.iter().filter_map(|it| it["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

// proves MC-10 (part: tools)
#[test]
fn resources_are_listed_and_read() {
    let project = project("mcp-resources", READS);
    let flag = flag(&project, &[]);
    told(&project, &["--mcp-config", &flag, "go"]);
    let listed = last_blocks(&project, 1)[0].to_string();
    let line = "calc:\\n- test://greeting: greeting, A greeting (text/plain)";
    assert!(listed.contains(line), "{listed}");
    let read = last_blocks(&project, 2);
    assert!(read[0].to_string().contains("hello"), "{}", read[0]);
    assert_eq!(read[1]["is_error"], true);
    let why = read[1].to_string();
    assert!(why.contains("there is no such thing here"), "{why}");
    assert_nothing_missed(&project);
}

// proves MC-10 (part: denied)
#[test]
fn who_may_not_use_a_server_has_none_of_its_resources() {
    let project = project("mcp-denied", READS);
    let flag = flag(&project, &[]);
    let rules = ["--mcp-config", &flag, "--disallowedTools", "mcp__calc"];
    told(
        &project,
        &[&rules[..], &["--", "go @calc:test://greeting"]].concat(),
    );
    let prompt = texts(&last_blocks(&project, 0));
    assert!(!prompt.contains("attached-resource"), "{prompt}");
    let listed = last_blocks(&project, 1)[0].to_string();
    assert!(listed.contains("have no resources"), "{listed}");
    let read = last_blocks(&project, 2)[0].to_string();
    assert!(read.contains("There is no server calc"), "{read}");
}

// proves MC-10 (part: named in a prompt)
#[test]
fn a_resource_that_a_prompt_names_goes_with_it() {
    let project = project("mcp-named", ENDS);
    let flag = flag(&project, &["--slow-start", "300"]);
    let prompt = "read @calc:test://greeting, @calc:test://nothing and @other:test://greeting";
    let told = told(&project, &["--mcp-config", &flag, prompt]);
    let sent = texts(&last_blocks(&project, 0));
    let attached = "<attached-resource server=\"calc\" uri=\"test://greeting\">\n\
         [resource test://greeting]\nhello\n</attached-resource>";
    assert!(sent.contains(prompt), "{sent}");
    assert!(sent.contains(attached), "{sent}");
    assert_eq!(sent.matches("<attached-resource").count(), 1, "{sent}");
    let warned = told.iter().any(|line| {
        let line = line.to_string();
        line.contains("@calc:test://nothing is left as text")
    });
    assert!(warned, "{told:?}");
}

// proves MC-10 (part: prompts)
#[test]
fn a_prompt_of_a_server_is_called_by_its_name() {
    let project = project("mcp-prompt", ENDS);
    let flag = flag(&project, &["--slow-start", "300"]);
    let told = told(
        &project,
        &["--mcp-config", &flag, "/mcp__calc__greet ada the first"],
    );
    let commands = told[0]["slash_commands"].as_array().unwrap();
    assert!(
        commands.iter().any(|it| it == "mcp__calc__greet"),
        "{commands:?}"
    );
    let tools = told[0]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|it| it == "mcp__calc__add"), "{tools:?}");
    let sent = texts(&last_blocks(&project, 0));
    let said = "<server-prompt server=\"calc\" from=\"user\">\nSay hello to ada the first.\n</server-prompt>";
    assert!(sent.contains(said), "{sent}");

    let unknown = ["--mcp-config", &flag, "-p", "/mcp__calc__dance"];
    let output = project.run(&unknown);
    assert_eq!(output.status.code(), Some(1));
    let why = stderr(&output);
    assert!(
        why.contains("no server has a prompt /mcp__calc__dance; there are /mcp__calc__greet"),
        "{why}"
    );
    assert_eq!(project.requests().len(), 1);
}
