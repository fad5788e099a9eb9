//! Messages of a conversation, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::WireError;
use crate::{ContentBlock, Message, RawJson, Role, ToolContent, ToolSpec};

/// A message of a conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Message")]
pub(super) struct WireMessage {
    /// Who speaks.
    role: Role,
    /// The blocks of the message, in order.
    content: Vec<WireBlock>,
}

both_ways!(Message, WireMessage { role } each { content });

/// The definition of a tool.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ToolSpec")]
pub(super) struct WireToolSpec {
    /// The name that the model calls it by.
    name: String,
    /// What it does and when to use it.
    description: String,
    /// The JSON Schema of its input.
    input_schema: RawJson,
}

both_ways!(
    ToolSpec,
    WireToolSpec {
        name,
        description,
        input_schema
    }
);

tagged! {
    /// Text, an image, or definitions of tools.
    #[schemars(rename = "Part")]
    enum WirePart {
        /// Plain text.
        Text {
            /// The text.
            text: String,
        }
        /// An image.
        Image {
            /// The media type, e.g. `image/png`.
            media_type: String,
            /// The image as base64.
            data: String,
        }
        /// Definitions of tools, which the model can call from then on. Only in results of tools; in
        /// a prompt it is read as the text of their names.
        Tools {
            /// The definitions.
            tools: Vec<WireToolSpec>,
        }
    }
}

tagged! {
    /// A block of a message.
    #[schemars(rename = "Block")]
    enum WireBlock {
        /// Plain text.
        Text {
            /// The text.
            text: String,
        }
        /// An image.
        Image {
            /// The media type, e.g. `image/png`.
            media_type: String,
            /// The image as base64.
            data: String,
        }
        /// The model's thinking.
        Thinking {
            /// The text. It may be empty: some providers keep it to themselves.
            thinking: String,
            /// The provider's signature; empty if the provider has none.
            signature: String,
        }
        /// Thinking that only the provider can read.
        RedactedThinking {
            /// The encrypted text.
            data: String,
        }
        /// A tool call.
        ToolUse {
            /// The id of the call, which its result repeats.
            id: String,
            /// The tool.
            name: String,
            /// The input, as the model wrote it.
            input: RawJson,
        }
        /// The result of a tool call.
        ToolResult {
            /// The id of the call.
            tool_use_id: String,
            /// The result.
            content: Vec<WirePart>,
            /// True if the tool failed.
            is_error: bool,
        }
        /// A block of a kind that posse does not know, as the provider sent it.
        Opaque {
            /// The whole block.
            block: RawJson,
        }
    }
}

impl From<ToolContent> for WirePart {
    fn from(content: ToolContent) -> Self {
        match content {
            ToolContent::Text { text } => Self::Text { text },
            ToolContent::Image { media_type, data } => Self::Image { media_type, data },
            ToolContent::Tools { tools } => Self::Tools {
                tools: tools.into_iter().map(Into::into).collect(),
            },
        }
    }
}

impl From<WirePart> for ToolContent {
    fn from(part: WirePart) -> Self {
        match part {
            WirePart::Text { text } => Self::Text { text },
            WirePart::Image { media_type, data } => Self::Image { media_type, data },
            WirePart::Tools { tools } => Self::Tools {
                tools: tools.into_iter().map(Into::into).collect(),
            },
        }
    }
}

/// Returns a prompt's words for the wire. A person says nothing but text and images.
pub(super) fn prompt(words: Vec<ContentBlock>) -> Result<Vec<WirePart>, WireError> {
    let part = |block| match block {
        ContentBlock::Text { text } => Ok(WirePart::Text { text }),
        ContentBlock::Image { media_type, data } => Ok(WirePart::Image { media_type, data }),
        _ => Err(WireError::NotAPrompt),
    };
    words.into_iter().map(part).collect()
}

/// Returns a prompt's words as blocks.
pub(super) fn words(prompt: Vec<WirePart>) -> Vec<ContentBlock> {
    let block = |part| ContentBlock::from(ToolContent::from(part));
    prompt.into_iter().map(block).collect()
}

impl From<ContentBlock> for WireBlock {
    fn from(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text { text } => Self::Text { text },
            ContentBlock::Image { media_type, data } => Self::Image { media_type, data },
            ContentBlock::Thinking {
                thinking,
                signature,
            } => Self::Thinking {
                thinking,
                signature,
            },
            ContentBlock::RedactedThinking { data } => Self::RedactedThinking { data },
            ContentBlock::ToolUse { id, name, input } => Self::ToolUse { id, name, input },
            ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => Self::ToolResult {
                tool_use_id,
                content: content.into_iter().map(Into::into).collect(),
                is_error,
            },
            ContentBlock::Opaque { block } => Self::Opaque { block },
        }
    }
}

impl From<WireBlock> for ContentBlock {
    fn from(block: WireBlock) -> Self {
        match block {
            WireBlock::Text { text } => Self::Text { text },
            WireBlock::Image { media_type, data } => Self::Image { media_type, data },
            WireBlock::Thinking {
                thinking,
                signature,
            } => Self::Thinking {
                thinking,
                signature,
            },
            WireBlock::RedactedThinking { data } => Self::RedactedThinking { data },
            WireBlock::ToolUse { id, name, input } => Self::ToolUse { id, name, input },
            WireBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => Self::ToolResult {
                tool_use_id,
                content: content.into_iter().map(Into::into).collect(),
                is_error,
            },
            WireBlock::Opaque { block } => Self::Opaque { block },
        }
    }
}
