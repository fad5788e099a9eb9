//! Assembles a reply of the Messages API from its events.
//!
//! Unknown kinds of events, deltas and blocks are accepted, as the API asks of its clients, but
//! never at the price of a gap: a delta of an unknown kind with content, an event that
//! contradicts its own name, or a block out of order makes the whole reply garbled.

#[cfg(test)]
mod tests;
mod wire;

use posse_port::model::{CacheMiss, ModelError, ModelEvent, RateLimits, Reply};
use posse_protocol::{ContentBlock, RawJson, StopReason, Usage};
use serde::Deserialize;

use super::error;
use crate::dialect::{self, Listener, garbled};
use crate::sse;
use wire::{
    BlockDelta, BlockStart, BlockStop, Delta, Kind, MessageDelta, MessageStart, UsageFields,
};

/// A reply that is being assembled.
#[derive(Default)]
pub(crate) struct Assembly {
    id: Option<String>,
    model: String,
    blocks: Vec<ContentBlock>,
    open: Option<Open>,
    /// Why the input of the last tool call is incomplete. Acceptable only if the length limit cut
    /// it.
    half_call: Option<String>,
    stop: Option<StopReason>,
    usage: UsageFields,
    cache_miss: Option<CacheMiss>,
    complete: bool,
}

/// The block that is arriving.
enum Open {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        given: Option<RawJson>,
        streamed: String,
    },
    Whole(ContentBlock),
}

impl dialect::Assembly for Assembly {
    fn event(&mut self, event: sse::Event<'_>, on: Listener<'_>) -> Result<(), ModelError> {
        let kind = if event.name.is_empty() {
            parse::<Kind<'_>>(event.data)?.kind
        } else {
            event.name.into()
        };
        match &*kind {
            "message_start" => self.message_start(checked(&kind, event.data)?, on),
            "content_block_start" => self.block_start(checked(&kind, event.data)?, on),
            "content_block_delta" => self.block_delta(&checked(&kind, event.data)?, on),
            "content_block_stop" => self.block_stop(&checked(&kind, event.data)?, on),
            "message_delta" => self.message_delta(checked(&kind, event.data)?),
            "message_stop" => self.message_stop(&checked(&kind, event.data)?),
            "error" => Err(ModelError::Api(Box::new(error::in_stream(event.data)))),
            _ => checked::<Kind<'_>>(&kind, event.data).map(drop),
        }
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn finish(&mut self, limits: RateLimits) -> Result<Reply, ModelError> {
        let (Some(id), Some(stop), true) = (self.id.clone(), self.stop.clone(), self.complete)
        else {
            return Err(garbled("it ended without a stop reason"));
        };
        if let Some(why) = &self.half_call
            && !matches!(stop, StopReason::MaxTokens | StopReason::ContextFull)
        {
            return Err(garbled(why));
        }
        Ok(Reply {
            id,
            model: std::mem::take(&mut self.model),
            content: std::mem::take(&mut self.blocks),
            stop,
            usage: self.usage.total(),
            wasted: Vec::new(),
            cache_miss: self.cache_miss.take(),
            limits,
            attempts: 1,
        })
    }

    fn salvage(mut self) -> (Vec<ContentBlock>, Usage) {
        // People have already read this text, so the model must know that it said it.
        if let Some(Open::Text(text)) = self.open {
            self.blocks.push(ContentBlock::Text { text });
        }
        // Unsigned thinking cannot be sent back.
        self.blocks.retain(
            |block| !matches!(block, ContentBlock::Thinking { signature, .. } if signature.is_empty()),
        );
        (self.blocks, self.usage.total())
    }
}

impl Assembly {
    fn message_start(
        &mut self,
        event: MessageStart<'_>,
        on: Listener<'_>,
    ) -> Result<(), ModelError> {
        if self.id.is_some() {
            return Err(garbled("it began twice"));
        }
        let message = event.message;
        on(ModelEvent::Started {
            model: &message.model,
        });
        self.id = Some(message.id.into_owned());
        self.model = message.model.into_owned();
        self.usage.merge(&message.usage);
        self.cache_miss = message.diagnostics.and_then(wire::Diagnostics::miss);
        Ok(())
    }

    fn block_start(&mut self, event: BlockStart<'_>, on: Listener<'_>) -> Result<(), ModelError> {
        let in_order = event.index == self.blocks.len() && self.half_call.is_none();
        if self.id.is_none() || self.open.is_some() || self.stop.is_some() || !in_order {
            return Err(garbled(format!(
                "block {} begins out of order",
                event.index
            )));
        }
        let raw = event.content_block.get();
        let kind = parse::<Kind<'_>>(raw)?.kind;
        self.open = Some(match &*kind {
            "text" => {
                let text = parse::<wire::TextStart<'_>>(raw)?.text.into_owned();
                on(ModelEvent::Text(&text));
                Open::Text(text)
            }
            "thinking" => {
                let start = parse::<wire::ThinkingStart<'_>>(raw)?;
                Open::Thinking {
                    thinking: start.thinking.into_owned(),
                    signature: start.signature.into_owned(),
                }
            }
            "tool_use" => {
                let start = parse::<wire::ToolUseStart<'_>>(raw)?;
                on(ModelEvent::ToolUse {
                    id: &start.id,
                    name: &start.name,
                });
                let given = start
                    .input
                    .map(|input| RawJson::parse(input.get()))
                    .transpose();
                Open::ToolUse {
                    id: start.id.into_owned(),
                    name: start.name.into_owned(),
                    given: given.map_err(not_json)?,
                    streamed: String::new(),
                }
            }
            "redacted_thinking" => {
                let data = parse::<wire::RedactedStart<'_>>(raw)?.data.into_owned();
                Open::Whole(ContentBlock::RedactedThinking { data })
            }
            _ => Open::Whole(ContentBlock::Opaque {
                block: RawJson::parse(raw).map_err(not_json)?,
            }),
        });
        Ok(())
    }

