//! What encoded messages of both dialects have in common.

use posse_protocol::{ContentBlock, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What all messages have.
#[derive(Deserialize)]
pub(crate) struct WireMessage<'a> {
    pub(crate) role: WireRole,
    #[serde(borrow)]
    pub(crate) content: Option<&'a RawValue>,
    /// The calls of a reply, in the dialect that has them beside the content.
    #[serde(borrow, default)]
    pub(crate) tool_calls: Option<Vec<&'a RawValue>>,
    /// The answered call, in the dialect where each result is a message.
    #[serde(default)]
    pub(crate) tool_call_id: Option<String>,
}

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireRole {
    User,
    Assistant,
    Tool,
}

/// Returns a block that is not known, as it is.
pub(crate) fn opaque(raw: &RawValue) -> ContentBlock {
    // A raw value is JSON.
    let block = RawJson::parse(raw.get()).unwrap_or_else(|_| RawJson::empty_object());
    ContentBlock::Opaque { block }
}
