//! The lines of MCP, in both eras of the protocol. It decides without waiting for anything.
//!
//! Clients up to 2025-11-25 begin with `initialize`. Since 2026-07-28 there is no beginning: each
//! request names its version, and `server/discover` tells which ones there are.

use serde::Serialize;
use serde_json::{Map, Number, Value, json};

/// The version in which each request names it.
const NAMED: &str = "2026-07-28";
/// The versions with `initialize`, the newest first.
const INITIALIZED: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Where a request names its version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where a result names the server.
const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// Milliseconds for which what is listed can be kept: it does not change.
const FRESH_MS: u64 = 3_600_000;
/// Maximum length of a line in bytes.
const MOST_LINE: usize = 16 << 20;

/// What a client is told about this server.
const INSTRUCTIONS: &str = "Runs coding agents of posse in the directory it was started in, and \
     shows their sessions, tasks and mail. `run` waits until the agent is done; a session can be \
     continued with its ID.";

/// What a message asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ClientMessage {
    Request(ClientRequest),
    /// The answer to this request is not wanted any more.
    Cancelled(RequestId),
    /// Nothing to do.
    Nothing,
}

/// A request that is to be answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClientRequest {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// The ID of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum RequestId {
    Number(Number),
    Text(String),
}

/// Which era a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolEra {
    /// The versions with `initialize`.
    Initialized,
    /// The version that each request names.
    Named,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestFault {
    #[error("not JSON: {0}")]
    NotJson(String),
    #[error("{0}")]
    NotARequest(&'static str),
    #[error("there is no method {0}")]
    NoMethod(String),
    #[error("{0}")]
    WrongParams(String),
    #[error("the protocol version {0} is not supported")]
    UnsupportedVersion(String),
    #[error("{0}")]
    Busy(&'static str),
    #[error("the call has failed: this is a bug in posse, please report it")]
    Failed,
}

impl RequestFault {
    fn code(&self) -> i32 {
        match self {
            Self::NotJson(_) => -32700,
            Self::NotARequest(_) => -32600,
            Self::NoMethod(_) => -32601,
            Self::WrongParams(_) => -32602,
            Self::Failed => -32603,
            Self::Busy(_) => -32000,
            Self::UnsupportedVersion(_) => -32022,
        }
    }

    fn data(&self) -> Option<Value> {
        match self {
            Self::UnsupportedVersion(version) => {
                Some(json!({ "supported": [NAMED], "requested": version }))
            }
            _ => None,
        }
    }
}

impl RequestId {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) if !number.is_f64() => Some(Self::Number(number.clone())),
            Value::String(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }
}

/// Reads a line. The error is the answer to it.
pub(super) fn read(line: &str) -> Result<ClientMessage, Value> {
    if line.len() > MOST_LINE {
        return Err(unanswerable(&RequestFault::NotARequest(
            "the line is longer than 16 MiB",
        )));
    }
    if line.trim().is_empty() {
        return Ok(ClientMessage::Nothing);
    }
    let value: Value = serde_json::from_str(line)
        .map_err(|error| unanswerable(&RequestFault::NotJson(error.to_string())))?;
    let id = RequestId::read(&value["id"]);
    let wrong = |what| {
        let fault = RequestFault::NotARequest(what);
        Err(match &id {
            Some(id) => failure(id, &fault),
            None => unanswerable(&fault),
        })
    };
    if !value.is_object() {
        return wrong("a message is one JSON object");
    }
    let Some(method) = value["method"].as_str() else {
        // This server asks for nothing, and so an answer is to nobody.
        let is_answer = value.get("result").is_some() || value.get("error").is_some();
        return match is_answer {
            true => Ok(ClientMessage::Nothing),
            false => wrong("a request has a `method`"),
        };
    };
    let params = match &value["params"] {
        Value::Null => Map::new(),
        Value::Object(params) => params.clone(),
        _ => return wrong("`params` is an object"),
    };
    match (id.clone(), value.get("id")) {
        (Some(id), _) => Ok(ClientMessage::Request(ClientRequest {
            id,
            method: method.to_owned(),
            params,
        })),
        (None, Some(_)) => wrong("`id` is a text or a whole number"),
        (None, None) if method == "notifications/cancelled" => {
            let about = params.get("requestId").and_then(RequestId::read);
            Ok(about.map_or(ClientMessage::Nothing, ClientMessage::Cancelled))
        }
        (None, None) => Ok(ClientMessage::Nothing),
    }
}

/// Returns the answer to a line that is not text.
pub(super) fn unreadable(what: &'static str) -> Value {
    unanswerable(&RequestFault::NotARequest(what))
}

fn unanswerable(fault: &RequestFault) -> Value {
    let mut answer = json!({ "jsonrpc": "2.0", "id": null });
    answer["error"] = error(fault);
    answer
}

/// Returns the answer to a request that has no result.
pub(super) fn failure(id: &RequestId, fault: &RequestFault) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error(fault) })
}

fn error(fault: &RequestFault) -> Value {
    let mut error = json!({ "code": fault.code(), "message": fault.to_string() });
    if let Some(data) = fault.data() {
        error["data"] = data;
    }
    error
}

