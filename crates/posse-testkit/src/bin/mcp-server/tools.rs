//! The tools, most of which have a fault.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::options::Options;
use crate::server::{Refusal, Request, Server, WRONG_PARAMS, refusal};

/// A picture of one pixel, PNG in base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// Number of bytes of the line of `long_line`, more than any client takes.
const LONG_LINE: usize = 20 << 20;
/// Number of characters of the text of `long`.
const LONG: usize = 200_000;

/// Arguments of a tool, and their types.
type Arguments = &'static [(&'static str, &'static str)];

/// The tools: their names, what they do, and the types of their arguments.
const TOOLS: [(&str, &str, Arguments); 15] = [
    ("echo", "Returns its message", &[("message", "string")]),
    (
        "add",
        "Returns the sum of a and b",
        &[("a", "number"), ("b", "number")],
    ),
    ("never", "Never answers. What cancels it is logged", &[]),
    ("die", "Ends the server in the middle of the call", &[]),
    (
        "progress",
        "Tells its progress three times, then answers",
        &[],
    ),
    ("image", "Returns a picture of one pixel", &[]),
    ("error", "Says that it has failed", &[]),
    ("refuse", "Is answered with an error of the protocol", &[]),
    ("structured", "Returns an object as well as text", &[]),
    (
        "long",
        "Returns a text of 200,000 characters, or of as many as it is told",
        &[("characters", "integer")],
    ),
    (
        "counter",
        "Returns how often it was called since the server has started",
        &[],
    ),
    (
        "garbage",
        "Prints a line that is no message, then answers",
        &[],
    ),
    ("long_line", "Answers with a line of 20 MiB", &[]),
    (
        "roots",
        "Asks the client for its roots and returns them",
        &[],
    ),
    (
        "where",
        "Returns the server's directory and its number",
        &[],
    ),
];

/// Returns the tools as they are listed.
pub(crate) fn all(options: &Options, added: usize) -> Vec<Value> {
    let fixed = TOOLS.iter().map(|(name, description, arguments)| {
        let mut tool = tool(name, description, arguments);
        match *name {
            "echo" if options.has("--always-load") => {
                tool["_meta"] = json!({ "anthropic/alwaysLoad": true });
            }
            "add" => tool["annotations"] = json!({ "readOnlyHint": true }),
            "long" => tool["_meta"] = json!({ "anthropic/maxResultSizeChars": 300_000 }),
            "structured" => {
                tool["outputSchema"] = json!({
                    "type": "object", "properties": { "sum": { "type": "number" } },
                    "required": ["sum"],
                });
            }
            _ => {}
        }
        tool
    });
    let asks = options.has("--elicit").then(|| {
        let arguments = &[("mode", "string")];
        tool(
            "ask",
            "Asks the person for a name, by form or by url",
            arguments,
        )
    });
    let pushes = options.has("--channel").then(|| {
        let arguments = &[("message", "string")];
        tool("push", "Sends its message to the channel", arguments)
    });
    let numbered = |name: &'static str, count: usize| {
        let plain = move |number| tool(&format!("{name}_{number}"), "Returns its name", &[]);
        (1..=count).map(plain)
    };
    fixed
        .chain(asks)
        .chain(pushes)
        .chain(numbered("tool", options.tools))
        .chain(numbered("added", added))
        .collect()
}

