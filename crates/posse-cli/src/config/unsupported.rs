//! What users have for other programs, and posse does not support yet.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

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
    // Scripts of hooks.
    "hooks",
    "worktrees",
    ".gitignore",
    ".DS_Store",
];

/// A file that posse does not use as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnusedFile {
    pub(crate) path: PathBuf,
    /// What is not used of it.
    pub(crate) what: String,
    /// Changes when the content does.
    pub(crate) content: u64,
}

/// A file with hooks that would have guarded calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingGuard {
    pub(crate) path: PathBuf,
    /// The events, such as `PreToolUse`.
    pub(crate) events: BTreeSet<&'static str>,
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
    /// Guards that do not run. Settings alone do not tell them: agent types and skills have some, too.
    pub(crate) guards: Vec<MissingGuard>,
    /// Files that allow no command without a sandbox.
    pub(crate) demand_sandbox: Vec<PathBuf>,
}

/// Returns the files of a project that posse does not use at all.
pub(super) fn files(places: &SearchPaths) -> Vec<UnusedFile> {
    if !places.sources.project {
        return Vec::new();
    }
    let project = places.project();
    let mut found = Vec::new();
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

/// Returns a number that changes when the content does.
pub(super) fn fingerprint(path: &Path, content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, content).hash(&mut hasher);
    hasher.finish()
}
