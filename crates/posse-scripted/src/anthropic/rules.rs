//! Rules that no schema expresses: cache marks, system messages, names, limits.

use serde_json::Value;

use super::{deferred, request};
use crate::api_error::ApiRefusal;
use crate::models::{ModelFacts, ThinkingRule};
use crate::prefix::ttl_of;

const MOST_MESSAGES: usize = 100_000;
const MOST_MARKS: usize = 4;

/// Checks and removes sampling parameters, which the version of 2023 still accepts.
pub(super) fn take_sampling(body: &mut Value) -> Result<(), ApiRefusal> {
    let Some(fields) = body.as_object_mut() else {
        return Ok(());
    };
    for (name, most) in [("temperature", 1.0), ("top_p", 1.0), ("top_k", f64::MAX)] {
        if let Some(value) = fields.shift_remove(name)
            && !value
                .as_f64()
                .is_some_and(|number| (0.0..=most).contains(&number))
        {
            return Err(ApiRefusal::invalid(format!(
                "{name}: Input should be a number in its range"
            )));
        }
    }
    Ok(())
}

/// Checks what is about the reply's size.
pub(super) fn check_output(body: &Value, model: &ModelFacts) -> Result<(), ApiRefusal> {
    let most = body["max_tokens"].as_i64().unwrap_or(0);
    // A request for no output only fills the cache.
    let only_warms = most == 0;
    let excluded = body["stream"] == true
        || body["thinking"]["type"] == "enabled"
        || matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"))
        || !body["output_config"]["format"].is_null();
    if most < 0 || (only_warms && excluded) {
        return Err(ApiRefusal::invalid(
            "max_tokens: Input should be greater than or equal to 1",
        ));
    }
    if most as u64 > model.max_output {
        return Err(ApiRefusal::invalid(format!(
            "max_tokens: {most} > {}, which is the maximum allowed number of output tokens for {}",
            model.max_output, model.id
        )));
    }
    check_thinking(body, model, most)
}

/// Checks the thinking settings against what the model allows.
fn check_thinking(body: &Value, model: &ModelFacts, most: i64) -> Result<(), ApiRefusal> {
    let thinking = &body["thinking"];
    let kind = thinking["type"].as_str();
    let refused = match model.thinking {
        ThinkingRule::AlwaysOn => kind == Some("disabled"),
        ThinkingRule::BudgetOnly => matches!(kind, Some("adaptive" | "between_tools")),
        ThinkingRule::Free => false,
    };
    if refused {
        let kind = kind.unwrap_or_default();
        return Err(ApiRefusal::invalid(format!(
            "thinking.type: \"{kind}\" is not supported on {}",
            model.id
        )));
    }
    if kind == Some("enabled") {
        let budget = thinking["budget_tokens"].as_i64().unwrap_or(0);
        if budget < 1024 {
            return Err(ApiRefusal::invalid(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            ));
        }
        if budget >= most {
            return Err(ApiRefusal::invalid(
                "`max_tokens` must be greater than `thinking.budget_tokens`",
            ));
        }
        if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
            return Err(ApiRefusal::invalid(
                "Thinking may not be enabled when tool_choice forces tool use.",
            ));
        }
    }
    Ok(())
}

/// Refuses what the version of 2026 no longer accepts.
pub(super) fn check_removed(body: &Value) -> Result<(), ApiRefusal> {
    for (at, message) in body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for (index, block) in message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let place = format!("messages.{at}.content.{index}");
            if message["role"] == "assistant" && block["type"] == "document" {
                return Err(ApiRefusal::invalid(format!(
                    "{place}: a `document` cannot be in an assistant message"
                )));
            }
            let cited = block["citations"]
                .as_array()
                .is_some_and(|citations| !citations.is_empty());
            if message["role"] == "user" && block["type"] == "text" && cited {
                return Err(ApiRefusal::invalid(format!(
                    "{place}.citations: must be empty on user text"
                )));
            }
        }
    }
    Ok(())
}

/// Checks what applies to any prompt.
pub(super) fn check(body: &Value, model: &ModelFacts) -> Result<(), ApiRefusal> {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    match messages.first() {
        None => {
            return Err(ApiRefusal::invalid(
                "messages: at least one message is required",
            ));
        }
        Some(first) if first["role"] == "assistant" => {
            return Err(ApiRefusal::invalid(
                "messages: first message must use the \"user\" role",
            ));
        }
        Some(_) if messages.len() > MOST_MESSAGES => {
            return Err(ApiRefusal::invalid(format!(
                "messages: at most {MOST_MESSAGES} messages are allowed"
            )));
        }
        Some(_) => {}
    }
    check_system_messages(messages, model)?;
    check_texts(body, messages)?;
    check_tools(body)?;
    deferred::check(body)?;
    check_marks(body)
}

/// A system message must follow a user turn and precede an assistant turn or the end; it is never
/// first.
fn check_system_messages(messages: &[Value], model: &ModelFacts) -> Result<(), ApiRefusal> {
    for (at, _) in messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message["role"] == "system")
    {
        if !model.system_messages {
            return Err(ApiRefusal::invalid(format!(
                "messages.{at}.role: \"system\" is not supported on {}",
                model.id
            )));
        }
        let before = at.checked_sub(1).map(|before| &messages[before]);
        let follows =
            before.is_some_and(|before| before["role"] == "user" || ends_in_server_result(before));
        let precedes = messages
            .get(at + 1)
            .is_none_or(|next| next["role"] == "assistant");
        if !follows || !precedes {
            return Err(ApiRefusal::invalid(format!(
                "messages.{at}: a system message must follow a user turn and precede an assistant turn"
            )));
        }
    }
    Ok(())
}

