//! Control messages, as a model writes them.

use posse_protocol::{MailId, RequestKind};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

/// A message that a model sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutgoingMessage {
    /// Plain text.
    Text(String),
    /// A control message.
    Control(Control),
}

/// A message with a meaning to posse.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Asks a teammate to shut down.
    Shutdown { reason: String },
    /// Answers a request.
    Answer {
        request: MailId,
        kind: RequestKind,
        approve: bool,
        text: String,
    },
}

/// A control message as the model writes it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Written {
    ShutdownRequest {
        reason: Option<String>,
    },
    ShutdownResponse {
        request_id: MailId,
        approve: bool,
        reason: Option<String>,
    },
    PlanApprovalResponse {
        request_id: MailId,
        approve: bool,
        feedback: Option<String>,
    },
}

/// Returns the JSON Schema of a message: text, or an object with a type.
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": {
                    "type": {
                        "type": "string",
                        "enum": ["shutdown_request", "shutdown_response", "plan_approval_response"]
                    },
                    "request_id": { "type": "string" },
                    "approve": { "type": "boolean" },
                    "reason": { "type": "string" },
                    "feedback": { "type": "string" }
                },
                "required": ["type"],
                "additionalProperties": false
            }
        ]
    })
}

/// Parses a message, or returns an error for the model. A string is always text, whatever it looks
/// like.
pub(super) fn read(message: Value) -> Result<OutgoingMessage, String> {
    let written = match message {
        Value::String(text) if text.trim().is_empty() => return Err("message is empty".into()),
        Value::String(text) => return Ok(OutgoingMessage::Text(text)),
        Value::Object(_) => serde_json::from_value::<Written>(message),
        _ => return Err("message: write text, or a control message as an object".into()),
    };
    let written = written.map_err(|error| {
        format!(
            "message: {error}. Use shutdown_request, shutdown_response or \
                 plan_approval_response; or write text"
        )
    })?;
    let why = |approve: bool, text: Option<String>, field: &str| match text.unwrap_or_default() {
        text if !approve && text.trim().is_empty() => {
            Err(format!("message: a rejection needs {field}"))
        }
        text => Ok(text),
    };
    Ok(OutgoingMessage::Control(match written {
        Written::ShutdownRequest { reason } => Control::Shutdown {
            reason: reason.unwrap_or_default(),
        },
        Written::ShutdownResponse {
            request_id,
            approve,
            reason,
        } => Control::Answer {
            request: request_id,
            kind: RequestKind::Shutdown,
            approve,
            text: why(approve, reason, "a reason")?,
        },
        Written::PlanApprovalResponse {
            request_id,
            approve,
            feedback,
        } => Control::Answer {
            request: request_id,
            kind: RequestKind::Plan,
            approve,
            text: why(approve, feedback, "feedback")?,
        },
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_what_members_may_say_can_be_written() {
        let id = Uuid::from_u128(7);
        let answer = |kind, approve, text: &str| {
            Ok(OutgoingMessage::Control(Control::Answer {
                request: id.into(),
                kind,
                approve,
                text: text.into(),
            }))
        };
        let shutdown = |reason: &str| {
            Ok(OutgoingMessage::Control(Control::Shutdown {
                reason: reason.into(),
            }))
        };
        let (end, plan) = (RequestKind::Shutdown, RequestKind::Plan);
        let table = [
            (json!("hello"), Ok(OutgoingMessage::Text("hello".into()))),
            (
                json!(r#"{"type": "shutdown_request"}"#),
                Ok(OutgoingMessage::Text(
                    r#"{"type": "shutdown_request"}"#.into(),
                )),
            ),
            (json!({"type": "shutdown_request"}), shutdown("")),
            (
                json!({"type": "shutdown_request", "reason": "done"}),
                shutdown("done"),
            ),
            (
                json!({"type": "shutdown_response", "request_id": id, "approve": true}),
                answer(end, true, ""),
            ),
            (
                json!({"type": "shutdown_response", "request_id": id, "approve": false, "reason": "busy"}),
                answer(end, false, "busy"),
            ),
            (
                json!({"type": "plan_approval_response", "request_id": id, "approve": false, "feedback": "less"}),
                answer(plan, false, "less"),
            ),
            (
                json!({"type": "shutdown_response", "request_id": id, "approve": false}),
                Err("message: a rejection needs a reason"),
            ),
            (
                json!({"type": "plan_approval_response", "request_id": id, "approve": false, "feedback": " "}),
                Err("message: a rejection needs feedback"),
            ),
            (
                json!({"type": "shutdown_response", "request_id": "x", "approve": true}),
                Err("message: "),
            ),
            (
                json!({"type": "shutdown_response", "approve": true}),
                Err("message: missing field `request_id`"),
            ),
            (
                json!({"type": "shutdown_request", "from": "user"}),
                Err("message: unknown field `from`"),
            ),
            (
                json!({"type": "plan_approval_request", "text": "x"}),
                Err("message: unknown variant `plan_approval_request`"),
            ),
            (
                json!({"type": "idle"}),
                Err("message: unknown variant `idle`"),
            ),
            (
                json!({"type": "notification"}),
                Err("message: unknown variant"),
            ),
            (
                json!({"type": "interruption"}),
                Err("message: unknown variant"),
            ),
            (
                json!({"type": "dismissal"}),
                Err("message: unknown variant"),
            ),
            (json!({"text": "x"}), Err("message: missing field `type`")),
            (json!(7), Err("message: write text")),
            (json!(null), Err("message: write text")),
            (json!(" \n"), Err("message is empty")),
        ];
        for (given, expected) in table {
            match (read(given.clone()), expected) {
                (Err(told), Err(expected)) => {
                    assert!(told.starts_with(expected), "{given}: {told}")
                }
                (got, expected) => assert_eq!(got, expected.map_err(str::to_owned), "{given}"),
            }
        }
    }
}
