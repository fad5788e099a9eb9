//! Parses and checks a request of Chat Completions.

use http::HeaderMap;
use serde_json::Value;

use crate::api_error::ApiRefusal;
use crate::conversation::{Conversation, text_of};
use crate::prefix::{Builder, RequestPrefix, Section};
use crate::schema;

/// A request that the API would accept.
#[derive(Debug)]
pub(crate) struct OpenAiRequest {
    pub(crate) body: Value,
    pub(crate) prefix: RequestPrefix,
}

impl OpenAiRequest {
    /// Checks the body of `POST /v1/chat/completions`.
    pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiRefusal> {
        check_key(headers)?;
        let body: Value = serde_json::from_slice(body).map_err(|_| {
            ApiRefusal::invalid("We could not parse the JSON body of your request.")
        })?;
        schema::CHAT.check(&body)?;
        check_pairing(&body["messages"])?;
        if !body["stream_options"].is_null() && body["stream"] != true {
            return Err(ApiRefusal::invalid(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            ));
        }
        let mut builder = Builder::new(body["model"].as_str().unwrap_or_default());
        for tool in body["tools"].as_array().into_iter().flatten() {
            builder.block(Section::Tools, "", tool);
        }
        for message in body["messages"].as_array().into_iter().flatten() {
            builder.block(Section::Messages, "", message);
        }
        Ok(Self {
            prefix: builder.finish(),
            body,
        })
    }

    /// Returns true if the reply is to be streamed.
    pub(crate) fn streams(&self) -> bool {
        self.body["stream"] == true
    }

    /// Returns the request as a script sees it.
    pub(crate) fn conversation(&self, headers: &HeaderMap, with_text: bool) -> Conversation {
        let messages = self.body["messages"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let last_user = messages
            .iter()
            .rev()
            .filter(|message| message["role"] == "user")
            .map(|message| text_of(&message["content"]))
            .find(|text| !text.is_empty());
        let mut tool_texts: Vec<String> = messages
            .iter()
            .rev()
            .take_while(|message| message["role"] == "tool")
            .map(|message| text_of(&message["content"]))
            .collect();
        tool_texts.reverse();
        let all = messages
            .iter()
            .map(|message| text_of(&message["content"]) + "\n");
        Conversation {
            agent: crate::anthropic::agent_of(headers),
            model: self.body["model"].as_str().unwrap_or_default().to_owned(),
            last_user: last_user.unwrap_or_default(),
            last_tool: tool_texts.join("\n"),
            turn: messages
                .iter()
                .filter(|message| message["role"] == "assistant")
                .count() as u32
                + 1,
            all_text: if with_text {
                all.collect()
            } else {
                String::new()
            },
        }
    }
}

/// Refuses a request without a key; any key is accepted.
pub(crate) fn check_key(headers: &HeaderMap) -> Result<(), ApiRefusal> {
    let key = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let missing = key.strip_prefix("Bearer ").is_none_or(str::is_empty);
    if missing {
        Err(ApiRefusal::new(401, "You didn't provide an API key."))
    } else {
        Ok(())
    }
}

/// Every call of an assistant message must be answered by the tool messages right after it, and
/// by no others.
fn check_pairing(messages: &Value) -> Result<(), ApiRefusal> {
    let mut open: Vec<&str> = Vec::new();
    let messages = messages.as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        return Err(ApiRefusal::invalid(
            "Invalid 'messages': empty array. Expected at least one message.",
        ));
    }
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let found = open.iter().position(|open| *open == id).ok_or_else(|| {
                ApiRefusal::invalid(format!(
                    "Invalid parameter: messages.{at}: messages with role 'tool' must be a response to a \
                     preceding message with 'tool_calls'."
                ))
            })?;
            open.remove(found);
            continue;
        }
        unanswered(&open)?;
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open = calls.filter_map(|call| call["id"].as_str()).collect();
    }
    unanswered(&open)
}

fn unanswered(open: &[&str]) -> Result<(), ApiRefusal> {
    if open.is_empty() {
        return Ok(());
    }
    Err(ApiRefusal::invalid(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    )))
}
