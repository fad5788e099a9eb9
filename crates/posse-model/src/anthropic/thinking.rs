//! Replies without their thinking, for another model than the one that thought.

use posse_port::model::Encoded;
use posse_protocol::Message;

use super::{decode, encode};

/// Returns an encoded reply without its thinking; as it is, if it has none.
pub(super) fn dropped(reply: &Encoded) -> Encoded {
    let Some(Message { mut content, .. }) = decode::message(&reply.bytes) else {
        return reply.clone();
    };
    let count = content.len();
    content.retain(|block| !encode::is_thinking(block));
    match content.len() == count {
        true => reply.clone(),
        false => encode::entry(&Message::assistant(content)),
    }
}

#[cfg(test)]
mod tests {
    use posse_protocol::{ContentBlock, RawJson};

    use super::*;

    // proves TU-08 (part: another model or tool set)
    #[test]
    fn thinking_is_dropped_and_nothing_else_changes() {
        let thought = || ContentBlock::Thinking {
            thinking: "hm".into(),
            signature: "s".into(),
        };
        let redacted = || ContentBlock::RedactedThinking { data: "d".into() };
        let said = || {
            vec![
                ContentBlock::text("I look."),
                ContentBlock::ToolUse {
                    id: "t".into(),
                    name: "Read".into(),
                    input: RawJson::parse(r#"{ "n": 1.50 }"#).unwrap(),
                },
            ]
        };
        let reply = |content: Vec<ContentBlock>| encode::entry(&Message::assistant(content));
        let mut all = vec![thought(), redacted()];
        all.extend(said());
        all.insert(3, thought());
        assert_eq!(dropped(&reply(all)), reply(said()));
        assert_eq!(dropped(&reply(said())), reply(said()));
        // The API refuses a message without content.
        let nothing = String::from_utf8(dropped(&reply(vec![thought()])).bytes.to_vec()).unwrap();
        assert!(nothing.contains("(nothing)"), "{nothing}");
        let odd = Encoded {
            bytes: "{".into(),
            mark_at: None,
        };
        assert_eq!(dropped(&odd), odd);
    }
}
