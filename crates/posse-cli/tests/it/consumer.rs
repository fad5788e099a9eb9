//! A small consumer of `stream-json`, written against the ecosystem's table of lines and nothing else:
//! what it needs must be there, in the types it expects, in the order it expects.

use serde::Deserialize;
use serde_json::Value;

use crate::binary::{Project, stderr, stdout};

#[derive(Deserialize)]
struct Line {
    uuid: String,
    session_id: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum What {
    System(System),
    Assistant {
        message: Reply,
        parent_tool_use_id: Option<String>,
    },
    User {
        message: Words,
        parent_tool_use_id: Option<String>,
    },
    StreamEvent {
        event: Value,
        parent_tool_use_id: Option<String>,
    },
    Result(Box<Outcome>),
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "of some fields it counts only that they are there"
)]
#[expect(clippy::large_enum_variant, reason = "there are a dozen of them")]
enum System {
    #[serde(rename_all = "camelCase")]
    Init {
        cwd: String,
        tools: Vec<String>,
        #[serde(rename = "mcp_servers")]
        mcp_servers: Vec<Value>,
        model: String,
        permission_mode: String,
        #[serde(rename = "slash_commands")]
        slash_commands: Vec<String>,
        agents: Vec<String>,
        skills: Vec<String>,
        plugins: Vec<Value>,
        #[serde(rename = "output_style")]
        output_style: String,
        api_key_source: String,
        #[serde(rename = "claude_code_version")]
        claude_code_version: String,
        capabilities: Vec<String>,
    },
    ApiRetry {
        attempt: u32,
        max_retries: u32,
        retry_delay_ms: u64,
        error_status: Option<u16>,
        error: String,
    },
    PermissionDenied {
        tool_name: String,
        tool_use_id: String,
    },
}

#[derive(Deserialize)]
struct Reply {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    role: String,
    model: String,
    content: [Block; 1],
    stop_reason: Option<String>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Words {
    role: String,
    content: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "of some fields it counts only that they are there"
)]
enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: serde_json::Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<Value>,
        is_error: bool,
    },
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct Outcome {
    subtype: String,
    is_error: bool,
    result: String,
    num_turns: u32,
    duration_ms: u64,
    duration_api_ms: u64,
    total_cost_usd: f64,
    usage: Usage,
    #[serde(rename = "modelUsage")]
    model_usage: std::collections::HashMap<String, ModelUsage>,
    permission_denials: Vec<Denial>,
    stop_reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: f64,
}

#[derive(Deserialize)]
struct Denial {
    tool_name: String,
    tool_use_id: String,
    tool_input: Value,
}

const SCRIPT: &str = r#"
[[rule]]
times = 1
fault = { kind = "status", status = 529, retry_after_ms = 1 }
[[rule]]
when.tool = "Denied"
reply = [{ text = "I may not push." }]
[[rule]]
when.tool = "hello"
reply = [{ thinking = "Now push." }, { text = "Pushing. " }, { tool = "Bash", input = { command = "git push" } }]
[[rule]]
reply = [{ text = "Reading. " }, { tool = "Read", input = { file_path = "a.txt" } }]
"#;