/// Returns the answer to a request.
pub(super) fn success(id: &RequestId, mut result: Value, era: ProtocolEra) -> Value {
    if era == ProtocolEra::Named {
        result["resultType"] = "complete".into();
        result["_meta"] = json!({ SERVER: about() });
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns what tells a client how far a request has come.
pub(super) fn progress(token: &Value, number: u64, message: &str) -> Value {
    let params = json!({ "progressToken": token, "progress": number, "message": message });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

/// Returns the era of a request.
pub(super) fn era_of(
    request: &ClientRequest,
    is_initialized: bool,
) -> Result<ProtocolEra, RequestFault> {
    let version = &request.params.get("_meta").unwrap_or(&Value::Null)[VERSION];
    match (version.as_str(), request.method.as_str()) {
        (_, "initialize") => Ok(ProtocolEra::Initialized),
        (Some(NAMED), _) => Ok(ProtocolEra::Named),
        (Some(other), _) if !is_initialized => {
            Err(RequestFault::UnsupportedVersion(other.to_owned()))
        }
        (None, "ping") => Ok(ProtocolEra::Initialized),
        (_, _) if is_initialized => Ok(ProtocolEra::Initialized),
        (_, _) => Err(RequestFault::WrongParams(format!(
            "send `initialize` first, or name the protocol's version in `_meta` as `{VERSION}`"
        ))),
    }
}

/// Returns the result of `initialize`.
pub(super) fn initialized(params: &Map<String, Value>) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = wanted.filter(|it| INITIALIZED.contains(it));
    json!({
        "protocolVersion": version.unwrap_or(INITIALIZED[0]), "capabilities": capabilities(),
        "serverInfo": about(), "instructions": INSTRUCTIONS,
    })
}

/// Returns the result of `server/discover`.
pub(super) fn discovered() -> Value {
    json!({
        "supportedVersions": [NAMED], "capabilities": capabilities(), "instructions": INSTRUCTIONS,
        "ttlMs": FRESH_MS, "cacheScope": "private",
    })
}

/// Returns the result of `tools/list`.
pub(super) fn listed(tools: Vec<Value>, era: ProtocolEra) -> Value {
    match era {
        ProtocolEra::Initialized => json!({ "tools": tools }),
        ProtocolEra::Named => {
            json!({ "tools": tools, "ttlMs": FRESH_MS, "cacheScope": "private" })
        }
    }
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn about() -> Value {
    json!({ "name": "posse", "title": "posse", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &Value) -> ClientRequest {
        match read(&line.to_string()) {
            Ok(ClientMessage::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn code(line: &str) -> (Value, i64) {
        let answer = read(line).unwrap_err();
        (
            answer["id"].clone(),
            answer["error"]["code"].as_i64().unwrap(),
        )
    }

    #[test]
    fn what_is_no_message_is_answered_with_its_id_if_it_has_one() {
        assert_eq!(code("{"), (Value::Null, -32700));
        assert_eq!(code("[]"), (Value::Null, -32600));
        assert_eq!(code("7"), (Value::Null, -32600));
        assert_eq!(code(r#"{"id": 3}"#), (json!(3), -32600));
        assert_eq!(code(r#"{"id": 1.5, "method": "x"}"#), (Value::Null, -32600));
        assert_eq!(
            code(r#"{"id": "a", "method": "x", "params": []}"#),
            (json!("a"), -32600)
        );
        assert_eq!(code(&" ".repeat(MOST_LINE + 1)), (Value::Null, -32600));
        for quiet in [
            "",
            r#"{"id": 1, "result": {}}"#,
            r#"{"method": "notifications/x"}"#,
        ] {
            assert_eq!(read(quiet), Ok(ClientMessage::Nothing), "{quiet}");
        }
        let cancelled = json!({"method": "notifications/cancelled", "params": {"requestId": "a"}});
        let id = RequestId::Text("a".into());
        assert_eq!(
            read(&cancelled.to_string()),
            Ok(ClientMessage::Cancelled(id))
        );
    }

    #[test]
    fn a_request_is_of_the_era_that_it_names() {
        let era = |method: &str, version: Option<&str>, is_initialized| {
            let meta = version.map(|it| json!({ VERSION: it }));
            let line = json!({"id": 1, "method": method, "params": {"_meta": meta}});
            era_of(&request(&line), is_initialized)
        };
        assert_eq!(
            era("tools/list", Some(NAMED), false),
            Ok(ProtocolEra::Named)
        );
        assert_eq!(era("initialize", None, false), Ok(ProtocolEra::Initialized));
        assert_eq!(era("ping", None, false), Ok(ProtocolEra::Initialized));
        assert_eq!(era("tools/list", None, true), Ok(ProtocolEra::Initialized));
        assert!(matches!(
            era("tools/list", None, false),
            Err(RequestFault::WrongParams(_))
        ));
        let fault = era("server/discover", Some("2030-01-01"), false).unwrap_err();
        let answer = failure(&RequestId::Text("a".into()), &fault);
        assert_eq!(answer["error"]["code"], -32022);
        let data = json!({"supported": [NAMED], "requested": "2030-01-01"});
        assert_eq!(answer["error"]["data"], data);
    }

    #[test]
    fn initialize_agrees_to_versions_that_are_known() {
        let version = |wanted: &str| {
            let params = json!({ "protocolVersion": wanted });
            initialized(params.as_object().unwrap())["protocolVersion"].clone()
        };
        assert_eq!(version("2024-11-05"), "2024-11-05");
        assert_eq!(version("2026-07-28"), "2025-11-25");
        assert_eq!(version("x"), "2025-11-25");
    }
}
