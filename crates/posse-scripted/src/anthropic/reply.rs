//! A reply of the Messages API: as one message, or as a stream of events.

use posse_protocol::Usage;
use serde_json::{Value, json};

use super::binding;
use super::request::AnthropicRequest;
use crate::cache::Billing;
use crate::fault::Timed;
use crate::pick::{PickedAnswer, RenderedBlock};
use crate::tokens;

/// Number of characters in a text delta: about four tokens.
const DELTA: usize = 16;

/// A reply, ready to be sent in either form.
pub(crate) struct AnthropicReply {
    id: String,
    model: String,
    blocks: Vec<ReplyBlock>,
    stop: String,
    billing: Billing,
    diagnostics: Option<Value>,
    dropped: Vec<Value>,
}

/// A block of the reply.
struct ReplyBlock {
    value: Value,
    tokens: u64,
    thinks: bool,
    /// What is streamed: the text, the thinking, or the JSON of a call's input.
    text: String,
}

impl AnthropicReply {
    /// Returns the reply of `answer` to `request`.
    pub(crate) fn new(
        id: String,
        request: &AnthropicRequest,
        answer: &PickedAnswer,
        billing: Billing,
        diagnostics: Option<Value>,
    ) -> Self {
        let mut left = request.body["max_tokens"].as_u64().unwrap_or(u64::MAX);
        let mut blocks = Vec::new();
        let mut capped = false;
        for (index, spoken) in answer.blocks.iter().enumerate() {
            if left == 0 {
                capped = true;
                break;
            }
            let Some(mut block) = block(&id, index, spoken, request) else {
                continue;
            };
            capped = block.cap(left);
            left -= block.tokens;
            blocks.push(block);
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
            model: request.body["model"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            stop: stop.to_owned(),
            blocks,
            billing,
            diagnostics,
            dropped: request.dropped.clone(),
        }
    }

    /// Returns what it is billed as.
    pub(crate) fn usage(&self) -> Usage {
        let sum =
            |blocks: &mut dyn Iterator<Item = &ReplyBlock>| blocks.map(|block| block.tokens).sum();
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
        let Billing {
            input,
            read,
            write_5m,
            write_1h,
        } = self.billing;
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

    /// Returns the whole message.
    pub(crate) fn message(&self) -> Value {
        let Usage {
            output, thinking, ..
        } = self.usage();
        let content = self
            .blocks
            .iter()
            .map(|block| block.value.clone())
            .collect();
        self.head(
            content,
            self.stop.clone().into(),
            self.usage_json(output, thinking),
        )
    }

    /// Returns the stream.
    pub(crate) fn events(&self) -> Vec<Timed> {
        let mut events = Vec::new();
        // Like the API, it tells the prompt's size here and the output's only at the end.
        let start = self.head(Vec::new(), Value::Null, self.usage_json(1, 0));
        events.push(event(
            "message_start",
            0,
            &json!({"type": "message_start", "message": start}),
        ));
        events.push(event("ping", 0, &json!({"type": "ping"})));
        for (index, block) in self.blocks.iter().enumerate() {
            block.events(index, &mut events);
        }
        let Usage {
            output, thinking, ..
        } = self.usage();
        let Billing {
            input,
            read,
            write_5m,
            write_1h,
        } = self.billing;
        let details =
            self.head(Vec::new(), self.stop.clone().into(), Value::Null)["stop_details"].take();
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

/// Returns a block of the reply; `None` if it is left out.
fn block(
    id: &str,
    index: usize,
    spoken: &RenderedBlock,
    request: &AnthropicRequest,
) -> Option<ReplyBlock> {
    let thinking = &request.body["thinking"];
    let sign = |text: &str| binding::sign(request.model.id, request.prompt_hash, text);
    let (value, text) = match spoken {
        RenderedBlock::Text(text) if text.is_empty() => return None,
        RenderedBlock::Text(text) => (json!({"type": "text", "text": text}), text.clone()),
        RenderedBlock::Thinking(_) | RenderedBlock::RedactedThinking(_)
            if thinking["type"] == "disabled" =>
        {
            return None;
        }
        // Signed is what was shown, because only that comes back; billed is all of it.
        RenderedBlock::Thinking(text) => {
            let shown = if thinking["display"] == "omitted" {
                ""
            } else {
                text
            };
            (
                json!({"type": "thinking", "thinking": shown, "signature": sign(shown)}),
                text.clone(),
            )
        }
        RenderedBlock::RedactedThinking(data) => {
            let sealed = format!("{data}.{}", sign(data));
            (
                json!({"type": "redacted_thinking", "data": sealed}),
                data.clone(),
            )
        }
        RenderedBlock::Tool {
            name,
            input,
            typed,
            id: given,
        } => {
            let own = || format!("toolu_{}_{index}", id.trim_start_matches("msg_"));
            let id = given.clone().unwrap_or_else(own);
            let value = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            let is_empty = input.as_object().is_some_and(serde_json::Map::is_empty);
            (
                value,
                if is_empty {
                    String::new()
                } else {
                    typed.clone()
                },
            )
        }
    };
    let thinks = matches!(
        spoken,
        RenderedBlock::Thinking(_) | RenderedBlock::RedactedThinking(_)
    );
    Some(ReplyBlock {
        value,
        tokens: tokens::of_bytes(text.len()).max(1),
        thinks,
        text,
    })
}

impl ReplyBlock {
    fn events(&self, index: usize, events: &mut Vec<Timed>) {
        let (start, deltas) = self.parts();
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        events.push(event("content_block_start", 0, &start));
        let count = deltas.len().max(1) as u64;
        for (nth, delta) in deltas.into_iter().enumerate() {
            // The block's tokens are spread over its deltas such that they add up.
            let share = self.tokens * (nth as u64 + 1) / count - self.tokens * nth as u64 / count;
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.push(event("content_block_delta", share, &delta));
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        events.push(event("content_block_stop", 0, &stop));
    }

    /// Cuts the block at the reply's limit. Returns true if the limit is inside it. Thinking is
    /// signed as a whole, so that it is never cut; only what follows is.
    fn cap(&mut self, left: u64) -> bool {
        if self.tokens <= left {
            return false;
        }
        self.tokens = left;
        if !self.thinks {
            let most = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .saturating_mul(4);
            self.text.truncate(self.text.floor_char_boundary(most));
            match self.value["type"].as_str() {
                Some("text") => self.value["text"] = self.text.clone().into(),
                // A complete message cannot show half an input; a stream does.
                _ => self.value["input"] = json!({}),
            }
        }
        true
    }

    /// Returns the block as it starts, and the deltas that complete it.
    fn parts(&self) -> (Value, Vec<Value>) {
        let field = |name: &str| self.value[name].as_str().unwrap_or_default();
        match field("type") {
            "text" => {
                let deltas =
                    pieces(&self.text).map(|text| json!({"type": "text_delta", "text": text}));
                (json!({"type": "text", "text": ""}), deltas.collect())
            }
            "thinking" => {
                let deltas = pieces(field("thinking"));
                let mut deltas: Vec<Value> = deltas
                    .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                    .collect();
                deltas.push(json!({"type": "signature_delta", "signature": field("signature")}));
                (
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    deltas,
                )
            }
            "tool_use" => {
                let delta = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
                let deltas = std::iter::once(delta(""))
                    .chain(pieces(&self.text).map(delta))
                    .collect();
                let mut start = self.value.clone();
                start["input"] = json!({});
                (start, deltas)
            }
            _ => (self.value.clone(), Vec::new()),
        }
    }
}

/// Splits a text into pieces of about [`DELTA`] bytes, never inside a character.
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
    Timed {
        bytes: format!("event: {name}\ndata: {data}\n\n"),
        tokens,
    }
}
