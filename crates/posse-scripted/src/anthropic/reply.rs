//! A reply of the Messages API: as one message, or as a stream of events.

use posse_protocol::Usage;
use serde_json::{Value, json};

use super::binding;
use super::request::Request;
use crate::cache::Billing;
use crate::fault::Timed;
use crate::pick::{Answer, Spoken};
use crate::tokens;

/// Characters in a delta of text: about four tokens.
const DELTA: usize = 16;

/// A reply, ready to be sent in either form.
pub(crate) struct Reply {
    id: String,
    model: String,
    blocks: Vec<Block>,
    stop: String,
    billing: Billing,
    diagnostics: Option<Value>,
    dropped: Vec<Value>,
}

struct Block {
    value: Value,
    tokens: u64,
    thinks: bool,
}

impl Reply {
    /// What `answer` says to `request`.
    pub(crate) fn new(
        id: String,
        request: &Request,
        answer: &Answer,
        billing: Billing,
        diagnostics: Option<Value>,
    ) -> Self {
        let mut left = request.body["max_tokens"].as_u64().unwrap_or(u64::MAX);
        let mut blocks = Vec::new();
        let mut capped = left == 0;
        for (index, spoken) in answer.blocks.iter().enumerate() {
            let Some((block, whole)) = block(&id, index, spoken, request, left) else { continue };
            left -= block.tokens.min(left);
            blocks.push(block);
            if !whole {
                capped = true;
                break;
            }
        }
        let calls = blocks.iter().any(|block| block.value["type"] == "tool_use");
        let stop = match &answer.stop {
            _ if capped => "max_tokens",
            Some(stop) => stop,
            None if calls => "tool_use",
            None => "end_turn",
        };
        Self {
            id,
            model: request.body["model"].as_str().unwrap_or_default().to_owned(),
            stop: stop.to_owned(),
            blocks,
            billing,
            diagnostics,
            dropped: request.dropped.clone(),
        }
    }

    /// What it is billed as.
    pub(crate) fn usage(&self) -> Usage {
        let sum = |blocks: &mut dyn Iterator<Item = &Block>| blocks.map(|block| block.tokens).sum();
        Usage {
            input: self.billing.input,
            cache_read: self.billing.read,
            cache_write_5m: self.billing.write_5m,
            cache_write_1h: self.billing.write_1h,
            output: sum(&mut self.blocks.iter()),
            thinking: sum(&mut self.blocks.iter().filter(|block| block.thinks)),
        }
    }

    fn usage_json(&self, output: u64, thinking: u64) -> Value {
        let Billing { input, read, write_5m, write_1h } = self.billing;
        json!({
            "input_tokens": input,
            "cache_creation_input_tokens": write_5m + write_1h,
            "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": write_5m, "ephemeral_1h_input_tokens": write_1h,
            },
            "output_tokens": output,
            "output_tokens_details": {"thinking_tokens": thinking},
            "service_tier": "standard",
        })
    }

    fn head(&self, content: Vec<Value>, stop: Value, usage: Value) -> Value {
        let stop_details = if stop == "refusal" {
            json!({"type": "refusal", "category": null, "explanation": "the script says so"})
        } else {
            Value::Null
        };
        let mut message = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": stop, "stop_sequence": null, "stop_details": stop_details,
            "usage": usage,
        });
        if let Some(reason) = &self.diagnostics {
            message["diagnostics"] = json!({"cache_miss_reason": reason});
        }
        if !self.dropped.is_empty() {
            message["input_transformations"] = self.dropped.clone().into();
        }
        message
    }

    /// The whole message.
    pub(crate) fn message(&self) -> Value {
        let Usage { output, thinking, .. } = self.usage();
        let content = self.blocks.iter().map(|block| block.value.clone()).collect();
        self.head(content, self.stop.clone().into(), self.usage_json(output, thinking))
    }

    /// The stream.
    pub(crate) fn events(&self) -> Vec<Timed> {
        let mut events = Vec::new();
        let start = self.head(Vec::new(), Value::Null, self.usage_json(1, 0));
        events.push(event("message_start", 0, &json!({"type": "message_start", "message": start})));
        events.push(event("ping", 0, &json!({"type": "ping"})));
        for (index, block) in self.blocks.iter().enumerate() {
            block.events(index, &mut events);
        }
        let Usage { output, thinking, .. } = self.usage();
        let Billing { input, read, write_5m, write_1h } = self.billing;
        let details = self.head(Vec::new(), self.stop.clone().into(), Value::Null)["stop_details"].take();
        let end = json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop, "stop_sequence": null, "stop_details": details},
            "usage": {
                "input_tokens": input, "cache_creation_input_tokens": write_5m + write_1h,
                "cache_read_input_tokens": read, "output_tokens": output,
                "output_tokens_details": {"thinking_tokens": thinking},
            },
        });
        events.push(event("message_delta", 0, &end));
        events.push(event("message_stop", 0, &json!({"type": "message_stop"})));
        events
    }
}

