//! Hooks that call a tool of a server which the session has.

use std::sync::Arc;

use posse_permission::{Policy, Rights};
use posse_port::hooks::{HookFailure, HookReturn};
use posse_port::servers::{NoAsker, ServerAnswer, ServerCall, ServerFailure};
use posse_port::tool::LiveOutput;
use posse_protocol::{AgentId, RawJson, ToolContent};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::definition::server::tool_name;
use crate::hook::HookTool;
use crate::live::servers::AgentServers;
use crate::live::session::Session;

/// The servers that hooks of a session can call.
#[derive(Clone)]
pub(crate) struct HookServers {
    servers: AgentServers,
    policy: Arc<Policy>,
    session: AgentId,
}

impl HookServers {
    /// Returns those of a session; none if it has none.
    pub(crate) fn of(session: &Session, rights: &Rights) -> Option<Self> {
        Some(Self {
            servers: session.servers.of_main()?,
            policy: rights.policy(),
            session: session.root,
        })
    }

    /// Calls the tool of a hook. `happened` is what other hooks read.
    pub(crate) async fn call(
        &self,
        tool: &HookTool,
        happened: &[u8],
        cancel: CancellationToken,
    ) -> HookReturn {
        let name = tool_name(&tool.server, &tool.tool);
        let usable = self.servers.usable(&self.policy);
        let found = usable.into_iter().find(|(name, _)| *name == tool.server);
        let Some((_, server)) = found.filter(|_| self.servers.may_have(&name, &self.policy)) else {
            let why = format!(
                "there is no MCP server {} here, or a rule denies it",
                tool.server
            );
            return failed(HookFailure::NotRun(why));
        };
        let happened = serde_json::from_slice(happened).unwrap_or_default();
        let answer = server.call(ServerCall {
            tool: tool.tool.clone(),
            input: RawJson::from(&filled_object(&tool.input, &happened)),
            session: self.session,
            path: "hook".into(),
            output: LiveOutput::default(),
            overflow: None,
            asker: Arc::new(NoAsker),
            cancel,
        });
        match answer.await {
            Ok(answer) => returned(&answer),
            Err(ServerFailure::Stopped) => failed(HookFailure::Stopped),
            Err(failure) => failed(HookFailure::Refused(failure.to_string())),
        }
    }
}

/// Returns what a tool has said, as if a program had printed it.
fn returned(answer: &ServerAnswer) -> HookReturn {
    let texts = answer.content.iter().filter_map(|part| match part {
        ToolContent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let (output, errors) = match answer.is_error {
        true => (String::new(), text),
        false => (text, String::new()),
    };
    HookReturn {
        output,
        errors,
        code: Some(answer.is_error.into()),
        ..HookReturn::default()
    }
}

fn failed(failure: HookFailure) -> HookReturn {
    HookReturn {
        failure: Some(failure),
        ..HookReturn::default()
    }
}

fn filled_object(input: &Map<String, Value>, happened: &Value) -> Value {
    let filled = input
        .iter()
        .map(|(key, value)| (key.clone(), filled(value, happened)));
    Value::Object(filled.collect())
}

/// Returns a value with each `${a.b}` in its texts replaced by what happened.
fn filled(value: &Value, happened: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(filled_text(text, happened)),
        Value::Array(values) => values.iter().map(|it| filled(it, happened)).collect(),
        Value::Object(object) => filled_object(object, happened),
        other => other.clone(),
    }
}

/// What is not there is empty.
fn filled_text(text: &str, happened: &Value) -> String {
    let mut parts = text.split("${");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((path, rest)) = part.split_once('}') else {
            out.push_str("${");
            out.push_str(part);
            continue;
        };
        let mut found = Some(happened);
        for key in path.split('.') {
            found = found.and_then(|it| it.get(key));
        }
        match found {
            Some(Value::String(text)) => out.push_str(text),
            Some(Value::Null) | None => {}
            Some(other) => out.push_str(&other.to_string()),
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_happened_takes_the_place_of_its_names() {
        let happened = json!({"tool_input": {"file_path": "a.rs", "n": 3}, "tool_name": "Write"});
        let input = json!({
            "path": "${tool_input.file_path}", "about": "${tool_name} ${tool_input.n}${gone.x}!",
            "list": ["${tool_name}", 1], "open": "${tool_name",
        });
        assert_eq!(
            filled(&input, &happened),
            json!({
                "path": "a.rs", "about": "Write 3!", "list": ["Write", 1], "open": "${tool_name",
            })
        );
    }
}
