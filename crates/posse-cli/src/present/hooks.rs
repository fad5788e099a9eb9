//! Hooks as rows and JSON objects.

use posse_runtime::hook::{Condition, Hook, HookAction, OnFailure, RunsBeside};
use serde_json::{Value, json};

/// Returns the kind of a hook, as files name it.
pub(crate) fn kind(hook: &Hook) -> &str {
    match &hook.action {
        HookAction::Program { .. } => "command",
        HookAction::Http { .. } => "http",
        HookAction::Prompt { .. } => "prompt",
        HookAction::Agent { .. } => "agent",
        HookAction::Tool(_) => "mcp_tool",
        HookAction::Callback { .. } => "callback",
        HookAction::Unsupported { kind, .. } => kind,
    }
}

/// Returns a hook as a JSON object.
pub(crate) fn object(hook: &Hook) -> Value {
    json!({
        "event": hook.event.as_str(), "matcher": hook.matcher.to_string(),
        "has_condition": hook.condition != Condition::None, "type": kind(hook), "what": hook.title(),
        "timeout": hook.limit().as_secs_f64(),
        "on_failure": match hook.on_failure { OnFailure::Continue => "continue", OnFailure::Block => "block" },
        "async": hook.beside != RunsBeside::No, "source": hook.origin.layer.as_str(),
        "file": hook.origin.file.to_string_lossy(), "line": hook.origin.line,
        "of_repository": hook.origin.of_repository,
    })
}