fn tool(name: &str, description: &str, arguments: &[(&str, &str)]) -> Value {
    let mut properties = json!({});
    for (name, kind) in arguments {
        properties[*name] = json!({ "type": kind });
    }
    let schema = json!({ "type": "object", "properties": properties });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

/// Calls a tool. The call is in the log before anything is done.
pub(crate) async fn call(server: &Server, request: &Request) -> Result<Value, Refusal> {
    let name = request.params["name"].as_str().unwrap_or_default();
    let arguments = &request.params["arguments"];
    let entry = json!({ "tool": name, "arguments": arguments, "id": request.id });
    let logged = server.log.write("call", entry);
    logged.map_err(|error| refusal(-32603, &error.to_string()))?;
    let known = all(&server.options, server.added.load(Ordering::SeqCst));
    if !known.iter().any(|tool| tool["name"] == name) {
        return Err(refusal(WRONG_PARAMS, &format!("Unknown tool: {name}")));
    }
    if server.options.has("--change-list") {
        server.change_list().await;
    }
    let found = match name {
        "echo" => text(arguments["message"].as_str().unwrap_or_default()),
        "add" => {
            let [a, b] = ["a", "b"].map(|key| arguments[key].as_f64().unwrap_or_default());
            text(&(a + b).to_string())
        }
        "never" => std::future::pending().await,
        "die" => std::process::exit(3),
        "progress" => progress(request).await,
        "image" => {
            let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
            json!({ "content": [image] })
        }
        "error" => {
            let mut failed = text("it did not work");
            failed["isError"] = json!(true);
            failed
        }
        "refuse" => return Err(refusal(-32000, "not today")),
        "structured" => {
            let mut both = text("{\"sum\":3}");
            both["structuredContent"] = json!({ "sum": 3 });
            both
        }
        "long" => {
            let wanted = arguments["characters"].as_u64();
            let count = wanted.and_then(|count| usize::try_from(count).ok());
            text(&"0123456789".repeat(count.unwrap_or(LONG).div_ceil(10)))
        }
        "counter" => {
            let count = server.counter.fetch_add(1, Ordering::SeqCst) + 1;
            text(&count.to_string())
        }
        "garbage" => {
            let garbage = "this is {no message".to_owned();
            request.outbox.send_text(garbage).await;
            text("after the garbage")
        }
        "long_line" => text(&"x".repeat(LONG_LINE)),
        "push" => {
            let content = arguments["message"].as_str().unwrap_or_default();
            let params = json!({ "content": content, "meta": { "kind": "test", "bad-name": "x" } });
            request
                .outbox
                .notify("notifications/claude/channel", params)
                .await;
            text("pushed")
        }
        "roots" => ask(server, request, "roots/list", json!({})).await,
        "ask" => {
            let question = question(arguments["mode"] == "url");
            ask(server, request, "elicitation/create", question).await
        }
        "where" => {
            let directory = std::path::Path::new(".").canonicalize().unwrap_or_default();
            text(&format!("{} {}", directory.display(), std::process::id()))
        }
        other => text(other),
    };
    Ok(found)
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

async fn progress(request: &Request) -> Value {
    let token = &request.params["_meta"]["progressToken"];
    for step in 1..=3 {
        if token.is_null() {
            break;
        }
        let message = format!("step {step}");
        let params = json!({
            "progressToken": token, "progress": step, "total": 3, "message": message,
        });
        request
            .outbox
            .notify("notifications/progress", params)
            .await;
    }
    text("done")
}

/// Returns what the person is asked.
fn question(by_url: bool) -> Value {
    if by_url {
        return json!({
            "mode": "url", "message": "Please log in", "url": "https://example.org/login",
            "elicitationId": "login-1",
        });
    }
    let name = json!({ "type": "string", "title": "Name" });
    json!({
        "mode": "form", "message": "What is your name?",
        "requestedSchema": { "type": "object", "properties": { "name": name }, "required": ["name"] },
    })
}

/// Asks the client, and returns what it answers as text. In the new era the answer comes with the same
/// call again.
async fn ask(server: &Server, request: &Request, method: &str, params: Value) -> Value {
    if !request.is_new() {
        let answer = server.questions.ask(&request.outbox, method, params).await;
        let answer = answer.unwrap_or_default();
        let shown = match &answer["error"] {
            Value::Null => &answer["result"],
            error => error,
        };
        return text(&shown.to_string());
    }
    let answers = &request.params["inputResponses"];
    if !answers["it"].is_null() && request.params["requestState"] == "asked" {
        return text(&answers["it"].to_string());
    }
    json!({
        "resultType": "input_required", "requestState": "asked",
        "inputRequests": { "it": { "method": method, "params": params } },
    })
}
