//! Parses entries of a transcript for people. They are stored in the format of their provider;
//! both formats are supported, and what is unknown is named rather than hidden.

use serde_json::Value;

/// A part of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TranscriptPart {
    /// A prompt to the agent.
    Prompt(String),
    /// The model's text.
    Reply(String),
    /// The model's thinking.
    Thinking(String),
    /// A tool call.
    Call { tool: String, input: String },
    /// A tool's result.
    Answer { text: String, is_error: bool },
    /// Something that cannot be shown as text, by its name.
    Other(String),
}

/// Parses the bytes of an entry: one message, or several separated by commas.
pub(crate) fn parts(bytes: &[u8]) -> Vec<TranscriptPart> {
    let list = [b"[", bytes, b"]"].concat();
    match serde_json::from_slice::<Vec<Value>>(&list) {
        Ok(messages) => messages.iter().flat_map(message).collect(),
        Err(error) => vec![TranscriptPart::Other(format!("cannot be read: {error}"))],
    }
}

/// Returns the first line of a prompt, for lists.
pub(crate) fn first_line(bytes: &[u8]) -> Option<String> {
    parts(bytes).into_iter().find_map(|part| match part {
        TranscriptPart::Prompt(text) => text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned),
        _ => None,
    })
}

/// Returns `text` in at most `longest` characters.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(longest.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// Returns the number of terminal columns of `text`; East Asian characters and emoji take two.
pub(crate) fn breadth(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Returns the number of columns of a character.
fn columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Returns `text` in at most `widest` terminal columns.
pub(crate) fn fitted(text: &str, widest: usize) -> String {
    if breadth(text) <= widest {
        return text.to_owned();
    }
    let mut left = widest.saturating_sub(1);
    let mut fitted: String = text
        .chars()
        .take_while(|c| {
            let rest = left.checked_sub(columns(*c));
            left = rest.unwrap_or_default();
            rest.is_some()
        })
        .collect();
    if widest > 0 {
        fitted.push('…');
    }
    fitted
}

fn message(message: &Value) -> Vec<TranscriptPart> {
    let role = message["role"].as_str().unwrap_or_default();
    if role == "tool" {
        let text = flat(&message["content"]);
        let (text, is_error) = match text.strip_prefix("Error: ") {
            Some(rest) => (rest.to_owned(), true),
            None => (text, false),
        };
        return vec![TranscriptPart::Answer { text, is_error }];
    }
    let mut parts = match &message["content"] {
        Value::String(text) => vec![words(role, text)],
        Value::Array(blocks) => blocks.iter().map(|one| block(role, one)).collect(),
        _ => Vec::new(),
    };
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    parts.extend(calls.map(|call| {
        TranscriptPart::Call {
            tool: call["function"]["name"].as_str().unwrap_or("?").to_owned(),
            input: call["function"]["arguments"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }
    }));
    parts
}

fn words(role: &str, text: &str) -> TranscriptPart {
    if role == "assistant" {
        TranscriptPart::Reply(text.to_owned())
    } else {
        TranscriptPart::Prompt(text.to_owned())
    }
}

fn block(role: &str, block: &Value) -> TranscriptPart {
    match block["type"].as_str() {
        Some("text") => words(role, block["text"].as_str().unwrap_or_default()),
        Some("thinking") => {
            TranscriptPart::Thinking(block["thinking"].as_str().unwrap_or_default().to_owned())
        }
        Some("tool_use") => TranscriptPart::Call {
            tool: block["name"].as_str().unwrap_or("?").to_owned(),
            input: block["input"].to_string(),
        },
        Some("tool_result") => TranscriptPart::Answer {
            text: flat(&block["content"]),
            is_error: block["is_error"].as_bool().unwrap_or(false),
        },
        Some("image" | "image_url") => TranscriptPart::Other("an image".into()),
        Some("redacted_thinking") => TranscriptPart::Other("sealed thinking".into()),
        Some(other) => TranscriptPart::Other(other.to_owned()),
        None => TranscriptPart::Other("a block without a kind".into()),
    }
}

/// Returns the text of a tool's result; what is not text is named.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .map(|block| block["text"].as_str().unwrap_or("(an image)"))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> TranscriptPart {
        TranscriptPart::Call {
            tool: "Read".into(),
            input: r#"{"file_path":"a"}"#.into(),
        }
    }

    fn answer(is_error: bool) -> TranscriptPart {
        TranscriptPart::Answer {
            text: "no such file".into(),
            is_error,
        }
    }

    #[test]
    fn both_spellings_read_alike() {
        let anthropic = br#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"no such file"}],"is_error":true},{"type":"text","text":"and?"}]}"#;
        let openai = br#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"t","type":"function","function":{"name":"Read","arguments":"{\"file_path\":\"a\"}"}}]},{"role":"tool","tool_call_id":"t","content":"Error: no such file"},{"role":"user","content":[{"type":"text","text":"and?"}]}"#;
        let expected = [
            TranscriptPart::Reply("I look.".into()),
            call(),
            answer(true),
            TranscriptPart::Prompt("and?".into()),
        ];
        assert_eq!(parts(anthropic), expected);
        assert_eq!(parts(openai), expected);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let odd =
            br#"{"role":"user","content":[{"type":"image","source":{}},{"type":"hologram"},{}]}"#;
        let names = ["an image", "hologram", "a block without a kind"]
            .map(|name| TranscriptPart::Other(name.into()));
        assert_eq!(parts(odd), names);
        assert!(
            matches!(&parts(b"{")[..], [TranscriptPart::Other(why)] if why.starts_with("cannot be read"))
        );
        assert_eq!(
            parts(br#"{"role":"tool","tool_call_id":"t","content":"no such file"}"#),
            [answer(false)]
        );
    }

    #[test]
    fn a_list_shows_the_first_words() {
        let prompt = br#"{"role":"user","content":[{"type":"text","text":"\n  fix it\nplease"}]}"#;
        assert_eq!(first_line(prompt).as_deref(), Some("fix it"));
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }

    #[test]
    fn columns_are_not_characters() {
        let check = |text: &str, widest: usize, fits: &str| assert_eq!(fitted(text, widest), fits);
        check("fix it", 6, "fix it");
        check("fix it", 5, "fix …");
        check("漢字かな", 8, "漢字かな");
        check("漢字かな", 7, "漢字か…");
        check("漢字かな", 6, "漢字…");
        check("漢", 1, "…");
        check("漢", 0, "");
    }
}
