//! Parses and checks a request of the Messages API.

use http::HeaderMap;
use serde_json::Value;

use super::headers::Asked;
use super::{binding, deferred, pairing, rules};
use crate::api_error::ApiRefusal;
use crate::conversation::{Conversation, text_of};
use crate::models::{self, ModelFacts};
use crate::prefix::{Builder, RequestPrefix, Section, ttl_of};
use crate::schema;

/// A request that the API would accept.
#[derive(Debug)]
pub(crate) struct AnthropicRequest {
    pub(crate) body: Value,
    pub(crate) model: &'static ModelFacts,
    pub(crate) prefix: RequestPrefix,
    /// Hash of the whole prompt, to which thinking in the reply is bound.
    pub(crate) prompt_hash: u64,
    /// Thinking blocks that were dropped because they belong to another conversation.
    pub(crate) dropped: Vec<Value>,
}

impl AnthropicRequest {
    /// Checks the body of `POST /v1/messages`.
    pub(crate) fn read(asked: &Asked, body: &[u8]) -> Result<Self, ApiRefusal> {
        let mut body = parse(body)?;
        if asked.old_version {
            rules::take_sampling(&mut body)?;
        }
        asked.check_fields(&body, &schema::MESSAGES, &schema::MESSAGES_BETA)?;
        rules::check_output(&body, find_model(&body)?)?;
        Self::judged(asked, body)
    }

    /// Checks the body of `POST /v1/messages/count_tokens`.
    pub(crate) fn read_for_count(asked: &Asked, body: &[u8]) -> Result<Self, ApiRefusal> {
        let body = parse(body)?;
        asked.check_fields(&body, &schema::COUNT_TOKENS, &schema::COUNT_TOKENS_BETA)?;
        Self::judged(asked, body)
    }

    /// Checks what both requests have in common.
    fn judged(asked: &Asked, mut body: Value) -> Result<Self, ApiRefusal> {
        let model = find_model(&body)?;
        if !asked.old_version {
            rules::check_removed(&body)?;
        }
        rules::check(&body, model)?;
        pairing::check(&body["messages"])?;
        let (dropped, prompt_hash) = binding::check(asked, &mut body, model.id)?;
        let prefix = prefix_of(&body, model);
        if prefix.tokens() > model.context {
            return Err(ApiRefusal::invalid(format!(
                "prompt is too long: {} tokens > {} maximum",
                prefix.tokens(),
                model.context
            )));
        }
        Ok(Self {
            body,
            model,
            prefix,
            prompt_hash,
            dropped,
        })
    }

    /// Returns true if the reply is to be streamed.
    pub(crate) fn streams(&self) -> bool {
        self.body["stream"] == true
    }

    /// Returns a tool that a reply calls although its definition was not loaded.
    pub(crate) fn unloaded<'a>(&self, called: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        deferred::unloaded(&self.body, called)
    }

    /// Returns the request as a script sees it.
    pub(crate) fn conversation(&self, headers: &HeaderMap, with_text: bool) -> Conversation {
        let messages = self.body["messages"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let of_role = |role: &'static str| {
            messages
                .iter()
                .filter(move |message| message["role"] == role)
        };
        let last_user = of_role("user")
            .rev()
            .map(|message| text_of(&message["content"]))
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let results = messages
            .last()
            .and_then(|last| last["content"].as_array())
            .into_iter()
            .flatten();
        let tool_texts: Vec<String> = results
            .filter(|block| block["type"] == "tool_result")
            .map(|block| text_of(&block["content"]))
            .collect();
        let mut all_text = String::new();
        if with_text {
            all_text = text_of(&self.body["system"]);
            for message in messages {
                all_text.push('\n');
                all_text.push_str(&text_of(&message["content"]));
            }
        }
        Conversation {
            agent: agent_of(headers),
            model: self.body["model"].as_str().unwrap_or_default().to_owned(),
            last_user,
            last_tool: tool_texts.join("\n"),
            turn: of_role("assistant").count() as u32 + 1,
            all_text,
        }
    }
}

/// Returns the agent's path, or for other clients whatever identifies them.
pub(crate) fn agent_of(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    text("x-posse-agent")
        .or_else(|| text("x-claude-code-agent-id"))
        .unwrap_or_default()
        .to_owned()
}

fn parse(body: &[u8]) -> Result<Value, ApiRefusal> {
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        ApiRefusal::invalid(format!("The request body is not valid JSON: {error}"))
    })?;
    if body.is_object() {
        Ok(body)
    } else {
        Err(ApiRefusal::invalid("The request body is not a JSON object"))
    }
}

fn find_model(body: &Value) -> Result<&'static ModelFacts, ApiRefusal> {
    let id = body["model"].as_str().unwrap_or_default();
    models::find(id).ok_or_else(|| ApiRefusal::new(404, format!("model: {id}")))
}

/// Returns the prompt as the cache sees it: the text, and the settings that affect it.
fn prefix_of(body: &Value, model: &ModelFacts) -> RequestPrefix {
    let mut builder = Builder::new(model.id);
    add_tools(&mut builder, body);
    // A setting at its default is the same as none. The order is that in which the cache depends
    // on them: a change affects everything after it.
    builder.setting("speed", &body["speed"], "standard");
    add_system(&mut builder, body);
    builder.setting("tool_choice", &body["tool_choice"], r#"{"type":"auto"}"#);
    builder.setting("thinking", &body["thinking"], "");
    builder.setting(
        "effort",
        &body["output_config"]["effort"],
        model.default_effort,
    );
    let mut images = false;
    each_block(body, |block| images |= block["type"] == "image");
    builder.setting("images", &images.into(), "false");
    for message in body["messages"].as_array().into_iter().flatten() {
        binding::add_message(&mut builder, message);
    }
    let mut prefix = builder.finish();
    let automatic = &body["cache_control"];
    let last_cacheable = prefix
        .positions
        .iter_mut()
        .rev()
        .find(|position| position.cacheable);
    if let (false, Some(last)) = (automatic.is_null(), last_cacheable) {
        last.mark = last.mark.or(Some(ttl_of(automatic)));
    }
    prefix
}

/// Adds the tools, which are cached first.
pub(super) fn add_tools(builder: &mut Builder, body: &Value) {
    for tool in body["tools"].as_array().into_iter().flatten() {
        match deferred::is_deferred(tool) {
            true => builder.defer(tool),
            false => builder.block(Section::Tools, "", tool),
        }
    }
}

/// Adds the system prompt, which is cached second.
pub(super) fn add_system(builder: &mut Builder, body: &Value) {
    match &body["system"] {
        Value::String(text) => builder.block(Section::System, "", &text_block(text)),
        Value::Array(blocks) => blocks
            .iter()
            .for_each(|block| builder.block(Section::System, "", block)),
        _ => {}
    }
}

/// Returns the text block that a string is short for.
pub(super) fn text_block(text: &str) -> Value {
    serde_json::json!({"type": "text", "text": text})
}

/// Visits every block in the order in which they are cached: tools, system, messages.
pub(super) fn each_block(body: &Value, mut visit: impl FnMut(&Value)) {
    let lists = [&body["tools"], &body["system"]].into_iter();
    let contents = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| &message["content"]);
    for list in lists.chain(contents) {
        match list {
            Value::Array(blocks) => blocks.iter().for_each(&mut visit),
            Value::String(text) => visit(&text_block(text)),
            _ => {}
        }
    }
}
