//! Where agents of a type keep their notes.

use std::path::{Path, PathBuf};

use posse_runtime::definition::agent_type::{Memory, MemoryScope};

use super::DefinitionSource;
use super::place::Directory;
use crate::config::search_paths::SearchPaths;

/// Returns the directory for notes of this scope, and a warning if there is one. `from` is the
/// directory of the definition, if it has one.
pub(super) fn resolve(
    scope: MemoryScope,
    name: &str,
    from: Option<&Directory>,
    places: &SearchPaths,
) -> (Option<Memory>, Option<String>) {
    let kept = from.and_then(|directory| directory.path.parent());
    let theirs = kept.is_some_and(|kept| kept.ends_with(".claude"));
    let of_project = from.is_some_and(|directory| directory.source == DefinitionSource::Project);
    let (scope, warning) = match scope {
        MemoryScope::User if of_project => {
            // Notes of one repository must not be read in another.
            let why = "a repository's agent keeps its notes in the project: `memory: user` is \
                       treated as `local`";
            (MemoryScope::Local, Some(why.to_owned()))
        }
        scope => (scope, None),
    };
    let base: Option<PathBuf> = match (scope, kept) {
        (MemoryScope::User, _) if theirs => places.home.as_ref().map(|home| home.join(".claude")),
        (MemoryScope::User, _) => places.posse_home.clone(),
        (_, Some(kept)) if of_project => Some(kept.to_owned()),
        _ => Some(
            places
                .project()
                .join(if theirs { ".claude" } else { ".posse" }),
        ),
    };
    let Some(base) = base else {
        return (
            None,
            Some("there is no home directory for its notes: it keeps none".into()),
        );
    };
    let directory = base.join(directory(scope)).join(name);
    if scope != MemoryScope::User && leads_out(&directory, places.project()) {
        let why = "a link takes its notes directory out of the project: it keeps no notes";
        return (None, Some(why.into()));
    }
    (Some(Memory { scope, directory }), warning)
}

/// Returns true if a path, which need not exist yet, leads out of the project.
fn leads_out(path: &Path, project: &Path) -> bool {
    let there = path
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let real = |path: &Path| path.canonicalize().ok();
    match (there.and_then(real), real(project)) {
        (Some(path), Some(project)) => !path.starts_with(project),
        _ => true,
    }
}

fn directory(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::User | MemoryScope::Project => "agent-memory",
        MemoryScope::Local => "agent-memory-local",
    }
}
