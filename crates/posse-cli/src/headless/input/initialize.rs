//! The first request of a program, which says what its session is like.

use std::sync::Arc;
use std::time::Duration;

use posse_runtime::definition::output_schema::OutputSchema;
use posse_runtime::hook::{
    Condition, Hook, HookAction, HookEvent, HookLayer, HookOrigin, HookState, Matcher, OnFailure,
    RunsBeside,
};
use serde_json::Value;

use super::RequestError;
use crate::assemble::run_config::RunConfig;
use crate::definitions::InlineAgents;

/// Keys that posse uses, or that ask for nothing that could be missed.
const USED: [&str; 7] = [
    "subtype",
    "hooks",
    "agents",
    "systemPrompt",
    "appendSystemPrompt",
    "jsonSchema",
    "systemPromptSnapshot",
];

/// What an `initialize` asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Initialize {
    agents: Option<Value>,
    system_prompt: Option<String>,
    append_system_prompt: Option<String>,
    json_schema: Option<Value>,
    /// Its hooks, which it answers for itself.
    pub(crate) hooks: Vec<Arc<Hook>>,
    /// Keys that posse does not use.
    pub(crate) unused: Vec<String>,
}

impl Initialize {
    /// Parses the request.
    pub(super) fn read(request: &Value) -> Result<Self, RequestError> {
        let keys = request.as_object().into_iter().flatten();
        let unused = keys
            .filter(|(key, value)| !USED.contains(&key.as_str()) && given(value).is_some())
            .map(|(key, _)| key.clone());
        Ok(Self {
            agents: given(&request["agents"]).cloned(),
            system_prompt: text(request, "systemPrompt")?,
            append_system_prompt: text(request, "appendSystemPrompt")?,
            json_schema: given(&request["jsonSchema"]).cloned(),
            hooks: given(&request["hooks"]).map_or(Ok(Vec::new()), hooks)?,
            unused: unused.collect(),
        })
    }

    /// Returns true if it changes what the session is like.
    pub(crate) fn shapes_session(&self) -> bool {
        self.agents.is_some()
            || self.system_prompt.is_some()
            || self.append_system_prompt.is_some()
            || self.json_schema.is_some()
            || !self.hooks.is_empty()
    }

    /// Applies it to a session that is not open yet.
    pub(crate) fn apply(self, config: &mut RunConfig) -> Result<(), RequestError> {
        let wrong = |error: &dyn std::fmt::Display| RequestError::Initialize(error.to_string());
        if let Some(agents) = &self.agents {
            let given = InlineAgents::read(&agents.to_string()).map_err(|error| wrong(&error))?;
            config.given = config.given.joined(&given).map_err(|error| wrong(&error))?;
        }
        if let Some(schema) = &self.json_schema {
            let schema = OutputSchema::new(schema).map_err(|error| wrong(&error))?;
            config.flags.profile.json_schema = Some(schema);
        }
        config.system_prompt = self.system_prompt.or(config.system_prompt.take());
        config.append_system_prompt = self
            .append_system_prompt
            .or(config.append_system_prompt.take());
        Ok(())
    }
}

/// Returns the `initialize` of a line and the id that answers it, if it is one.
pub(crate) fn of_line(line: &str) -> Option<(String, Result<Initialize, RequestError>)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let request = &line["request"];
    if line["type"] != "control_request" || request["subtype"] != "initialize" {
        return None;
    }
    let id = line["request_id"].as_str()?;
    Some((id.to_owned(), Initialize::read(request)))
}

/// Returns a text, or several of them as one.
fn text(request: &Value, key: &str) -> Result<Option<String>, RequestError> {
    let texts: Option<Vec<&str>> = match &request[key] {
        Value::Null => return Ok(None),
        Value::Array(texts) => texts.iter().map(Value::as_str).collect(),
        text => text.as_str().map(|text| vec![text]),
    };
    let texts = texts.ok_or_else(|| odd(key, "a text or a list of texts"))?;
    Ok(Some(texts.join("\n\n")))
}

