//! Thinking is bound to the conversation in which it was produced.
//!
//! A signature contains the hash of the prompt it answered. When it comes back, the hash is
//! computed again and must agree, and the text must be the one that was signed. Redacted thinking
//! carries its signature inside its data.

use std::hash::{DefaultHasher, Hasher};

use serde_json::{Value, json};

use super::headers::Asked;
use super::request::{add_system, add_tools, text_block};
use crate::api_error::ApiRefusal;
use crate::prefix::{Builder, Section, is_thinking};

/// The beta that allows to drop thinking of another conversation.
const DROP_BETA: &str = "thinking-binding-controls-2026-08-01";

/// Signs a thinking block of `model` that follows the prompt with hash `prompt`.
pub(crate) fn sign(model: &str, prompt: u64, thinking: &str) -> String {
    format!(
        "{model}.{prompt:016x}.{:016x}",
        seal(model, prompt, thinking)
    )
}

/// Returns the hash that a signature carries.
fn seal(model: &str, prompt: u64, thinking: &str) -> u64 {
    // Its keys are fixed, so that a conversation can continue with another server process.
    let mut hasher = DefaultHasher::new();
    hasher.write(b"posse scripted model");
    hasher.write(model.as_bytes());
    hasher.write_u64(prompt);
    hasher.write(thinking.as_bytes());
    hasher.finish()
}

/// Returns a hash of tools and system prompt.
fn before_messages(body: &Value, model: &str) -> Builder {
    let mut builder = Builder::new(model);
    add_tools(&mut builder, body);
    add_system(&mut builder, body);
    builder
}

/// Adds the blocks of a message.
pub(super) fn add_message(builder: &mut Builder, message: &Value) {
    let role = message["role"].as_str().unwrap_or_default();
    match &message["content"] {
        Value::String(text) => builder.block(Section::Messages, role, &text_block(text)),
        Value::Array(blocks) => {
            blocks
                .iter()
                .for_each(|block| builder.block(Section::Messages, role, block));
        }
        _ => {}
    }
}

/// Checks every thinking block of the history. Returns what was dropped, and the hash of the
/// whole prompt, to which thinking in the reply is bound. Blocks of another model are dropped
/// silently, as the API does; those of another conversation are an error, or dropped and listed
/// if that was asked for.
pub(super) fn check(
    asked: &Asked,
    body: &mut Value,
    model: &str,
) -> Result<(Vec<Value>, u64), ApiRefusal> {
    let may_drop = asked.has(DROP_BETA)
        && body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    let mut builder = before_messages(body, model);
    let mut dropped = Vec::new();
    let Some(messages) = body["messages"].as_array_mut() else {
        return Ok((dropped, builder.hash()));
    };
    for (at, message) in messages.iter_mut().enumerate() {
        // Adjacent messages of one role are one message: thinking may be bound to what precedes
        // its block, or to what precedes its message.
        let mut prompts = vec![builder.hash()];
        let role = message["role"].as_str().unwrap_or_default().to_owned();
        let thinks = |blocks: &&mut Vec<Value>| blocks.iter().any(is_thinking);
        if let Some(blocks) = message["content"].as_array_mut().filter(thinks) {
            let mut index = 0;
            let mut refusal = None;
            let mut inside = builder.clone();
            blocks.retain(|block| {
                let place = format!("messages.{at}.content.{index}");
                index += 1;
                let verdict = judge(block, model, &prompts);
                inside.block(Section::Messages, &role, block);
                prompts.push(inside.hash());
                match verdict {
                    ThinkingVerdict::Keep => true,
                    ThinkingVerdict::Foreign => false,
                    ThinkingVerdict::Mismatch if may_drop => {
                        dropped.push(json!({"type": "thinking_dropped", "path": place, "reason": "prefix_binding_mismatch"}));
                        false
                    }
                    ThinkingVerdict::Mismatch => {
                        refusal.get_or_insert(format!(
                            "{place}: `thinking` block is bound to a different conversation"
                        ));
                        true
                    }
                    ThinkingVerdict::Forged => {
                        refusal.get_or_insert(format!("{place}: Invalid `signature` in `thinking` block"));
                        true
                    }
                }
            });
            if let Some(message) = refusal {
                return Err(ApiRefusal::invalid(message));
            }
        }
        add_message(&mut builder, message);
    }
    Ok((dropped, builder.hash()))
}

/// What happens to a thinking block.
enum ThinkingVerdict {
    Keep,
    Foreign,
    Mismatch,
    Forged,
}

/// Compares a block's signature with the prompts it may be bound to.
fn judge(block: &Value, model: &str, prompts: &[u64]) -> ThinkingVerdict {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    let (thinking, signature) = match text("type") {
        "thinking" => (text("thinking"), text("signature")),
        "redacted_thinking" => {
            // Split from the end: the data may contain dots, the signature has exactly two.
            let data = text("data");
            data.char_indices()
                .rev()
                .filter(|(_, c)| *c == '.')
                .nth(2)
                .map_or(("", data), |(at, _)| (&data[..at], &data[at + 1..]))
        }
        _ => return ThinkingVerdict::Keep,
    };
    let mut parts = signature.split('.');
    let (Some(signer), Some(bound), Some(sealed), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return ThinkingVerdict::Forged;
    };
    let (Ok(bound), Ok(sealed)) = (
        u64::from_str_radix(bound, 16),
        u64::from_str_radix(sealed, 16),
    ) else {
        return ThinkingVerdict::Forged;
    };
    // The seal comes first: a forged block must not pass as another model's and be dropped
    // silently.
    if sealed != seal(signer, bound, thinking) {
        ThinkingVerdict::Forged
    } else if signer != model {
        ThinkingVerdict::Foreign
    } else if !prompts.contains(&bound) {
        ThinkingVerdict::Mismatch
    } else {
        ThinkingVerdict::Keep
    }
}
