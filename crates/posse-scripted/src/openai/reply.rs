//! A reply of Chat Completions: as one completion, or as a stream of chunks.

use posse_protocol::Usage;
use serde_json::{Value, json};

use super::request::OpenAiRequest;
use crate::fault::Timed;
use crate::pick::{PickedAnswer, RenderedBlock};
use crate::tokens;

/// A reply, ready to be sent in either form.
pub(crate) struct OpenAiReply {
    id: String,
    model: String,
    text: String,
    thinking: String,
    calls: Vec<Value>,
    finish: &'static str,
    prompt: u64,
    cached: u64,
    with_usage: bool,
}

impl OpenAiReply {
    /// Returns the reply of `answer` to `request`, of whose prompt `cached` tokens were cached.
    pub(crate) fn new(
        id: String,
        request: &OpenAiRequest,
        answer: &PickedAnswer,
        cached: u64,
    ) -> Self {
        let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        for (index, spoken) in answer.blocks.iter().enumerate() {
            match spoken {
                RenderedBlock::Text(more) => text.push_str(more),
                RenderedBlock::Thinking(more) => thinking.push_str(more),
                RenderedBlock::RedactedThinking(_) => {}
                RenderedBlock::Tool {
                    name,
                    typed,
                    id: given,
                    ..
                } => {
                    let id = given
                        .clone()
                        .unwrap_or_else(|| format!("call_{id}_{index}"));
                    let function = json!({"name": name, "arguments": typed});
                    calls.push(json!({"id": id, "type": "function", "function": function}));
                }
            }
        }
        let cap = request.body["max_completion_tokens"]
            .as_u64()
            .or(request.body["max_tokens"].as_u64());
        let most = cap.map_or(usize::MAX, |cap| {
            usize::try_from(cap).unwrap_or(usize::MAX).saturating_mul(4)
        });
        let capped = text.len() > most;
        if capped {
            text.truncate(text.floor_char_boundary(most));
            // What is cut at the length limit never gets to its calls.
            calls.clear();
        }
        let finish = match answer.stop.as_deref() {
            _ if capped => "length",
            Some("max_tokens") => "length",
            Some("refusal") => "content_filter",
            _ if calls.is_empty() => "stop",
            _ => "tool_calls",
        };
        Self {
            model: request.body["model"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            prompt: request.prefix.tokens(),
            with_usage: request.body["stream_options"]["include_usage"] == true,
            id: format!("chatcmpl-{id}"),
            text,
            thinking,
            calls,
            finish,
            cached,
        }
    }

    /// Returns what it is billed as.
    pub(crate) fn usage(&self) -> Usage {
        let calls: usize = self
            .calls
            .iter()
            .map(|call| call["function"].to_string().len())
            .sum();
        let thinking = tokens::of_bytes(self.thinking.len());
        Usage {
            input: self.prompt - self.cached,
            cache_read: self.cached,
            output: tokens::of_bytes(self.text.len() + calls) + thinking,
            thinking,
            ..Usage::default()
        }
    }

    fn usage_json(&self) -> Value {
        let Usage {
            output, thinking, ..
        } = self.usage();
        json!({
            "prompt_tokens": self.prompt, "completion_tokens": output, "total_tokens": self.prompt + output,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": thinking},
        })
    }

    /// Returns the whole completion.
    pub(crate) fn completion(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.clone().into();
        }
        if !self.thinking.is_empty() {
            message["reasoning_content"] = self.thinking.clone().into();
        }
        let choice =
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish});
        json!({
            "id": self.id, "object": "chat.completion", "created": 1_790_000_000, "model": self.model,
            "choices": [choice], "usage": self.usage_json(),
        })
    }

    /// Returns the stream.
    pub(crate) fn events(&self) -> Vec<Timed> {
        let mut events = vec![self.delta(0, &json!({"role": "assistant", "content": ""}))];
        for piece in self.thinking.split_inclusive(' ') {
            events.push(self.delta(
                tokens::of_bytes(piece.len()),
                &json!({"reasoning_content": piece}),
            ));
        }
        for piece in self.text.split_inclusive(' ') {
            events.push(self.delta(tokens::of_bytes(piece.len()), &json!({"content": piece})));
        }
        for (index, call) in self.calls.iter().enumerate() {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let first = json!({"index": index, "id": call["id"], "type": "function",
                "function": {"name": call["function"]["name"], "arguments": ""}});
            events.push(self.delta(1, &json!({"tool_calls": [first]})));
            for piece in arguments.split_inclusive(' ') {
                let more = json!({"index": index, "function": {"arguments": piece}});
                events.push(self.delta(
                    tokens::of_bytes(piece.len()),
                    &json!({"tool_calls": [more]}),
                ));
            }
        }
        events.push(self.chunk(
            0,
            &json!([{"index": 0, "delta": {}, "finish_reason": self.finish}]),
            None,
        ));
        if self.with_usage {
            events.push(self.chunk(0, &json!([]), Some(self.usage_json())));
        }
        events.push(Timed {
            bytes: "data: [DONE]\n\n".to_owned(),
            tokens: 0,
        });
        events
    }

    fn delta(&self, tokens: u64, delta: &Value) -> Timed {
        self.chunk(
            tokens,
            &json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            None,
        )
    }

    fn chunk(&self, tokens: u64, choices: &Value, usage: Option<Value>) -> Timed {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": 1_790_000_000,
            "model": self.model, "choices": choices,
        });
        if self.with_usage {
            chunk["usage"] = usage.into();
        }
        Timed {
            bytes: format!("data: {chunk}\n\n"),
            tokens,
        }
    }
}
