//! Input lines of a controlling program: `--input-format stream-json`.

pub(crate) mod binary;
pub(crate) mod initialize;
pub(crate) mod stdin;

use std::fmt::Display;

use posse_protocol::{AgentId, ContentBlock, PermissionMode};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use self::initialize::Initialize;

/// The meaning of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StdinMessage {
    /// A prompt for the main agent, or for another agent of the session.
    Prompt {
        to: Option<AgentId>,
        words: Vec<ContentBlock>,
    },
    /// A request to posse; the answer carries the id.
    Request { id: String, request: ControlRequest },
    /// The answer to a request from posse.
    Response {
        id: String,
        response: Result<Value, PeerError>,
    },
    /// Nothing to do.
    Nothing,
}

/// A request to posse.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControlRequest {
    Initialize(Box<Initialize>),
    /// Interrupt the main agent, or another agent of the session.
    Interrupt(Option<AgentId>),
    SetMode(PermissionMode),
    SetModel {
        model: String,
        effort: Option<String>,
    },
    /// Stop a sub-agent or a background command.
    StopTask(Uuid),
    /// Stop everything in the background.
    StopAllTasks,
    /// Move the sub-agents that are waited for to the background.
    BackgroundTasks,
}

/// The error that a program returned instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PeerError(pub(crate) String);

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("`agent_id` is not an agent id")]
    AgentId,
    #[error("bypassPermissions must be chosen when posse starts")]
    Bypass,
    #[error("{0}")]
    Initialize(String),
    #[error("agents, prompts and a schema must be in the first line, before the session begins")]
    Late,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("{0}")]
    Mode(String),
    #[error("`{0}` is not a text")]
    NotText(&'static str),
    #[error("`{0}` is not a task id")]
    TaskId(String),
    #[error("not supported: {0}")]
    Unsupported(String),
}

/// Why a user message is not a prompt.
#[derive(Debug, thiserror::Error)]
enum PromptError {
    #[error("a user message without text")]
    Empty,
    #[error("an image that is not base64")]
    Image,
    #[error("a block without `{0}`")]
    Missing(&'static str),
    #[error("a user message cannot hold `{0}`")]
    Unsupported(String),
}

/// A line that cannot be handled. With an id, the error is sent as the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputError {
    pub(crate) id: Option<String>,
    pub(crate) what: String,
}

/// A line as JSON.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputObject {
    User {
        message: UserMessage,
        #[serde(default)]
        agent_id: Option<AgentId>,
    },
    ControlRequest {
        request_id: String,
        // Parsed later, so that an error can be sent as the answer to this id.
        request: Value,
    },
    ControlResponse {
        response: ControlResponse,
    },
    ControlCancelRequest {},
    KeepAlive {},
}

#[derive(Deserialize)]
struct UserMessage {
    content: Content,
}

/// The content of a user message: text or blocks.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

/// An answer as JSON.
#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum ControlResponse {
    Success {
        request_id: String,
        #[serde(default)]
        response: Value,
    },
    Error {
        request_id: String,
        #[serde(default)]
        error: String,
    },
}

/// Parses a line.
pub(crate) fn read(line: &str) -> Result<StdinMessage, InputError> {
    if line.trim().is_empty() {
        return Ok(StdinMessage::Nothing);
    }
    let line: InputObject =
        serde_json::from_str(line).map_err(|error| not(format!("unknown line: {error}")))?;
    match line {
        InputObject::User {
            message,
            agent_id: to,
        } => prompt(message.content)
            .map(|words| StdinMessage::Prompt { to, words })
            .map_err(|error| not(error.to_string())),
        InputObject::ControlRequest {
            request_id: id,
            request,
        } => match read_request(&request) {
            Ok(request) => Ok(StdinMessage::Request { id, request }),
            Err(error) => Err(InputError {
                id: Some(id),
                what: error.to_string(),
            }),
        },
        InputObject::ControlResponse {
            response:
                ControlResponse::Success {
                    request_id: id,
                    response,
                },
        } => Ok(StdinMessage::Response {
            id,
            response: Ok(response),
        }),
        InputObject::ControlResponse {
            response:
                ControlResponse::Error {
                    request_id: id,
                    error,
                },
        } => Ok(StdinMessage::Response {
            id,
            response: Err(PeerError(error)),
        }),
        // Requests are answered at once, so that none is ever left to cancel.
        InputObject::ControlCancelRequest {} | InputObject::KeepAlive {} => {
            Ok(StdinMessage::Nothing)
        }
    }
}

