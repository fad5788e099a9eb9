//! Deferred tools: definitions that are read where the conversation refers to them.

use serde_json::Value;

use crate::api_error::ApiRefusal;
use crate::prefix::references;

/// Returns true if a tool is read only where it is referred to.
pub(super) fn is_deferred(tool: &Value) -> bool {
    tool["defer_loading"] == true
}

fn tools(body: &Value) -> impl Iterator<Item = &Value> {
    body["tools"].as_array().into_iter().flatten()
}

/// Returns the names of the tools that the conversation refers to.
fn referred(body: &Value) -> impl Iterator<Item = &str> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.flat_map(references)
}

/// Checks deferred tools and the references to them.
pub(super) fn check(body: &Value) -> Result<(), ApiRefusal> {
    if tools(body).next().is_some() && tools(body).all(is_deferred) {
        return Err(ApiRefusal::invalid(
            "At least one tool must have defer_loading=false. All tools cannot be deferred.",
        ));
    }
    let is_marked = |tool: &&Value| is_deferred(tool) && !tool["cache_control"].is_null();
    if let Some(tool) = tools(body).find(is_marked) {
        return Err(ApiRefusal::invalid(format!(
            "Tool '{}' cannot have both defer_loading=true and cache_control set. Tools with \
             defer_loading cannot use prompt caching.",
            tool["name"].as_str().unwrap_or_default()
        )));
    }
    match referred(body).find(|name| tools(body).all(|tool| tool["name"] != *name)) {
        Some(name) => Err(ApiRefusal::invalid(format!(
            "Tool reference '{name}' not found in available tools"
        ))),
        None => Ok(()),
    }
}

/// Returns the first of these that the model cannot know: it is deferred, and nothing refers to it.
pub(super) fn unloaded<'a>(body: &Value, called: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut called = called;
    called.find(|name| {
        tools(body).any(|tool| tool["name"] == **name && is_deferred(tool))
            && referred(body).all(|referred| referred != *name)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::prefix::{Builder, RequestPrefix, Section};

    fn tool(name: &str, deferred: bool) -> Value {
        let mut tool = json!({"name": name, "description": "x".repeat(400), "input_schema": {"type": "object"}});
        if deferred {
            tool["defer_loading"] = true.into();
        }
        tool
    }

    fn body(tools: &[Value], referred: &[&str]) -> Value {
        let references = referred
            .iter()
            .map(|name| json!({"type": "tool_reference", "tool_name": name}));
        let result = json!({"type": "tool_result", "tool_use_id": "t", "content": references.collect::<Vec<_>>()});
        json!({"tools": tools, "messages": [{"role": "user", "content": [result]}]})
    }

    fn refusal(body: &Value) -> String {
        check(body).map_or_else(|refusal| refusal.message, |()| "accepted".into())
    }

    #[test]
    fn what_the_api_refuses_is_refused() {
        let plain = tool("Read", false);
        let x = tool("x", true);
        assert_eq!(refusal(&body(&[], &[])), "accepted");
        let good = body(&[plain.clone(), x.clone()], &["x", "Read"]);
        assert_eq!(refusal(&good), "accepted");
        assert_eq!(
            refusal(&body(std::slice::from_ref(&x), &[])),
            "At least one tool must have defer_loading=false. All tools cannot be deferred."
        );
        assert_eq!(
            refusal(&body(std::slice::from_ref(&plain), &["x"])),
            "Tool reference 'x' not found in available tools"
        );
        let mut marked = x.clone();
        marked["cache_control"] = json!({"type": "ephemeral"});
        assert!(
            refusal(&body(&[plain.clone(), marked], &[])).starts_with("Tool 'x' cannot have both")
        );
        // A script that calls what the model cannot know is wrong; one that calls what never was may be meant.
        let calls = ["Read", "Nobody", "x"];
        assert_eq!(unloaded(&good, calls.into_iter()), None);
        let unread = body(&[plain, x], &[]);
        assert_eq!(unloaded(&unread, calls.into_iter()), Some("x"));
    }

    fn prefix(body: &Value) -> RequestPrefix {
        let mut builder = Builder::new("m");
        super::super::request::add_tools(&mut builder, body);
        for block in body["messages"][0]["content"].as_array().unwrap() {
            builder.block(Section::Messages, "user", block);
        }
        builder.finish()
    }

    #[test]
    fn a_definition_is_read_where_it_is_referred_to() {
        let plain = tool("Read", false);
        let of = |tools: &[Value], referred: &[&str]| prefix(&body(tools, referred));
        let without = of(std::slice::from_ref(&plain), &[]);
        let deferred = of(&[plain.clone(), tool("x", true), tool("y", true)], &[]);
        let hashes = |prefix: &RequestPrefix| -> Vec<u64> {
            prefix
                .positions
                .iter()
                .map(|position| position.hash)
                .collect()
        };
        assert_eq!(hashes(&deferred), hashes(&without));
        assert_eq!(deferred.tokens(), without.tokens());
        let loaded = of(&[plain.clone(), tool("x", true), tool("y", true)], &["x"]);
        assert_eq!(hashes(&loaded)[0], hashes(&without)[0]);
        assert!(
            loaded.tokens() > without.tokens() + 100,
            "{}",
            loaded.tokens()
        );
        // Its words count, wherever they are sent.
        let again = of(&[plain.clone(), tool("y", true), tool("x", true)], &["x"]);
        assert_eq!(hashes(&again), hashes(&loaded));
        let mut other = tool("x", true);
        other["description"] = "other".into();
        assert_ne!(hashes(&of(&[plain, other], &["x"])), hashes(&loaded));
    }
}