fn ends_in_server_result(message: &Value) -> bool {
    let last = message["content"]
        .as_array()
        .and_then(|blocks| blocks.last());
    last.and_then(|block| block["type"].as_str())
        .is_some_and(|kind| kind.ends_with("_tool_result"))
}

/// No text is blank, only the last message may be empty, and no reply ends in thinking.
fn check_texts(body: &Value, messages: &[Value]) -> Result<(), ApiRefusal> {
    let blank = |block: &Value| {
        block["type"] == "text"
            && block["text"]
                .as_str()
                .is_some_and(|text| text.trim().is_empty())
    };
    let empty = |block: &Value| {
        blank(block)
            || block["content"]
                .as_array()
                .is_some_and(|inside| inside.iter().any(blank))
    };
    let system = body["system"].as_array().into_iter().flatten();
    if let Some((at, _)) = system.enumerate().find(|(_, block)| empty(block)) {
        return Err(ApiRefusal::invalid(format!(
            "system.{at}: text content blocks must contain non-whitespace text"
        )));
    }
    for (at, message) in messages.iter().enumerate() {
        let content = &message["content"];
        let nothing = content.as_str().is_some_and(|text| text.trim().is_empty())
            || content.as_array().is_some_and(Vec::is_empty);
        let last_assistant = at + 1 == messages.len() && message["role"] == "assistant";
        if nothing && !last_assistant {
            return Err(ApiRefusal::invalid(format!(
                "messages.{at}: all messages must have non-empty content except for the optional final \
                 assistant message"
            )));
        }
        let last = content.as_array().and_then(|blocks| blocks.last());
        let kind = last.and_then(|block| block["type"].as_str());
        if let (true, Some(kind @ ("thinking" | "redacted_thinking"))) =
            (message["role"] == "assistant", kind)
        {
            return Err(ApiRefusal::invalid(format!(
                "messages.{at}: The final block in an assistant message cannot be `{kind}`."
            )));
        }
        let blocks = content.as_array().into_iter().flatten();
        if let Some((index, _)) = blocks.enumerate().find(|(_, block)| empty(block)) {
            return Err(ApiRefusal::invalid(format!(
                "messages.{at}.content.{index}: text content blocks must contain non-whitespace text"
            )));
        }
    }
    Ok(())
}

/// Checks names and schemas of tools, and that a forced tool exists.
fn check_tools(body: &Value) -> Result<(), ApiRefusal> {
    let mut names: Vec<&str> = Vec::new();
    for (at, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        let Some(name) = tool["name"].as_str() else {
            continue;
        };
        let fine = (1..=128).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !fine {
            return Err(ApiRefusal::invalid(format!(
                "tools.{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )));
        }
        if names.contains(&name) {
            return Err(ApiRefusal::invalid("tools: Tool names must be unique."));
        }
        if tool
            .get("input_schema")
            .is_some_and(|schema| schema["type"] != "object")
        {
            return Err(ApiRefusal::invalid(format!(
                "tools.{at}.input_schema.type: Input should be 'object'"
            )));
        }
        names.push(name);
    }
    let choice = &body["tool_choice"];
    match choice["type"].as_str() {
        Some("tool") if !names.contains(&choice["name"].as_str().unwrap_or_default()) => {
            Err(ApiRefusal::invalid(format!(
                "Tool '{}' not found in provided tools",
                choice["name"]
            )))
        }
        Some("any") if names.is_empty() => Err(ApiRefusal::invalid(
            "tool_choice: may only be specified while providing tools",
        )),
        _ => Ok(()),
    }
}

/// At most four marks, longer-lived ones first, and none inside a tool result.
fn check_marks(body: &Value) -> Result<(), ApiRefusal> {
    let mut marks: Vec<Value> = Vec::new();
    let (mut last_block, mut inside) = (None, false);
    let marked = |block: &Value| {
        block
            .get("cache_control")
            .is_some_and(|mark| !mark.is_null())
    };
    request::each_block(body, |block| {
        inside |= block["content"]
            .as_array()
            .is_some_and(|inside| inside.iter().any(marked));
        if let Some(mark) = block.get("cache_control").filter(|mark| !mark.is_null()) {
            marks.push(mark.clone());
        }
        last_block = Some(block["cache_control"].clone());
    });
    if inside {
        return Err(ApiRefusal::invalid(
            "cache_control cannot be set inside a `tool_result`; mark the block itself",
        ));
    }
    let automatic = &body["cache_control"];
    if !automatic.is_null() {
        match last_block {
            Some(explicit) if !explicit.is_null() && ttl_of(&explicit) != ttl_of(automatic) => {
                return Err(ApiRefusal::invalid(
                    "cache_control: the last block already has a mark with another ttl",
                ));
            }
            Some(explicit) if !explicit.is_null() => {}
            _ => marks.push(automatic.clone()),
        }
    }
    if marks.len() > MOST_MARKS {
        return Err(ApiRefusal::invalid(format!(
            "A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {}.",
            marks.len()
        )));
    }
    let hour = |mark: &Value| mark["ttl"] == "1h";
    let short = marks
        .iter()
        .position(|mark| !hour(mark))
        .unwrap_or(marks.len());
    if marks[short..].iter().any(hour) {
        return Err(ApiRefusal::invalid(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
        ));
    }
    Ok(())
}