#[test]
fn every_line_is_what_the_table_says() {
    let project = Project::new("consumer", SCRIPT);
    std::fs::write(project.file("a.txt"), "hello\n").unwrap();
    let arguments = [
        "-p",
        "read and push",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ];
    let output = project.run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let parse = |line: &str| {
        serde_json::from_str::<Line>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let lines: Vec<Line> = stdout(&output).lines().map(parse).collect();
    let mut uuids: Vec<&str> = lines.iter().map(|line| line.uuid.as_str()).collect();
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), lines.len(), "every line has an id of its own");
    assert!(
        lines
            .iter()
            .all(|line| line.session_id == lines[0].session_id)
    );

    let (mut asked, mut answered, mut order) = (Vec::new(), Vec::new(), String::new());
    let mut streamed = String::new();
    for line in &lines {
        match &line.what {
            What::System(System::Init {
                cwd,
                tools,
                mcp_servers,
                model,
                permission_mode,
                ..
            }) => {
                assert_eq!(
                    cwd,
                    project.file("").to_str().unwrap().trim_end_matches('/')
                );
                assert!(tools.contains(&"Bash".to_owned()) && mcp_servers.is_empty());
                assert!(model.starts_with("claude") && permission_mode == "default");
                order.push('i');
            }
            What::System(System::ApiRetry {
                attempt,
                max_retries,
                retry_delay_ms,
                error_status,
                error,
            }) => {
                assert!(
                    *attempt == 1
                        && *max_retries > 1
                        && *retry_delay_ms < 1000
                        && !error.is_empty()
                );
                assert_eq!(*error_status, Some(529));
                order.push('r');
            }
            What::System(System::PermissionDenied {
                tool_name,
                tool_use_id,
            }) => {
                assert!(tool_name == "Bash" && asked.contains(tool_use_id));
                order.push('d');
            }
            What::Assistant {
                message,
                parent_tool_use_id,
            } => {
                assert!(
                    message.kind == "message"
                        && message.role == "assistant"
                        && parent_tool_use_id.is_none()
                );
                assert!(message.id.starts_with("msg_") && message.model.starts_with("claude"));
                assert!(message.usage.output_tokens > 0 && message.usage.input_tokens < 10_000);
                if let Block::ToolUse { id, name, input } = &message.content[0] {
                    assert!(!name.is_empty() && !input.is_empty());
                    assert_eq!(message.stop_reason.as_deref(), Some("tool_use"));
                    asked.push(id.clone());
                }
                order.push('a');
            }
            What::User {
                message,
                parent_tool_use_id,
            } => {
                assert!(message.role == "user" && parent_tool_use_id.is_none());
                for block in &message.content {
                    match block {
                        Block::ToolResult {
                            tool_use_id,
                            content,
                            is_error,
                        } => {
                            assert!(!content.is_empty());
                            answered.push((tool_use_id.clone(), *is_error));
                        }
                        Block::Text { text } => assert_eq!(text, "read and push"),
                        Block::Thinking { .. } | Block::ToolUse { .. } => {
                            panic!("a user says no such thing")
                        }
                    }
                }
                order.push('u');
            }
            What::StreamEvent {
                event,
                parent_tool_use_id,
            } => {
                assert!(parent_tool_use_id.is_none() && event["type"].is_string());
                streamed.push_str(event["delta"]["text"].as_str().unwrap_or_default());
            }
            What::Result(outcome) => {
                check(outcome);
                order.push('R');
            }
        }
    }
    assert_eq!(order, "iuraauaaaudaR");
    assert_eq!(streamed, "Reading. Pushing. I may not push.");
    assert_eq!(
        answered,
        [(asked[0].clone(), false), (asked[1].clone(), true)]
    );
}

fn check(outcome: &Outcome) {
    assert_eq!(
        (outcome.subtype.as_str(), outcome.is_error),
        ("success", false)
    );
    assert_eq!(
        (outcome.result.as_str(), outcome.num_turns),
        ("I may not push.", 3)
    );
    assert!(outcome.duration_ms >= outcome.duration_api_ms && outcome.stop_reason == "end_turn");
    let usage = &outcome.usage;
    assert!(usage.cache_read_input_tokens > 0 && usage.cache_creation_input_tokens > 0);
    let [(model, by_model)] = &outcome.model_usage.iter().collect::<Vec<_>>()[..] else {
        panic!("one model")
    };
    assert!(model.starts_with("claude"));
    assert_eq!(
        (
            by_model.input_tokens,
            by_model.output_tokens,
            by_model.cost_usd
        ),
        (
            usage.input_tokens,
            usage.output_tokens,
            outcome.total_cost_usd
        )
    );
    assert_eq!(
        (
            by_model.cache_read_input_tokens,
            by_model.cache_creation_input_tokens
        ),
        (
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens
        )
    );
    assert!(outcome.total_cost_usd > 0.0);
    let [denial] = &outcome.permission_denials[..] else {
        panic!("one denial")
    };
    assert!(denial.tool_name == "Bash" && !denial.tool_use_id.is_empty());
    assert_eq!(denial.tool_input["command"], "git push");
}
