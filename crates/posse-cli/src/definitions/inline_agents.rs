//! `--agents`: definitions on the command line.

use std::path::{Path, PathBuf};

use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::file;
use posse_runtime::definition::agent_type::file::ReadDefinition;
use posse_runtime::hook::HookLayer;
use serde_json::Value;

use super::hooks::HookFront;
use super::{DefinitionSource, Remark, Severity, declared_in, memory, same, scan};
use crate::config::search_paths::SearchPaths;
use crate::config::settings::no_such_mode;

/// The definitions of the flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct InlineAgents {
    definitions: Vec<ReadDefinition>,
    /// The same as JSON text, so that another process needs no access to the file.
    text: Option<String>,
}

/// Why the value of `--agents` is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InlineAgentsError {
    #[error("--agents: `{name}`: {why}")]
    Entry { name: String, why: String },
    #[error("--agents is not JSON: {0}")]
    Json(serde_json::Error),
    #[error(r#"--agents must be an object: {{"NAME": {{"description": "…", "prompt": "…"}}}}"#)]
    NotAnObject,
    #[error("--agents: {path}: {why}")]
    Unreadable { path: String, why: String },
}

impl InlineAgents {
    /// Parses the flag's value: JSON, or `@FILE` with JSON in a file.
    pub(crate) fn read(value: &str) -> Result<Self, InlineAgentsError> {
        let text = match value.strip_prefix('@') {
            None => value.to_owned(),
            Some(path) => {
                let unread = |(_, why)| InlineAgentsError::Unreadable {
                    path: path.to_owned(),
                    why,
                };
                scan::read(Path::new(path), None).map_err(unread)?
            }
        };
        let all: Value = serde_json::from_str(&text).map_err(InlineAgentsError::Json)?;
        let Value::Object(entries) = all else {
            return Err(InlineAgentsError::NotAnObject);
        };
        let mut given: Vec<ReadDefinition> = Vec::new();
        for (name, entry) in &entries {
            let wrong = |why| InlineAgentsError::Entry {
                name: name.clone(),
                why,
            };
            let read = file::from_json(name, entry).map_err(|error| wrong(error.to_string()))?;
            let taken = |other: &&ReadDefinition| same(&other.definition.name, name);
            if let Some(other) = given.iter().find(taken) {
                return Err(wrong(format!("`{}` is given twice", other.definition.name)));
            }
            given.push(read);
        }
        Ok(Self {
            definitions: given,
            text: Some(text),
        })
    }

    /// Returns these definitions and others.
    pub(crate) fn joined(&self, others: &Self) -> Result<Self, InlineAgentsError> {
        let mut all = serde_json::Map::new();
        for text in [self.text(), others.text()].into_iter().flatten() {
            let entries: Value = serde_json::from_str(text).map_err(InlineAgentsError::Json)?;
            all.extend(entries.as_object().cloned().unwrap_or_default());
        }
        Self::read(&Value::Object(all).to_string())
    }

    /// Returns the definitions as JSON; `None` if the flag was not given.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns each definition, with remarks about it.
    pub(super) fn resolved(&self, places: &SearchPaths) -> Vec<(Definition, Vec<Remark>)> {
        let resolve = |read: &ReadDefinition| {
            let mut definition = read.definition.clone();
            let name = definition.name.clone();
            let remark = |weight, reason: &str| {
                let reason = format!("`{name}`: {reason}");
                Remark {
                    weight,
                    path: PathBuf::from("--agents"),
                    line: None,
                    reason,
                }
            };
            let mut remarks: Vec<Remark> = read
                .notes
                .iter()
                .map(|note| remark(Severity::Note, &note.reason))
                .collect();
            let mode = read.unknown_mode.as_deref().map(no_such_mode);
            remarks.extend(mode.map(|why| remark(Severity::Warning, &why)));
            if let Some(scope) = read.memory {
                let (memory, warning) = memory::resolve(scope, &name, None, places);
                definition.memory = memory;
                remarks.extend(warning.map(|why| remark(Severity::Warning, &why)));
            }
            let front = HookFront {
                layer: HookLayer::Definition,
                path: Path::new("--agents"),
                text: "",
                source: DefinitionSource::Flag,
            };
            let (hooks, more) = front.read(read.hooks.as_ref(), places);
            definition.hooks = hooks;
            definition.mcp_servers = declared_in(
                std::mem::take(&mut definition.mcp_servers),
                front.source,
                front.path,
                front.text,
            );
            remarks.extend(more);
            (definition, remarks)
        };
        self.definitions.iter().map(resolve).collect()
    }
}
