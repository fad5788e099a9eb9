//! What a conversation is made of: messages, their blocks, and the tools a model is told about.
//!
//! These are posse's own types. How a provider encodes them belongs to posse-model.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Who speaks in a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the runtime speaking for one (tool results, mail).
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<ContentBlock>,
}

impl Message {
    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            content: vec![ContentBlock::text(text)],
        }
    }

    /// An assistant message.
    pub fn assistant(content: Vec<ContentBlock>) -> Self {
        Self {
            role: Role::Assistant,
            content,
        }
    }
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, as base64.
    Image {
        /// Its media type, `image/png` for one.
        media_type: String,
        /// The base64 text.
        data: String,
    },
    /// The model's thinking; the signature binds it to what came before it.
    Thinking {
        /// The thinking, possibly empty when the API keeps it to itself.
        thinking: String,
        /// The provider's seal, empty where a provider has none.
        signature: String,
    },
    /// Thinking that only the provider can read.
    RedactedThinking {
        /// The sealed data.
        data: String,
    },
    /// The model asks for a tool.
    ToolUse {
        /// The call's id, echoed by its result.
        id: String,
        /// The tool's name.
        name: String,
        /// The input, byte for byte as the model wrote it.
        input: RawJson,
    },
    /// What a tool answered.
    ToolResult {
        /// The call that is answered.
        tool_use_id: String,
        /// The answer.
        content: Vec<ToolContent>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// A block of a kind that posse does not know: kept as it came, sent back as it came.
    Opaque {
        /// The whole block.
        block: RawJson,
    },
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// A block of what a tool answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, as base64.
    Image {
        /// Its media type, `image/png` for one.
        media_type: String,
        /// The base64 text.
        data: String,
    },
    /// Definitions of tools, which the model can call from then on.
    Tools {
        /// The definitions.
        tools: Vec<ToolSpec>,
    },
}

impl ToolContent {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Returns what people are shown of definitions: the names.
pub fn loaded_names(tools: &[ToolSpec]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    format!("loaded: {}", names.join(", "))
}

/// The variants of [`ToolContent`].
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToolContentKind {
    Text,
    Image,
    Tools,
}

/// The fields of all variants of [`ToolContent`].
#[derive(Deserialize)]
struct ToolContentFields {
    r#type: ToolContentKind,
    text: Option<String>,
    media_type: Option<String>,
    data: Option<String>,
    tools: Option<Vec<ToolSpec>>,
}

// serde's own reader of such enums copies an object into values before it knows the type, and
// schemas that are kept as they were written are lost that way.
impl<'de> Deserialize<'de> for ToolContent {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields = ToolContentFields::deserialize(from)?;
        let missing = serde::de::Error::missing_field;
        Ok(match fields.r#type {
            ToolContentKind::Text => Self::Text {
                text: fields.text.ok_or_else(|| missing("text"))?,
            },
            ToolContentKind::Image => Self::Image {
                media_type: fields.media_type.ok_or_else(|| missing("media_type"))?,
                data: fields.data.ok_or_else(|| missing("data"))?,
            },
            ToolContentKind::Tools => Self::Tools {
                tools: fields.tools.ok_or_else(|| missing("tools"))?,
            },
        })
    }
}

impl From<ToolContent> for ContentBlock {
    fn from(content: ToolContent) -> Self {
        match content {
            ToolContent::Text { text } => Self::Text { text },
            ToolContent::Image { media_type, data } => Self::Image { media_type, data },
            ToolContent::Tools { tools } => Self::text(loaded_names(&tools)),
        }
    }
}

/// A JSON value kept as the text it arrived in, so that it can be sent again byte for byte.
///
/// It is made from text that has been checked to be JSON; cloning shares the text.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Takes `text` if it is one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<serde::de::IgnoredAny>(text)?;
        Ok(Self(text.trim().into()))
    }

    /// The empty object.
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for RawJson {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<serde_json::value::RawValue>::deserialize(from)?;
        // A raw value has no space around it, so that `is_object` can look at its first byte.
        Ok(Self(raw.get().into()))
    }
}

impl Serialize for RawJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl JsonSchema for RawJson {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its input: an object.
    pub input_schema: RawJson,
}

/// Why the model stopped. An open set: a reason that posse does not know is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had no more to say.
    EndTurn,
    /// It reached the cap on output.
    MaxTokens,
    /// It wrote one of the stop sequences.
    StopSequence,
    /// It waits for tool results.
    ToolUse,
    /// The server paused a long turn; the reply is sent back as it is to go on.
    PauseTurn,
    /// It declined.
    Refusal,
    /// The conversation filled the context window.
    ContextFull,
    /// A reason added since.
    #[serde(untagged)]
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_keeps_the_bytes_it_was_given() {
        let odd = r#"{"b":1.50,"a" : [ 1,2 ]}"#;
        let raw = RawJson::parse(odd).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), odd);
        assert!(RawJson::parse("{\"a\":").is_err());
        assert!(RawJson::parse("{} {}").is_err());
    }

    #[test]
    fn what_a_tool_answered_comes_back_with_schemas_as_they_were_written() {
        let tools = vec![ToolSpec {
            name: "mcp__a__b".into(),
            description: "Says \"b\".".into(),
            input_schema: RawJson::parse(r#"{"type" : "object","b":1.50,"a":{}}"#).unwrap(),
        }];
        let image = ToolContent::Image {
            media_type: "image/png".into(),
            data: "AAAA".into(),
        };
        let content = vec![ToolContent::text("t"), image, ToolContent::Tools { tools }];
        let text = serde_json::to_string(&content).unwrap();
        assert!(
            text.contains(r#"{"type" : "object","b":1.50,"a":{}}"#),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<Vec<ToolContent>>(&text).unwrap(),
            content
        );
        for wrong in [
            r#"{"type":"text"}"#,
            r#"{"type":"tools"}"#,
            r#"{"type":"video"}"#,
        ] {
            assert!(
                serde_json::from_str::<ToolContent>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
