//! Every tool call must be answered in the next message, before anything else in it.

use std::collections::HashSet;

use serde_json::Value;

use crate::api_error::ApiRefusal;

/// Checks the messages of a request.
pub(super) fn check(messages: &Value) -> Result<(), ApiRefusal> {
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut after_other = false;
    for (at, message) in messages.as_array().into_iter().flatten().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        // Adjacent messages of one role are one message to the API.
        let continues = at > 0 && messages[at - 1]["role"] == role;
        if role == "assistant" && !continues {
            unanswered(at, &open)?;
        }
        if role == "user" && !continues {
            after_other = false;
        }
        for (index, block) in blocks.iter().enumerate() {
            let place = format!("messages.{at}.content.{index}");
            match block["type"].as_str() {
                Some("tool_use") => {
                    let id = block["id"].as_str().unwrap_or_default().to_owned();
                    check_id(&place, &id)?;
                    if role != "assistant" {
                        return Err(ApiRefusal::invalid(format!(
                            "{place}: `tool_use` blocks can only be in `assistant` messages"
                        )));
                    }
                    if !seen.insert(id.clone()) {
                        return Err(ApiRefusal::invalid(format!(
                            "{place}: `tool_use` ids must be unique"
                        )));
                    }
                    open.push(id);
                }
                Some("tool_result") => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    answer(&place, id, role, after_other, &mut open)?;
                }
                _ if role == "user" => after_other = true,
                _ => {}
            }
        }
        if message["content"].is_string() && role == "user" {
            after_other = true;
        }
        // Beyond the last message serde_json's index is null, which is not a role.
        if role == "user" && messages[at + 1]["role"] != "user" {
            unanswered(at, &open)?;
        }
    }
    unanswered(
        messages.as_array().map_or(0, Vec::len).saturating_sub(1),
        &open,
    )
}

/// Matches a result with its call.
fn answer(
    place: &str,
    id: &str,
    role: &str,
    after_other: bool,
    open: &mut Vec<String>,
) -> Result<(), ApiRefusal> {
    let Some(found) = open
        .iter()
        .position(|open| open == id)
        .filter(|_| role == "user")
    else {
        return Err(ApiRefusal::invalid(format!(
            "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` \
             block must have a corresponding `tool_use` block in the previous message."
        )));
    };
    if after_other {
        return Err(ApiRefusal::invalid(format!(
            "{place}: `tool_result` blocks must come before any other content of the message"
        )));
    }
    open.remove(found);
    Ok(())
}

/// Refuses calls without a result.
fn unanswered(at: usize, open: &[String]) -> Result<(), ApiRefusal> {
    if open.is_empty() {
        return Ok(());
    }
    Err(ApiRefusal::invalid(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message.",
        open.join(", ")
    )))
}

fn check_id(place: &str, id: &str) -> Result<(), ApiRefusal> {
    let fine = !id.is_empty()
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if fine {
        Ok(())
    } else {
        Err(ApiRefusal::invalid(format!(
            "{place}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        )))
    }
}
