//! What a script sees of a request, in either API.

use serde_json::Value;

/// A request, as scripts see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    /// The agent's path, from the `x-posse-agent` header.
    pub(crate) agent: String,
    pub(crate) model: String,
    /// Text of the last user message that has any.
    pub(crate) last_user: String,
    /// Text of the tool results in the last message; empty if there are none.
    pub(crate) last_tool: String,
    /// Number of the model's turn that is requested, from 1.
    pub(crate) turn: u32,
    /// System prompt and all messages, for markers. Collected only if a rule looks for one.
    pub(crate) all_text: String,
}

/// Returns the text of a content: a string, or the texts of its blocks.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