/// Returns the line that answers a request.
pub(crate) fn response<E: Display>(id: &str, answer: Result<Value, E>) -> Value {
    let response = match answer {
        Ok(answer) => json!({"subtype": "success", "request_id": id, "response": answer}),
        Err(error) => json!({"subtype": "error", "request_id": id, "error": error.to_string()}),
    };
    json!({"type": "control_response", "response": response})
}

/// Returns an error that is not the answer to a request.
fn not(what: String) -> InputError {
    InputError { id: None, what }
}

/// Parses a control request.
fn read_request(request: &Value) -> Result<ControlRequest, RequestError> {
    match request["subtype"].as_str() {
        Some("initialize") => Initialize::read(request)
            .map(Box::new)
            .map(ControlRequest::Initialize),
        Some("interrupt") => match request.get("agent_id").filter(|id| !id.is_null()) {
            None => Ok(ControlRequest::Interrupt(None)),
            Some(id) => {
                let id = id
                    .as_str()
                    .and_then(|id| id.parse().ok())
                    .ok_or(RequestError::AgentId)?;
                Ok(ControlRequest::Interrupt(Some(id)))
            }
        },
        Some("set_permission_mode") => {
            let mode = request["mode"]
                .as_str()
                .ok_or(RequestError::Missing("mode"))?;
            mode.parse()
                .map(ControlRequest::SetMode)
                .map_err(|error| RequestError::Mode(format!("{error}")))
        }
        Some("stop_task") => {
            let task = request["task_id"]
                .as_str()
                .ok_or(RequestError::Missing("task_id"))?;
            Uuid::parse_str(task)
                .map(ControlRequest::StopTask)
                .map_err(|_| RequestError::TaskId(task.to_owned()))
        }
        Some("stop_all_tasks") => Ok(ControlRequest::StopAllTasks),
        Some("background_tasks") => Ok(ControlRequest::BackgroundTasks),
        Some("set_model") => Ok(ControlRequest::SetModel {
            model: text(request, "model")?.unwrap_or_else(|| "default".to_owned()),
            effort: text(request, "effort")?,
        }),
        Some(other) => Err(RequestError::Unsupported(other.to_owned())),
        None => Err(RequestError::Missing("subtype")),
    }
}

/// Returns a field that may be absent.
fn text(request: &Value, name: &'static str) -> Result<Option<String>, RequestError> {
    match &request[name] {
        Value::Null => Ok(None),
        Value::String(text) if !text.trim().is_empty() => Ok(Some(text.clone())),
        _ => Err(RequestError::NotText(name)),
    }
}

/// Returns the blocks of a prompt, which must not be empty.
fn prompt(content: Content) -> Result<Vec<ContentBlock>, PromptError> {
    let blocks = match content {
        Content::Text(text) => vec![ContentBlock::text(text)],
        Content::Blocks(blocks) => blocks.iter().map(block).collect::<Result<_, _>>()?,
    };
    let says_something = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => !text.trim().is_empty(),
        _ => true,
    };
    if blocks.iter().any(says_something) {
        Ok(blocks)
    } else {
        Err(PromptError::Empty)
    }
}

