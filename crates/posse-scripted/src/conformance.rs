//! Requests with the class of answer that each must get, both from this server and from the real
//! API.
//!
//! The cases are data (`conformance.jsonl`). Some send back an earlier answer, so that they are
//! run in order and the caller keeps the answers.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;

/// A request and the expected class of answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What it tries, for people.
    pub about: String,
    /// The path; `/v1/messages` unless given.
    #[serde(default = "messages")]
    pub path: String,
    /// Headers that differ from the usual ones; null omits one.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    /// It sends back the reply to this earlier case, which must contain thinking.
    #[serde(default)]
    pub needs_thinking_of: Option<String>,
    body: Value,
    /// The expected class.
    pub expect: Expected,
}

/// The class of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The HTTP status.
    pub status: u16,
    /// The error's type, if the status is an error.
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

/// An answer that is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got} {words}")]
pub struct Mismatch {
    /// What was expected.
    pub expected: Expected,
    /// What was answered.
    pub got: Expected,
    /// The answer's message.
    pub words: String,
}

fn messages() -> String {
    "/v1/messages".to_owned()
}

/// Returns all cases, in the order in which they must be run.
pub fn cases() -> Result<Vec<Case>, serde_json::Error> {
    include_str!("conformance.jsonl")
        .lines()
        .map(serde_json::from_str)
        .collect()
}

/// Answers of earlier cases, by name.
pub type Answers = HashMap<String, Value>;

impl Case {
    /// Returns the body to send; `None` if an earlier answer lacks what this case sends back.
    pub fn body(&self, model: &str, answers: &Answers) -> Option<Vec<u8>> {
        if let Value::String(raw) = &self.body {
            return Some(raw.clone().into_bytes());
        }
        let mut body = self.body.clone();
        if body["model"] == "$model" {
            body["model"] = model.into();
        }
        if let Some(earlier) = &self.needs_thinking_of {
            let content = &answers.get(earlier)?["content"];
            if !content
                .as_array()?
                .iter()
                .any(|block| block["type"] == "thinking")
            {
                return None;
            }
            for message in body["messages"].as_array_mut()? {
                match message["content"].as_str() {
                    Some("$content") => message["content"] = content.clone(),
                    Some("$edited_content") => message["content"] = edited(content),
                    _ => {}
                }
            }
        }
        Some(body.to_string().into_bytes())
    }

    /// Compares an answer with what is expected.
    pub fn judge(&self, status: u16, answer: &Value) -> Result<(), Mismatch> {
        let kind = answer["error"]["type"].as_str().map(str::to_owned);
        let got = Expected { status, kind };
        if got == self.expect {
            return Ok(());
        }
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        Err(Mismatch {
            expected: self.expect.clone(),
            got,
            words: words.to_owned(),
        })
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.status)?;
        self.kind
            .as_ref()
            .map_or(Ok(()), |kind| write!(f, " {kind}"))
    }
}

/// Returns the content with its thinking changed.
fn edited(content: &Value) -> Value {
    let mut content = content.clone();
    for block in content.as_array_mut().into_iter().flatten() {
        if block["type"] == "thinking" {
            block["thinking"] =
                format!("{} not", block["thinking"].as_str().unwrap_or_default()).into();
        }
    }
    content
}