/// Returns the hooks of a program: by event, groups of functions. What is not known is refused: a
/// program that sends hooks relies on them.
fn hooks(value: &Value) -> Result<Vec<Arc<Hook>>, RequestError> {
    let wrong = |what: String| RequestError::Initialize(what);
    let events = value.as_object().ok_or_else(|| odd("hooks", "an object"))?;
    let mut found = Vec::new();
    for (name, groups) in events {
        let event =
            HookEvent::named(name).ok_or_else(|| wrong(format!("`{name}` is not a hook event")))?;
        if let Some(why) = event.never() {
            return Err(wrong(format!("{name} never happens in posse: {why}")));
        }
        let groups = groups.as_array().ok_or_else(|| odd(name, "a list"))?;
        for group in groups {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            let matcher =
                Matcher::read(matcher, event).map_err(|error| wrong(error.to_string()))?;
            let on_failure = match group["onFailure"].as_str() {
                None | Some("continue") => OnFailure::Continue,
                Some("block") => OnFailure::Block,
                Some(_) => return Err(odd("onFailure", "`continue` or `block`")),
            };
            let timeout = group["timeout"].as_f64().filter(|it| *it > 0.0);
            let ids = group["hookCallbackIds"].as_array();
            let ids = ids.ok_or_else(|| odd("hookCallbackIds", "a list"))?;
            for id in ids.iter().filter_map(Value::as_str) {
                found.push(Arc::new(Hook {
                    event,
                    matcher: matcher.clone(),
                    condition: Condition::None,
                    action: HookAction::Callback { id: id.to_owned() },
                    timeout: timeout.and_then(|it| Duration::try_from_secs_f64(it).ok()),
                    on_failure,
                    status_message: None,
                    once: false,
                    beside: RunsBeside::No,
                    origin: HookOrigin {
                        layer: HookLayer::Program,
                        file: "the program".into(),
                        line: None,
                        of_repository: false,
                    },
                    state: HookState::Active,
                }));
            }
        }
    }
    Ok(found)
}

/// Returns the error for a value that is not what it should be.
fn odd(key: &str, expected: &str) -> RequestError {
    RequestError::Initialize(format!("`{key}` must be {expected}"))
}

/// Returns a value unless it is missing, false or empty.
fn given(value: &Value) -> Option<&Value> {
    let is_empty = match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    };
    (!is_empty).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_are_read_and_unused_keys_are_listed() {
        let hooks = json!({
            "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 2}],
            "Stop": [{"matcher": null, "hookCallbackIds": ["hook_2"]}],
        });
        let read = Initialize::read(&json!({"subtype": "initialize", "hooks": hooks})).unwrap();
        let found: Vec<_> = read
            .hooks
            .iter()
            .map(|hook| (hook.event, hook.title()))
            .collect();
        let expected = [
            (HookEvent::PreToolUse, "callback hook_0".to_owned()),
            (HookEvent::PreToolUse, "callback hook_1".to_owned()),
            (HookEvent::Stop, "callback hook_2".to_owned()),
        ];
        assert_eq!(found, expected);
        assert_eq!(read.hooks[0].limit(), Duration::from_secs(2));
        let strict = json!({"PreToolUse": [{"onFailure": "block", "hookCallbackIds": ["hook_0"]}]});
        let strict = Initialize::read(&json!({"subtype": "initialize", "hooks": strict})).unwrap();
        assert!(strict.hooks[0].blocks_on_failure() && !read.hooks[0].blocks_on_failure());
        let unknown = json!({"PreToolUs": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
        let error = Initialize::read(&json!({"subtype": "initialize", "hooks": unknown}));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("PreToolUs"), "{error}");
        let request = json!({
            "subtype": "initialize", "hooks": null, "systemPrompt": ["a", "b"], "title": "x",
            "promptSuggestions": false, "sdkMcpServers": ["calc"],
        });
        let read = Initialize::read(&request).unwrap();
        assert_eq!(read.unused, ["title", "sdkMcpServers"]);
        assert_eq!(read.system_prompt.as_deref(), Some("a\n\nb"));
        assert!(read.shapes_session());
        let plain = json!({"subtype": "initialize", "hooks": {}});
        assert_eq!(Initialize::read(&plain), Ok(Initialize::default()));
    }

    // proves FC-11 (part: hooks)
    #[test]
    fn what_cannot_be_understood_is_refused() {
        let preset = json!({"type": "preset", "preset": "claude_code", "append": "x"});
        for (key, value) in [
            ("hooks", json!(["PreToolUse"])),
            ("hooks", json!("PreToolUse")),
            ("systemPrompt", preset),
            ("systemPrompt", json!(["a", 3])),
            ("appendSystemPrompt", json!({"text": "x"})),
        ] {
            let error = Initialize::read(&json!({"subtype": "initialize", (key): value}));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(&format!("`{key}` must be ")), "{error}");
        }
    }
}
