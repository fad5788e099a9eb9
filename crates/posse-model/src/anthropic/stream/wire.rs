//! The events as they are transmitted. Strings are borrowed from the event where possible.

use std::borrow::Cow;

use posse_port::model::CacheMiss;
use posse_protocol::{StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Something with a `type`.
pub(super) trait Typed {
    fn kind(&self) -> &str;
}

macro_rules! typed {
    ($($name:ident),*) => {
        $(impl Typed for $name<'_> {
            fn kind(&self) -> &str {
                &self.kind
            }
        })*
    };
}
typed!(
    Kind,
    MessageStart,
    BlockStart,
    BlockDelta,
    BlockStop,
    MessageDelta
);

/// A string that is borrowed even if it is optional; a plain `Option<Cow>` always copies.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
}

/// `message_start`.
#[derive(Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) message: StartedMessage<'a>,
}

#[derive(Deserialize)]
pub(super) struct StartedMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) model: Cow<'a, str>,
    #[serde(default)]
    pub(super) usage: UsageFields,
    #[serde(default)]
    pub(super) diagnostics: Option<Diagnostics>,
}

/// `content_block_start`.
#[derive(Deserialize)]
pub(super) struct BlockStart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    pub(super) index: usize,
    #[serde(borrow)]
    pub(super) content_block: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct TextStart<'a> {
    #[serde(borrow)]
    pub(super) text: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct ThinkingStart<'a> {
    #[serde(borrow)]
    pub(super) thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) signature: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct ToolUseStart<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct RedactedStart<'a> {
    #[serde(borrow)]
    pub(super) data: Cow<'a, str>,
}

/// `content_block_delta`.
#[derive(Deserialize)]
pub(super) struct BlockDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    pub(super) index: usize,
    #[serde(borrow)]
    pub(super) delta: Delta<'a>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<Text<'a>>,
}

/// `content_block_stop`.
#[derive(Deserialize)]
pub(super) struct BlockStop<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    pub(super) index: usize,
}

/// `message_delta`.
#[derive(Deserialize)]
pub(super) struct MessageDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) delta: Stopped<'a>,
    #[serde(default)]
    pub(super) usage: UsageFields,
}

#[derive(Deserialize)]
pub(super) struct Stopped<'a> {
    #[serde(borrow)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) diagnostics: Option<Diagnostics>,
}

/// Why something was missing from the prompt cache.
#[derive(Deserialize)]
pub(super) struct Diagnostics {
    cache_miss_reason: Option<MissReason>,
}

#[derive(Deserialize)]
struct MissReason {
    #[serde(rename = "type")]
    kind: String,
    cache_missed_input_tokens: Option<u64>,
}

impl Diagnostics {
    pub(super) fn miss(self) -> Option<CacheMiss> {
        let reason = self.cache_miss_reason?;
        Some(CacheMiss {
            reason: reason.kind,
            missed_tokens: reason.cache_missed_input_tokens,
        })
    }
}

/// Usage is cumulative: a later count replaces an earlier one, a missing one keeps it.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageFields {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl UsageFields {
    /// Takes over later counts.
    pub(super) fn merge(&mut self, later: &Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = later
            .cache_read_input_tokens
            .or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = later
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_creation = later.cache_creation.or(self.cache_creation);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// Returns the counts. The total of cache writes includes those for an hour.
    pub(super) fn total(&self) -> Usage {
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let hour = self
            .cache_creation
            .and_then(|made| made.ephemeral_1h_input_tokens)
            .unwrap_or(0);
        Usage {
            input: self.input_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write_5m: written.saturating_sub(hour),
            cache_write_1h: hour.min(written),
            output: self.output_tokens.unwrap_or(0),
            thinking: self
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(0),
        }
    }
}

/// Parses a stop reason.
pub(super) fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "tool_use" => StopReason::ToolUse,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextFull,
        other => StopReason::Other(other.to_owned()),
    }
}
