//! Fields of a definition: their values and their meaning.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::PermissionMode;
use serde_json::Value;

use crate::definition::agent_type::Definition;
use crate::definition::agent_type::file::{ReadDefinition, check_name, tools};
use crate::definition::agent_type::{Isolation, MemoryScope};
use crate::definition::front::Keys;
use crate::definition::front::error::FieldError;
use crate::definition::front::value::{
    effort, mapping, names, one_of, quoted, text, truth, unexpected, unexpected_text, unknown,
    unlisted,
};
use crate::definition::output_schema::OutputSchema;
use crate::definition::server::{AgentServer, ServerFile, ServerSource, read_entry};

/// Every key of front matter.
pub(super) const FIELDS: &[&str] = &[
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "effort",
    "permissionMode",
    "background",
    "isolation",
    "maxTurns",
    "color",
    "memory",
    "skills",
    "mcpServers",
    "requiredMcpServers",
    "hooks",
    "initialPrompt",
    "outputSchema",
];

/// The keys by the kind of their values.
pub(super) const KEYS: Keys = Keys {
    all: FIELDS,
    texts: &["name", "description", "model", "color", "initialPrompt"],
    prose: &["description", "initialPrompt"],
    lists: &["tools", "disallowedTools", "skills", "requiredMcpServers"],
};

/// Keys of other programs, or obvious guesses, with the key that is used here.
const OTHERWISE: [(&str, &str); 6] = [
    ("allowedtools", "tools"),
    ("deniedtools", "disallowedTools"),
    ("mode", "permissionMode"),
    ("schema", "outputSchema"),
    ("turns", "maxTurns"),
    ("worktree", "isolation"),
];

const COLOURS: [&str; 8] = [
    "red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan",
];

/// Applies one field. Warnings are added to `notes`.
pub(super) fn take(
    read: &mut ReadDefinition,
    key: &str,
    value: Value,
    notes: &mut Vec<String>,
) -> Result<(), FieldError> {
    let definition = &mut read.definition;
    if value.is_null() && FIELDS.contains(&key) && !matches!(key, "name" | "description" | "tools")
    {
        notes.push(format!("`{key}` has no value and is ignored"));
        return Ok(());
    }
    match key {
        "name" => {
            definition.name = text(key, value)?;
            check_name(&definition.name)?;
        }
        "description" => definition.description = text(key, value)?,
        "tools" => definition.tools = tools::granted(&value, notes)?,
        "disallowedTools" => definition.disallowed = tools::denied(&value, notes)?,
        "model" => definition.model = Some(text(key, value)?),
        "effort" => definition.effort = effort(&value, notes)?,
        "permissionMode" => {
            let word = text(key, value)?;
            let mode = word.trim().parse::<PermissionMode>();
            read.unknown_mode = mode.is_err().then_some(word);
            definition.mode = Some(mode.unwrap_or_default());
        }
        "background" => definition.background = truth(key, &value)?,
        "isolation" => definition.isolation = Some(isolation(&value)?),
        "maxTurns" => definition.max_turns = Some(turns(&value)?),
        "color" => definition.color = Some(colour(value, notes)?),
        "memory" => read.memory = Some(memory(&value)?),
        "skills" => definition.skills = names(key, value)?,
        "mcpServers" => {
            definition.mcp_servers = servers(value, notes)?;
        }
        "requiredMcpServers" => definition.required_mcp_servers = names(key, value)?,
        "hooks" => read.hooks = Some(Value::Object(mapping(key, value)?)),
        "initialPrompt" => definition.initial_prompt = Some(text(key, value)?),
        "outputSchema" => definition.output_schema = Some(schema(key, value)?),
        "prompt" => {
            notes.push("`prompt` is ignored: the text below the front matter is the prompt".into())
        }
        other => notes.push(unknown(other, FIELDS, &OTHERWISE)),
    }
    Ok(())
}

/// Returns the required field that is missing, if any.
pub(super) fn missing(definition: &Definition) -> Option<&'static str> {
    let Definition {
        name,
        description,
        prompt,
        ..
    } = definition;
    let needed = [
        ("name", name),
        ("description", description),
        ("prompt", prompt),
    ];
    needed
        .into_iter()
        .find(|(_, value)| value.is_empty())
        .map(|(key, _)| key)
}

fn isolation(value: &Value) -> Result<Isolation, FieldError> {
    match value.as_str().map(str::trim) {
        Some("remote") => Err(FieldError::RemoteIsolation),
        _ => one_of("isolation", value, &[("worktree", Isolation::Worktree)]),
    }
}

fn memory(value: &Value) -> Result<MemoryScope, FieldError> {
    let scopes = [
        ("user", MemoryScope::User),
        ("project", MemoryScope::Project),
        ("local", MemoryScope::Local),
    ];
    one_of("memory", value, &scopes)
}

fn turns(value: &Value) -> Result<u32, FieldError> {
    let number = value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| *number > 0);
    number.ok_or_else(|| unexpected_text("maxTurns", "a whole number of at least 1", value))
}

fn colour(value: Value, notes: &mut Vec<String>) -> Result<String, FieldError> {
    let colour = text("color", value)?;
    if !COLOURS.contains(&colour.as_str()) {
        notes.push(format!(
            "unknown colour `{}`; use {}",
            quoted(&colour),
            COLOURS.join(", ")
        ));
    }
    Ok(colour)
}

/// MCP servers: names and servers in a list, or servers by name. One that is wrong is left out with a
/// warning.
fn servers(value: Value, notes: &mut Vec<String>) -> Result<Vec<AgentServer>, FieldError> {
    let items = match value {
        Value::Array(items) => items,
        servers @ Value::Object(_) => vec![servers],
        other => return Err(unexpected("mcpServers", "a list or a mapping", &other)),
    };
    let mut found: Vec<AgentServer> = Vec::new();
    for item in &items {
        match item {
            Value::String(name) if !name.trim().is_empty() => {
                found.push(AgentServer::Named(name.trim().to_owned()));
            }
            Value::Object(servers) => {
                for (name, entry) in servers {
                    found.extend(own_server(name, entry, notes));
                }
            }
            odd => return Err(unlisted("mcpServers", "names and servers", odd)),
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|server| {
        let is_new = seen.insert(server.name().to_owned());
        if !is_new {
            let name = quoted(server.name());
            notes.push(format!(
                "`mcpServers` has `{name}` twice; the first one counts"
            ));
        }
        is_new
    });
    Ok(found)
}

fn own_server(name: &str, entry: &Value, notes: &mut Vec<String>) -> Option<AgentServer> {
    // The text does not say whose it is.
    let file = ServerFile {
        source: ServerSource::Agent,
        path: PathBuf::new(),
        of_repository: false,
    };
    let (server, remarks) = read_entry(name, entry, &file);
    let name = quoted(name);
    let remarks = remarks.into_iter();
    notes.extend(remarks.map(|it| format!("`mcpServers`: `{name}`: {}", it.what)));
    Some(AgentServer::Own(Arc::new(server?)))
}

/// Parses a schema, checking that answers can be validated against it.
fn schema(key: &str, value: Value) -> Result<Arc<Value>, FieldError> {
    let schema = Value::Object(mapping(key, value)?);
    OutputSchema::new(&schema).map_err(|reason| FieldError::Schema {
        key: key.to_owned(),
        reason,
    })?;
    Ok(Arc::new(schema))
}
