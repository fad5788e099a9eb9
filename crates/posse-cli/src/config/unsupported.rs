//! What users have for other programs, and posse does not support yet.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::search_paths::SearchPaths;

/// Files of a project's `.claude` that posse reads, or that are nobody's business.
const KNOWN: [&str; 11] = [
    "agents",
    "commands",
    "skills",
    "rules",
    "CLAUDE.md",
    "settings.json",
    "settings.local.json",
    // Scripts of hooks. The settings that name them are reported.
    "hooks",
    "worktrees",
    ".gitignore",
    ".DS_Store",
];
/// Events whose hooks can refuse a call.
const GUARDS: [&str; 2] = ["PreToolUse", "PermissionRequest"];
/// Maximum size of a file that is read, in bytes.
const MOST: u64 = 1 << 20;

/// A file that posse does not use as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnusedFile {
    pub(crate) path: PathBuf,
    /// What is not used of it.
    pub(crate) what: String,
    /// Changes when the content does.
    pub(crate) content: u64,
}

/// Hooks that would have guarded calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guards {
    /// The events, such as `PreToolUse`.
    pub(crate) events: BTreeSet<String>,
    /// True if one of them must not be left out: `"onFailure": "block"`.
    pub(crate) is_demanded: bool,
}

impl Guards {
    /// Returns the guards among the hooks of a file: events, and groups of hooks of each.
    pub(crate) fn of(hooks: &Value) -> Self {
        let hooks = |event: &str| {
            let groups = hooks[event].as_array().into_iter().flatten();
            groups
                .flat_map(|group| group["hooks"].as_array().into_iter().flatten())
                .collect::<Vec<_>>()
        };
        let is_strict = |hook: &&Value| hook["onFailure"] == "block";
        let events = GUARDS.into_iter().filter(|event| !hooks(event).is_empty());
        Self {
            events: events.map(str::to_owned).collect(),
            is_demanded: GUARDS
                .iter()
                .any(|event| hooks(event).iter().any(is_strict)),
        }
    }

    /// Returns what is missing if this file has guards.
    pub(crate) fn missing_from(self, path: &Path) -> Option<MissingGuard> {
        let (path, guards) = (path.to_owned(), self);
        (!guards.events.is_empty()).then_some(MissingGuard { path, guards })
    }
}

/// A file with hooks that would have guarded calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingGuard {
    pub(crate) path: PathBuf,
    pub(crate) guards: Guards,
}

/// What a run does about guards that are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WithoutGuards {
    /// It says so.
    #[default]
    Tells,
    /// It fails: `--require-hooks`.
    Fails,
}

/// What is not supported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub(crate) files: Vec<UnusedFile>,
    pub(crate) guards: Vec<MissingGuard>,
    /// The user or the administrator has switched all hooks off, so that none is missing.
    pub(crate) hooks_disabled: bool,
    /// Files that allow no command without a sandbox.
    pub(crate) demand_sandbox: Vec<PathBuf>,
}

/// Returns the files of a project that posse does not use at all.
pub(super) fn files(places: &SearchPaths) -> Vec<UnusedFile> {
    if !places.sources.project {
        return Vec::new();
    }
    let project = places.project();
    let mut found: Vec<UnusedFile> = servers(&project.join(".mcp.json")).into_iter().collect();
    let directory = project.join(".claude");
    // The user's own directory has the other program's state in it.
    if places.home.as_deref() == Some(project) {
        return found;
    }
    let entries = std::fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        if !KNOWN.iter().any(|known| name == **known) {
            let path = directory.join(name);
            let content = fingerprint(&path, "");
            found.push(UnusedFile {
                path,
                what: "any of it".into(),
                content,
            });
        }
    }
    found
}

/// Returns the MCP servers that a file names.
fn servers(path: &Path) -> Option<UnusedFile> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > MOST {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let content: Value = serde_json::from_str(&text).unwrap_or_default();
    let names: Vec<&str> = content["mcpServers"]
        .as_object()
        .into_iter()
        .flat_map(|servers| servers.keys().map(String::as_str))
        .collect();
    let what = match names.is_empty() {
        true => "any of it".to_owned(),
        false => format!("the MCP servers {}", names.join(", ")),
    };
    Some(UnusedFile {
        path: path.to_owned(),
        what,
        content: fingerprint(path, &text),
    })
}

/// Returns a number that changes when the content does.
pub(super) fn fingerprint(path: &Path, content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, content).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hook_that_can_refuse_a_call_is_a_guard() {
        let hook = |more: Value| {
            let mut hook = json!({"type": "command", "command": "./guard"});
            hook.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            json!({
                "PreToolUse": [{"matcher": "Bash", "hooks": [hook]}],
                "PostToolUse": [{"hooks": [{"type": "command", "command": "./fmt"}]}],
            })
        };
        let plain = Guards::of(&hook(json!({})));
        assert!(plain.events.iter().eq(["PreToolUse"]) && !plain.is_demanded);
        assert!(Guards::of(&hook(json!({"onFailure": "block"}))).is_demanded);
    }
}
