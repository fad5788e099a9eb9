//! MCP servers as JSON objects and fields.

use posse_port::servers::{ServerFacts, ServerState};
use posse_runtime::definition::server::{DeclaredServer, DeclaredTransport, is_secret_name};
use serde_json::{Value, json};

use crate::output::{one_line, tame};

/// What is shown instead of a secret.
const HIDDEN: &str = "…";

/// Returns a server as a JSON object.
pub(crate) fn object(server: &DeclaredServer, state: &str, why: Option<&str>) -> Value {
    let limit = server.call_limit.map(|limit| limit.as_millis());
    json!({
        "name": server.name, "source": server.origin.source.as_str(), "state": state, "why": why,
        "type": server.kind(), "what": server.title(), "file": server.origin.file.to_string_lossy(),
        "line": server.origin.line, "of_repository": server.origin.of_repository,
        "always_load": server.always_load, "timeout_ms": limit, "shared": server.is_shared,
        "names_worktree": server.names_worktree(),
    })
}

/// Returns what servers are now, a line each, for people.
pub(crate) fn states(servers: &[(String, ServerState)]) -> String {
    if servers.is_empty() {
        return "the session has no MCP servers; `posse mcp list` says what is declared".to_owned();
    }
    let widest = servers.iter().map(|(name, _)| name.chars().count()).max();
    let widest = widest.unwrap_or_default();
    let line = |(name, state): &(String, ServerState)| {
        let more = match state {
            ServerState::Pending => String::new(),
            ServerState::Connected(facts) => format!(": {}", counted(facts)),
            ServerState::Failed { why, .. } => format!(": {}", one_line(why)),
        };
        format!("  {:<widest$}  {}{more}", tame(name), state.as_str())
    };
    servers.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns how many tools and prompts a server has.
fn counted(facts: &ServerFacts) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let tools = count(facts.tools.len(), "tool");
    match facts.prompts.len() {
        0 => tools,
        prompts => format!("{tools}, {}", count(prompts, "prompt")),
    }
}

/// Returns the entry as it would be written in a file, without secrets.
pub(crate) fn entry(server: &DeclaredServer) -> Value {
    let mut entry = server.entry();
    for key in ["env", "headers"] {
        let pairs = entry.get_mut(key).and_then(Value::as_object_mut);
        for (name, value) in pairs.into_iter().flatten() {
            if let Some(text) = value.as_str() {
                *value = json!(without_secret(name, text));
            }
        }
    }
    let sign_in = entry.get_mut("oauth");
    if let Some(secret) = sign_in.and_then(|it| it.get_mut("clientSecret"))
        && let Some(text) = secret.as_str()
    {
        *secret = json!(without_secret("clientSecret", text));
    }
    entry
}

/// Returns what people are shown of an entry, by name.
pub(crate) fn fields(server: &DeclaredServer) -> Vec<(&'static str, String)> {
    let (what, pairs) = match &server.transport {
        DeclaredTransport::Program { env, .. } => ("runs", env),
        DeclaredTransport::Http { headers, .. } => ("at", headers),
    };
    let mut fields = vec![(what, server.title())];
    fields.extend(pairs.iter().map(|(name, value)| {
        let value = without_secret(name, value);
        match &server.transport {
            DeclaredTransport::Program { .. } => ("with", format!("{name}={value}")),
            DeclaredTransport::Http { .. } => ("with", format!("{name}: {value}")),
        }
    }));
    let limit = server.call_limit;
    fields.extend(limit.map(|limit| ("timeout", format!("{} ms", limit.as_millis()))));
    let tools = "its tools are known from the beginning";
    fields.extend(server.always_load.then(|| ("loads", tools.to_owned())));
    let own = "each agent has one of its own";
    fields.extend((!server.is_shared).then(|| ("shared", own.to_owned())));
    let sandbox = "in the sandbox, without variables whose names tell of a secret";
    let is_held = server.origin.of_repository && server.kind() == "stdio";
    fields.extend(is_held.then(|| ("held", sandbox.to_owned())));
    fields
}

/// Returns a value, or what stands for it. A variable that is only named is no secret.
fn without_secret(name: &str, value: &str) -> String {
    let names_variable = value.contains("${");
    match is_secret_name(name) && !names_variable {
        true => HIDDEN.to_owned(),
        false => value.to_owned(),
    }
}