fn block(block: &Value) -> Result<ContentBlock, PromptError> {
    let text = |value: &Value, name: &'static str| {
        value[name]
            .as_str()
            .map(str::to_owned)
            .ok_or(PromptError::Missing(name))
    };
    match block["type"].as_str() {
        Some("text") => text(block, "text").map(ContentBlock::text),
        Some("image") if block["source"]["type"] == "base64" => Ok(ContentBlock::Image {
            media_type: text(&block["source"], "media_type")?,
            data: text(&block["source"], "data")?,
        }),
        Some("image") => Err(PromptError::Image),
        Some(other) => Err(PromptError::Unsupported(other.to_owned())),
        None => Err(PromptError::Missing("type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: Value) -> Result<StdinMessage, InputError> {
        read(&line.to_string())
    }

    #[test]
    fn words_and_pictures_are_prompts() {
        let user = |content: Value| {
            said(json!({"type": "user", "message": {"role": "user", "content": content}}))
        };
        let mine = |words| Ok(StdinMessage::Prompt { to: None, words });
        assert_eq!(
            user(json!("hello")),
            mine(vec![ContentBlock::text("hello")])
        );
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}});
        let told = user(json!([{"type": "text", "text": "what is it?"}, image]));
        let picture = ContentBlock::Image {
            media_type: "image/png".into(),
            data: "eA==".into(),
        };
        assert_eq!(told, mine(vec![ContentBlock::text("what is it?"), picture]));
        let to = AgentId::from(Uuid::from_u128(7));
        let line =
            json!({"type": "user", "agent_id": to, "message": {"role": "user", "content": "you"}});
        assert_eq!(
            said(line),
            Ok(StdinMessage::Prompt {
                to: Some(to),
                words: vec![ContentBlock::text("you")]
            })
        );
        for wrong in [
            json!(""),
            json!([]),
            json!([{"type": "tool_result"}]),
            json!([{}]),
            json!(7),
        ] {
            assert_eq!(user(wrong.clone()).unwrap_err().id, None, "{wrong}");
        }
    }

    // proves CV-04 (part: stream-json)
    #[test]
    fn requests_carry_the_id_that_answers_them() {
        let request = |request: Value| {
            said(json!({"type": "control_request", "request_id": "r1", "request": request}))
        };
        let understood = |request| {
            Ok(StdinMessage::Request {
                id: "r1".into(),
                request,
            })
        };
        assert_eq!(
            request(json!({"subtype": "initialize", "hooks": null})),
            understood(ControlRequest::Initialize(Box::default()))
        );
        assert_eq!(
            request(json!({"subtype": "interrupt"})),
            understood(ControlRequest::Interrupt(None))
        );
        let agent = AgentId::from(Uuid::from_u128(7));
        let one = json!({"subtype": "interrupt", "agent_id": agent});
        assert_eq!(
            request(one),
            understood(ControlRequest::Interrupt(Some(agent)))
        );
        let mode = json!({"subtype": "set_permission_mode", "mode": "acceptEdits"});
        assert_eq!(
            request(mode),
            understood(ControlRequest::SetMode(PermissionMode::AcceptEdits))
        );
        for (model, effort, named) in [
            (json!(null), json!(null), ("default", None)),
            (json!("default"), json!("low"), ("default", Some("low"))),
            (json!("opus"), json!(null), ("opus", None)),
        ] {
            let set = json!({"subtype": "set_model", "model": model, "effort": effort});
            let (model, effort) = (named.0.to_owned(), named.1.map(str::to_owned));
            assert_eq!(
                request(set),
                understood(ControlRequest::SetModel { model, effort })
            );
        }
        let task = Uuid::from_u128(5);
        let stop = json!({"subtype": "stop_task", "task_id": task});
        assert_eq!(request(stop), understood(ControlRequest::StopTask(task)));
        assert_eq!(
            request(json!({"subtype": "stop_all_tasks"})),
            understood(ControlRequest::StopAllTasks)
        );
        assert_eq!(
            request(json!({"subtype": "background_tasks"})),
            understood(ControlRequest::BackgroundTasks)
        );
        for (wrong, what) in [
            (
                json!({"subtype": "stop_task", "task_id": "7"}),
                "not a task id",
            ),
            (json!({"subtype": "stop_task"}), "`task_id` is missing"),
            (
                json!({"subtype": "set_model", "model": 5}),
                "`model` is not a text",
            ),
            (
                json!({"subtype": "set_model", "model": ""}),
                "`model` is not a text",
            ),
            (
                json!({"subtype": "interrupt", "agent_id": "dev"}),
                "not an agent id",
            ),
            (
                json!({"subtype": "set_permission_mode", "mode": "yolo"}),
                "not a permission mode",
            ),
            (json!({"subtype": "dance"}), "not supported: dance"),
            (json!({}), "missing"),
        ] {
            let error = request(wrong).unwrap_err();
            assert_eq!(error.id.as_deref(), Some("r1"));
            assert!(error.what.contains(what), "{}", error.what);
        }
    }

    #[test]
    fn answers_are_matched_and_rubbish_is_told() {
        let response =
            json!({"subtype": "success", "request_id": "q", "response": {"behavior": "allow"}});
        assert_eq!(
            said(json!({"type": "control_response", "response": response})),
            Ok(StdinMessage::Response {
                id: "q".into(),
                response: Ok(json!({"behavior": "allow"}))
            })
        );
        let response = json!({"subtype": "error", "request_id": "q", "error": "no"});
        assert_eq!(
            said(json!({"type": "control_response", "response": response})),
            Ok(StdinMessage::Response {
                id: "q".into(),
                response: Err(PeerError("no".into()))
            })
        );
        assert_eq!(read("  \n"), Ok(StdinMessage::Nothing));
        for rubbish in [
            "{",
            "[]",
            "7",
            r#"{"type":"nothing"}"#,
            r#"{"type":"user"}"#,
        ] {
            assert!(read(rubbish).is_err(), "{rubbish}");
        }
    }
}