    fn block_delta(&mut self, event: &BlockDelta<'_>, on: Listener<'_>) -> Result<(), ModelError> {
        let Some(open) = self
            .open
            .as_mut()
            .filter(|_| event.index == self.blocks.len())
        else {
            return Err(garbled(format!(
                "more of block {}, which is not open",
                event.index
            )));
        };
        let Delta {
            kind,
            text,
            thinking,
            signature,
            partial_json,
        } = &event.delta;
        match (open, &*kind.0, text, thinking, signature, partial_json) {
            (Open::Text(all), "text_delta", Some(more), None, None, None) => {
                on(ModelEvent::Text(&more.0));
                all.push_str(&more.0);
            }
            (Open::Thinking { thinking, .. }, "thinking_delta", None, Some(more), None, None) => {
                on(ModelEvent::Thinking(&more.0));
                thinking.push_str(&more.0);
            }
            (Open::Thinking { signature, .. }, "signature_delta", None, None, Some(more), None) => {
                signature.push_str(&more.0);
            }
            (Open::ToolUse { streamed, .. }, "input_json_delta", None, None, None, Some(more)) => {
                on(ModelEvent::ToolInput(&more.0));
                streamed.push_str(&more.0);
            }
            // An unknown addition to a block, such as citations, that takes nothing from it.
            (
                Open::Text(_) | Open::Thinking { .. } | Open::ToolUse { .. },
                _,
                None,
                None,
                None,
                None,
            ) if !matches!(
                &*kind.0,
                "text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta"
            ) => {}
            (_, kind, ..) => {
                return Err(garbled(format!("a `{kind}` that does not match its block")));
            }
        }
        Ok(())
    }

    fn block_stop(&mut self, event: &BlockStop<'_>, on: Listener<'_>) -> Result<(), ModelError> {
        let Some(open) = self
            .open
            .take()
            .filter(|_| event.index == self.blocks.len())
        else {
            return Err(garbled(format!(
                "block {} ends, which is not open",
                event.index
            )));
        };
        self.blocks.push(match open {
            Open::Text(text) => ContentBlock::Text { text },
            Open::Thinking {
                thinking,
                signature,
            } => ContentBlock::Thinking {
                thinking,
                signature,
            },
            Open::ToolUse {
                id,
                name,
                given,
                streamed,
            } => {
                let input = match streamed.as_str() {
                    "" => Ok(given.unwrap_or_else(RawJson::empty_object)),
                    streamed => RawJson::parse(streamed),
                };
                match input {
                    Ok(input) if input.is_object() => ContentBlock::ToolUse { id, name, input },
                    Ok(_) => {
                        return Err(garbled(format!("the input of `{name}` is not an object")));
                    }
                    // Whether this is damage or the length limit is known only when the reply
                    // stops.
                    Err(error) => {
                        self.half_call =
                            Some(format!("the input of `{name}` is not JSON: {error}"));
                        return Ok(());
                    }
                }
            }
            Open::Whole(block) => block,
        });
        on(ModelEvent::BlockDone);
        Ok(())
    }

    fn message_delta(&mut self, event: MessageDelta<'_>) -> Result<(), ModelError> {
        if self.id.is_none() || self.open.is_some() {
            return Err(garbled("it ended inside a block"));
        }
        self.usage.merge(&event.usage);
        if let Some(stop) = event.delta.stop_reason {
            self.stop = Some(wire::stop_reason(&stop));
        }
        if let Some(miss) = event.delta.diagnostics.and_then(wire::Diagnostics::miss) {
            self.cache_miss = Some(miss);
        }
        Ok(())
    }

    fn message_stop(&mut self, _: &Kind<'_>) -> Result<(), ModelError> {
        if self.stop.is_none() || self.open.is_some() {
            return Err(garbled("it ended without a stop reason"));
        }
        self.complete = true;
        Ok(())
    }
}

fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(not_json)
}

/// Parses an event whose `type` must match the name it came under.
fn checked<'a, T: Deserialize<'a> + wire::Typed>(
    name: &str,
    data: &'a str,
) -> Result<T, ModelError> {
    let event = parse::<T>(data)?;
    if event.kind() == name {
        Ok(event)
    } else {
        Err(garbled(format!("`{}` came as `{name}`", event.kind())))
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn not_json(error: serde_json::Error) -> ModelError {
    garbled(error.to_string())
}
