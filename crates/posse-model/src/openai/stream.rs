//! Assembles a reply of Chat Completions from its chunks.

#[cfg(test)]
mod tests;

use http::StatusCode;
use posse_port::model::{ApiError, ModelError, ModelEvent, RateLimits, Reply};
use posse_protocol::{ContentBlock, RawJson, StopReason, Usage};
use serde::Deserialize;

use super::{classify, read_error};
use crate::dialect::{self, Listener, garbled};
use crate::sse;

/// A reply that is being assembled.
#[derive(Default)]
pub(crate) struct Assembly {
    id: String,
    model: String,
    begun: bool,
    text: String,
    thinking: String,
    calls: Vec<ToolCall>,
    finish: Option<StopReason>,
    usage: Usage,
    done: bool,
}

/// A tool call that is being assembled.
struct ToolCall {
    /// The index of its fragments.
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

/// A chunk. Some servers omit almost every field.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<ChunkUsage>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    /// llama.cpp, DeepSeek and vLLM use `reasoning_content`, OpenRouter `reasoning`; some send
    /// both.
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl dialect::Assembly for Assembly {
    fn event(&mut self, event: sse::Event<'_>, on: Listener<'_>) -> Result<(), ModelError> {
        if event.data == "[DONE]" {
            self.done = true;
            return if self.finish.is_some() {
                Ok(())
            } else {
                Err(garbled("it ended without a stop reason"))
            };
        }
        let chunk: Chunk =
            serde_json::from_str(event.data).map_err(|error| garbled(error.to_string()))?;
        if chunk.error.is_some() {
            return Err(in_stream(event.data));
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.id = chunk.id.unwrap_or_default();
            self.model = chunk.model.unwrap_or_default();
            on(ModelEvent::Started { model: &self.model });
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage.total();
        }
        // A request never asks for more than one choice.
        for choice in chunk.choices.into_iter().flatten().take(1) {
            if let Some(delta) = choice.delta {
                self.delta(delta, on)?;
            }
            if let Some(reason) = choice.finish_reason {
                self.finish = Some(stop_reason(&reason));
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    fn finish(&mut self, limits: RateLimits) -> Result<Reply, ModelError> {
        let Some(mut stop) = self.finish.clone() else {
            return Err(garbled("it ended without a stop reason"));
        };
        let content = self.content(stop == StopReason::MaxTokens)?;
        // Some servers say `stop` after tool calls; what counts is that calls wait for results.
        if stop == StopReason::EndTurn
            && content
                .iter()
                .any(|block| matches!(block, ContentBlock::ToolUse { .. }))
        {
            stop = StopReason::ToolUse;
        }
        Ok(Reply {
            id: std::mem::take(&mut self.id),
            model: std::mem::take(&mut self.model),
            content,
            stop,
            usage: self.usage,
            wasted: Vec::new(),
            cache_miss: None,
            limits,
            attempts: 1,
        })
    }

    /// Nothing in this API says that a tool's input is complete, so that only text can be kept.
    fn salvage(self) -> (Vec<ContentBlock>, Usage) {
        let said = (!self.text.is_empty()).then_some(ContentBlock::Text { text: self.text });
        (said.into_iter().collect(), self.usage)
    }
}

impl Assembly {
    fn delta(&mut self, delta: Delta, on: Listener<'_>) -> Result<(), ModelError> {
        if let Some(more) = delta
            .reasoning_content
            .or(delta.reasoning)
            .filter(|more| !more.is_empty())
        {
            on(ModelEvent::Thinking(&more));
            self.thinking.push_str(&more);
        }
        for more in [delta.content, delta.refusal]
            .into_iter()
            .flatten()
            .filter(|more| !more.is_empty())
        {
            on(ModelEvent::Text(&more));
            self.text.push_str(&more);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, on)?;
        }
        Ok(())
    }

    /// Handles a fragment of a call. Servers that send whole calls omit the index, or send 0 for
    /// each.
    fn call(&mut self, delta: CallDelta, on: Listener<'_>) -> Result<(), ModelError> {
        let (name, arguments) = delta
            .function
            .map_or((None, None), |call| (call.name, call.arguments));
        // Later fragments of a call may repeat the id as an empty string.
        let id = delta.id.filter(|id| !id.is_empty());
        let same = |call: &&mut ToolCall| delta.index.is_none_or(|index| call.index == index);
        let goes_on = self
            .calls
            .iter_mut()
            .rev()
            .find(same)
            .filter(|call| match &id {
                Some(id) => *id == call.id,
                None => name
                    .as_ref()
                    .is_none_or(|name| delta.index.is_some() && *name == call.name),
            });
        let call = if let Some(call) = goes_on {
            call
        } else {
            let Some(name) = name else {
                return Err(garbled("a tool call without a name"));
            };
            let place = self.calls.len();
            // Some servers give no id, but the call's result must name one.
            let id = id.unwrap_or_else(|| format!("call_{}_{place}", self.id));
            on(ModelEvent::ToolUse {
                id: &id,
                name: &name,
            });
            let index = delta.index.unwrap_or(place as u64);
            self.calls.push(ToolCall {
                index,
                id,
                name,
                arguments: String::new(),
            });
            let Some(call) = self.calls.last_mut() else {
                return Ok(());
            };
            call
        };
        if let Some(more) = arguments {
            on(ModelEvent::ToolInput(&more));
            call.arguments.push_str(&more);
        }
        Ok(())
    }

    /// Returns the content. A last call that the length limit cut is left out.
    fn content(&mut self, capped: bool) -> Result<Vec<ContentBlock>, ModelError> {
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            let thinking = std::mem::take(&mut self.thinking);
            // Without a signature it is kept for people only and never sent back.
            content.push(ContentBlock::Thinking {
                thinking,
                signature: String::new(),
            });
        }
        if !self.text.is_empty() {
            content.push(ContentBlock::Text {
                text: std::mem::take(&mut self.text),
            });
        }
        let mut calls = std::mem::take(&mut self.calls).into_iter().peekable();
        while let Some(call) = calls.next() {
            let arguments = if call.arguments.trim().is_empty() {
                "{}"
            } else {
                &call.arguments
            };
            match RawJson::parse(arguments) {
                Ok(input) if input.is_object() => {
                    content.push(ContentBlock::ToolUse {
                        id: call.id,
                        name: call.name,
                        input,
                    });
                }
                Err(_) if capped && calls.peek().is_none() => {}
                _ => {
                    return Err(garbled(format!(
                        "the input of `{}` is not an object",
                        call.name
                    )));
                }
            }
        }
        Ok(content)
    }
}

impl ChunkUsage {
    /// In this API the prompt's count includes what the cache served.
    fn total(self) -> Usage {
        let details = self.prompt_tokens_details.unwrap_or_default();
        let (read, written) = (
            details.cached_tokens.unwrap_or(0),
            details.cache_write_tokens.unwrap_or(0),
        );
        Usage {
            input: self
                .prompt_tokens
                .unwrap_or(0)
                .saturating_sub(read)
                .saturating_sub(written),
            cache_read: read,
            cache_write_5m: written,
            cache_write_1h: 0,
            output: self.completion_tokens.unwrap_or(0),
            thinking: self
                .completion_tokens_details
                .unwrap_or_default()
                .reasoning_tokens
                .unwrap_or(0),
        }
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Parses an error inside a stream.
fn in_stream(data: &str) -> ModelError {
    let (message, code) = read_error(data.as_bytes()).unwrap_or_else(|| (data.to_owned(), None));
    ModelError::Api(Box::new(ApiError {
        kind: classify(code.as_deref(), StatusCode::INTERNAL_SERVER_ERROR),
        status: 200,
        message,
        request_id: None,
        retry_after: None,
        should_retry: None,
    }))
}