/// A block of the reply, and whether all of it fits into `left` tokens. None if it is not said at all.
fn block(id: &str, index: usize, spoken: &Spoken, request: &Request, left: u64) -> Option<(Block, bool)> {
    let thinking = &request.body["thinking"];
    let cut = |text: &str| {
        let end = text.floor_char_boundary(usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(4));
        (text[..end].to_owned(), end == text.len())
    };
    Some(match spoken {
        Spoken::Text(text) => {
            let (text, whole) = cut(text);
            if text.is_empty() {
                return None;
            }
            let tokens = tokens::of_bytes(text.len());
            (Block { value: json!({"type": "text", "text": text}), tokens, thinks: false }, whole)
        }
        Spoken::Thinking(_) | Spoken::RedactedThinking(_) if thinking["type"] == "disabled" => return None,
        Spoken::Thinking(text) => {
            let tokens = tokens::of_bytes(text.len());
            let shown = if thinking["display"] == "omitted" { "" } else { text };
            let signature = binding::sign(request.model.id, request.prompt_hash, shown);
            let value = json!({"type": "thinking", "thinking": shown, "signature": signature});
            (Block { value, tokens, thinks: true }, tokens <= left)
        }
        Spoken::RedactedThinking(data) => {
            let tokens = tokens::of_bytes(data.len());
            let value = json!({"type": "redacted_thinking", "data": data});
            (Block { value, tokens, thinks: true }, tokens <= left)
        }
        Spoken::Tool { name, input, id: given } => {
            let tokens = tokens::of_bytes(name.len() + input.to_string().len());
            if tokens > left {
                return None;
            }
            let id =
                given.clone().unwrap_or_else(|| format!("toolu_{}_{index}", id.trim_start_matches("msg_")));
            let value = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            (Block { value, tokens, thinks: false }, true)
        }
    })
}

impl Block {
    fn events(&self, index: usize, events: &mut Vec<Timed>) {
        let (start, deltas) = self.parts();
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        events.push(event("content_block_start", 0, &start));
        let count = deltas.len().max(1) as u64;
        for (nth, delta) in deltas.into_iter().enumerate() {
            // The block's tokens, spread over its deltas so that they add up.
            let share = self.tokens * (nth as u64 + 1) / count - self.tokens * nth as u64 / count;
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.push(event("content_block_delta", share, &delta));
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        events.push(event("content_block_stop", 0, &stop));
    }

    /// The block as it starts, and the deltas that complete it.
    fn parts(&self) -> (Value, Vec<Value>) {
        let field = |name: &str| self.value[name].as_str().unwrap_or_default();
        match field("type") {
            "text" => {
                let deltas = pieces(field("text"));
                let deltas = deltas.map(|text| json!({"type": "text_delta", "text": text})).collect();
                (json!({"type": "text", "text": ""}), deltas)
            }
            "thinking" => {
                let deltas = pieces(field("thinking"));
                let mut deltas: Vec<Value> =
                    deltas.map(|text| json!({"type": "thinking_delta", "thinking": text})).collect();
                deltas.push(json!({"type": "signature_delta", "signature": field("signature")}));
                (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
            }
            "tool_use" => {
                let input = &self.value["input"];
                let text = if input.as_object().is_some_and(serde_json::Map::is_empty) {
                    String::new()
                } else {
                    input.to_string()
                };
                let delta = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
                let deltas = std::iter::once(delta("")).chain(pieces(&text).map(delta)).collect();
                let mut start = self.value.clone();
                start["input"] = json!({});
                (start, deltas)
            }
            _ => (self.value.clone(), Vec::new()),
        }
    }
}

/// A text in pieces of about [`DELTA`] bytes, never inside a character.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (piece, rest) = text.split_at(text.ceil_char_boundary(DELTA));
        text = rest;
        Some(piece)
    })
}

fn event(name: &str, tokens: u64, data: &Value) -> Timed {
    Timed { bytes: format!("event: {name}\ndata: {data}\n\n"), tokens }
}
