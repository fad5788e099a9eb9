//! Descriptions of an agent type, for programs and for people.

use posse_runtime::definition::agent_type::{Definition, Isolation, MemoryScope};
use posse_runtime::definition::server::AgentServer;
use serde_json::{Value, json};

use crate::definitions::DefinitionEntry;
use crate::present::hooks as present;

/// Returns what a list shows of a type.
pub(super) fn object(known: &DefinitionEntry) -> Value {
    let Definition {
        name,
        description,
        tools,
        disallowed,
        model,
        ..
    } = &known.definition;
    json!({
        "name": name, "source": known.source.as_str(),
        "path": known.path.as_ref().map(|path| path.to_string_lossy()),
        "description": description, "model": model, "tools": tools, "disallowed_tools": disallowed,
    })
}

/// Returns everything about it, except what it overrides.
pub(super) fn whole(known: &DefinitionEntry) -> Value {
    let it = &known.definition;
    let memory = it
        .memory
        .as_ref()
        .map(|memory| json!({"scope": scope(memory.scope), "directory": memory.directory.to_string_lossy()}));
    let mut object = object(known);
    let more = json!({
        "effort": it.effort.map(|effort| effort.as_str()), "permission_mode": it.mode,
        "background": it.background, "isolation": it.isolation.map(isolation), "max_turns": it.max_turns,
        "memory": memory, "output_schema": it.output_schema, "color": it.color,
        "required_mcp_servers": it.required_mcp_servers, "mcp_servers": servers(it),
        "skills": it.skills, "hooks": hooks(it), "initial_prompt": it.initial_prompt, "prompt": it.prompt,
    });
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// Returns the fields that are set, as they are written in a file.
pub(super) fn fields(it: &Definition) -> Vec<(&'static str, String)> {
    let list = |words: &[String]| (!words.is_empty()).then(|| words.join(", "));
    let all = [
        (
            "model",
            Some(it.model.clone().unwrap_or_else(|| "inherit".into())),
        ),
        (
            "tools",
            Some(
                it.tools
                    .as_ref()
                    .map_or_else(|| "all".into(), |tools| tools.join(", ")),
            ),
        ),
        ("disallowedTools", list(&it.disallowed)),
        ("effort", it.effort.map(|effort| effort.as_str().to_owned())),
        ("permissionMode", it.mode.map(|mode| mode.to_string())),
        ("background", it.background.then(|| "true".to_owned())),
        ("isolation", it.isolation.map(|it| isolation(it).to_owned())),
        ("maxTurns", it.max_turns.map(|turns| turns.to_string())),
        (
            "memory",
            it.memory
                .as_ref()
                .map(|it| format!("{}, in {}", scope(it.scope), it.directory.display())),
        ),
        ("color", it.color.clone()),
        ("requiredMcpServers", list(&it.required_mcp_servers)),
        (
            "mcpServers",
            (!it.mcp_servers.is_empty()).then(|| Value::from(servers(it)).to_string()),
        ),
        ("skills", list(&it.skills)),
        ("hooks", (!it.hooks.is_empty()).then(|| in_words(it))),
        ("initialPrompt", it.initial_prompt.clone()),
        (
            "outputSchema",
            it.output_schema.as_ref().map(|schema| schema.to_string()),
        ),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Returns the MCP servers as they are written in front matter.
fn servers(it: &Definition) -> Vec<Value> {
    let servers = it.mcp_servers.iter();
    servers.map(AgentServer::as_written).collect()
}

/// Returns the hooks as JSON objects.
fn hooks(it: &Definition) -> Vec<Value> {
    let hooks = it.hooks.iter();
    hooks.map(|hook| present::object(hook)).collect()
}

/// Returns the hooks in a line.
fn in_words(it: &Definition) -> String {
    let hooks = it.hooks.iter();
    let words = hooks.map(|hook| format!("{} {}: {}", hook.event, hook.matcher, hook.title()));
    words.collect::<Vec<_>>().join("; ")
}

fn scope(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::User => "user",
        MemoryScope::Project => "project",
        MemoryScope::Local => "local",
    }
}

fn isolation(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Worktree => "worktree",
    }
}
