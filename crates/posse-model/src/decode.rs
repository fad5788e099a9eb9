//! Reads entries back: the bytes that a dialect once encoded, as messages.
//!
//! For people and programs that look at a history. Nothing on the way to the API needs it. The
//! dialects are told apart by their shape: no message means one thing in one and another in the
//! other.

use posse_protocol::{Message, Role};
use serde_json::value::RawValue;

use crate::wire_message::{WireMessage, WireRole};
use crate::{anthropic, openai};

/// An entry that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON, or not a list of messages.
    #[error("the entry cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It has no message.
    #[error("the entry has no message")]
    Empty,
}

/// Returns the message of an entry: of one message or, separated by commas, of several that were
/// one.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    let list = [b"[", bytes, b"]"].concat();
    let messages: Vec<WireMessage<'_>> = serde_json::from_slice(&list)?;
    let role = match messages.first().ok_or(DecodeError::Empty)?.role {
        WireRole::Assistant => Role::Assistant,
        WireRole::User | WireRole::Tool => Role::User,
    };
    let mut content = Vec::new();
    for message in &messages {
        match message.content.and_then(blocks) {
            Some(blocks) if !openai::decode::has_own(message, &blocks) => {
                content.extend(blocks.into_iter().map(anthropic::decode::block));
            }
            blocks => openai::decode::message(message, &blocks.unwrap_or_default(), &mut content)?,
        }
    }
    Ok(Message { role, content })
}

/// Returns content that is a list.
fn blocks(content: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(content.get()).ok()
}

#[cfg(test)]
mod tests {
    use posse_protocol::{ContentBlock, RawJson, ToolContent, ToolSpec};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    fn result(text: &str, is_error: bool) -> ContentBlock {
        ContentBlock::ToolResult {
            tool_use_id: "t".into(),
            content: vec![ToolContent::text(text)],
            is_error,
        }
    }

    // proves WA-06 (part: call ids)
    #[test]
    fn both_dialects_read_alike() {
        let call = ContentBlock::ToolUse {
            id: "t".into(),
            name: "Read".into(),
            input: json(r#"{ "n": 1.50 }"#),
        };
        let reply = Message::assistant(vec![ContentBlock::text("I look."), call]);
        let results = Message {
            role: Role::User,
            content: vec![result("no such file", true), ContentBlock::text("and?")],
        };
        for encode in [anthropic::encode::entry, openai::encode::entry] {
            for message in [&reply, &results] {
                assert_eq!(&decode(&encode(message).bytes).unwrap(), message);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_kept_as_it_is() {
        let odd = br#"{"role":"user","content":[{"type":"hologram","of": 1},{},7]}"#;
        let kept = [r#"{"type":"hologram","of": 1}"#, "{}", "7"];
        let kept = kept.map(|block| ContentBlock::Opaque { block: json(block) });
        assert_eq!(decode(odd).unwrap().content, kept);
        for wrong in [&b"{"[..], b"", b"7", br#"{"role":"nobody","content":[]}"#] {
            assert!(decode(wrong).is_err(), "{wrong:?}");
        }
    }

    fn tool(name: String) -> ToolSpec {
        ToolSpec {
            name,
            description: "Says \"x\".".into(),
            input_schema: json(r#"{ "type":"object"}"#),
        }
    }

    fn content() -> impl Strategy<Value = ContentBlock> {
        let text = || "\\PC{0,12}";
        let image = || (Just("image/png".to_owned()), "[a-zA-Z0-9+/]{4,8}");
        let input = prop_oneof![
            Just("{}".to_owned()),
            Just(r#"{ "a":[1.50,"\u00e4\n"] }"#.to_owned())
        ];
        let answer = prop_oneof![
            text().prop_map(ToolContent::text),
            image().prop_map(|(media_type, data)| ToolContent::Image { media_type, data }),
            vec("[a-z_]{1,8}", 0..3).prop_map(|names| ToolContent::Tools {
                tools: names.into_iter().map(tool).collect(),
            }),
        ];
        prop_oneof![
            text().prop_map(ContentBlock::text),
            image().prop_map(|(media_type, data)| ContentBlock::Image { media_type, data }),
            (text(), text()).prop_map(|(thinking, signature)| ContentBlock::Thinking {
                thinking,
                signature
            }),
            text().prop_map(|data| ContentBlock::RedactedThinking { data }),
            ("[a-z]{1,8}", "[A-Z][a-z]{1,8}", input).prop_map(|(id, name, input)| {
                ContentBlock::ToolUse {
                    id,
                    name,
                    input: json(&input),
                }
            }),
            ("[a-z]{1,8}", vec(answer, 0..3), any::<bool>()).prop_map(
                |(tool_use_id, content, is_error)| ContentBlock::ToolResult {
                    tool_use_id,
                    content,
                    is_error
                }
            ),
            Just(ContentBlock::Opaque {
                block: json(r#"{"type":"server_tool_use","x":1}"#)
            }),
        ]
    }

    proptest! {
        // What was read and is written again is what was there: nothing that was sent is lost.
        #[test]
        fn messages_come_back(is_reply: bool, content in vec(content(), 0..6)) {
            let role = if is_reply { Role::Assistant } else { Role::User };
            let message = Message { role, content };
            let anthropic = anthropic::encode::entry(&message);
            let read = decode(&anthropic.bytes).unwrap();
            prop_assert_eq!(read.role, role);
            prop_assert_eq!(anthropic::encode::entry(&read), anthropic);
            let openai = openai::encode::entry(&message);
            let read = decode(&openai.bytes).unwrap();
            prop_assert_eq!(read.role, role);
            let again = decode(&openai::encode::entry(&read).bytes).unwrap();
            prop_assert_eq!(again, read);
        }
    }
}
