//! What the server has: its tools, one prompt and one resource.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::options::Options;
use crate::server::{NO_METHOD, Refusal, Request, Server, WRONG_PARAMS, refusal};
use crate::tools;

/// The only resource.
const RESOURCE: &str = "test://greeting";

/// Answers a request about what there is.
pub(crate) fn result(server: &Server, method: &str, request: &Request) -> Result<Value, Refusal> {
    let params = &request.params;
    let mut found = match method {
        "tools/list" => {
            let added = server.added.load(Ordering::SeqCst);
            page(
                &server.options,
                "tools",
                tools::all(&server.options, added),
                params,
            )?
        }
        _ if server.options.has("--only-tools") => return Err(unknown(method)),
        "prompts/list" => page(&server.options, "prompts", vec![prompt()], params)?,
        "resources/list" => page(&server.options, "resources", vec![resource()], params)?,
        "resources/templates/list" => {
            page(&server.options, "resourceTemplates", Vec::new(), params)?
        }
        "prompts/get" if params["name"] == "greet" => {
            let who = params["arguments"]["who"].as_str().unwrap_or("you");
            let text = format!("Say hello to {who}.");
            return Ok(json!({
                "description": "A greeting",
                "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
            }));
        }
        "resources/read" if params["uri"] == RESOURCE => {
            let text = json!({ "uri": RESOURCE, "mimeType": "text/plain", "text": "hello" });
            json!({ "contents": [text] })
        }
        "prompts/get" | "resources/read" => {
            return Err(refusal(WRONG_PARAMS, "there is no such thing here"));
        }
        _ => return Err(unknown(method)),
    };
    if request.is_new() {
        found["ttlMs"] = json!(0);
        found["cacheScope"] = json!("private");
    }
    Ok(found)
}

fn unknown(method: &str) -> Refusal {
    refusal(NO_METHOD, &format!("Method not found: {method}"))
}

/// Returns a page of a list. A cursor is the number of entries before it.
fn page(
    options: &Options,
    key: &str,
    entries: Vec<Value>,
    params: &Value,
) -> Result<Value, Refusal> {
    let from = match &params["cursor"] {
        Value::Null => 0,
        cursor => {
            let number = cursor.as_str().and_then(|text| text.parse().ok());
            let number = number.filter(|from| *from < entries.len());
            number.ok_or_else(|| refusal(WRONG_PARAMS, "there is no such cursor"))?
        }
    };
    let size = options.page.unwrap_or(usize::MAX).max(1);
    let next = from.saturating_add(size);
    let more = next < entries.len();
    let shown: Vec<Value> = entries.into_iter().skip(from).take(size).collect();
    let mut page = json!({ key: shown });
    if more {
        page["nextCursor"] = json!(next.to_string());
    }
    Ok(page)
}

fn prompt() -> Value {
    let who = json!({ "name": "who", "description": "Who is greeted", "required": false });
    json!({ "name": "greet", "description": "Greets somebody", "arguments": [who] })
}

fn resource() -> Value {
    json!({
        "uri": RESOURCE, "name": "greeting", "description": "A greeting", "mimeType": "text/plain",
    })
}
