//! Skills and commands: directories with a `SKILL.md`, and files whose path is their name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_runtime::definition::skill::Skill;
use posse_runtime::definition::skill::file;
use posse_runtime::definition::skill::file::{Kind, Read};
use posse_runtime::hook::HookLayer;

use super::hooks::HookFront;
use super::place::{self, Directory};
use super::scan::{self, ScanKind};
use super::{DefinitionEntry, DefinitionSet, DefinitionSource, Remark, Severity, WatchedSources};
use crate::config::search_paths::SearchPaths;
use crate::config::trust::FileKind;

/// Names of the directories. A skill precedes a command of the same name.
const KINDS: &[&str] = &[SKILLS, COMMANDS];
const SKILLS: &str = "skills";
const COMMANDS: &str = "commands";

/// Where skills are defined.
#[derive(Clone, Debug)]
pub(crate) struct SkillSources {
    places: SearchPaths,
}

impl SkillSources {
    /// Returns the sources for an agent that works in `cwd`.
    pub(crate) fn at(cwd: &Path) -> Self {
        Self::new(SearchPaths::at(cwd))
    }

    pub(crate) fn new(places: SearchPaths) -> Self {
        Self {
            places: place::resolved(places),
        }
    }

    /// Returns where the agent works.
    pub(crate) fn cwd(&self) -> &Path {
        &self.places.cwd
    }

    /// Reads all current skills.
    pub(crate) fn load(&self) -> DefinitionSet<Skill> {
        let mut loaded = DefinitionSet::default();
        let (managed, others) = place::directories(&self.places, KINDS);
        let mut seen = BTreeSet::new();
        for directory in [managed].into_iter().chain(others) {
            // Often one directory is a link to another, and must not be read twice.
            if seen.insert(
                directory
                    .path
                    .canonicalize()
                    .unwrap_or_else(|_| directory.path.clone()),
            ) {
                read(&mut loaded, &directory, &self.places);
            }
        }
        in_order(loaded)
    }

    /// Reads only these files and directories. One outside of all sources counts as the user's,
    /// and a directory holds skills unless it is called `commands`.
    pub(crate) fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet<Skill> {
        let mut loaded = DefinitionSet::default();
        for path in paths {
            let source = place::source_of(path, &self.places, KINDS);
            let skill = path.join("SKILL.md");
            let of = |path: &Path, kind| Directory {
                path: path.to_owned(),
                kind,
                source,
                bounds: None,
            };
            if path.is_dir() && !skill.exists() {
                let is_commands = path.components().any(|part| part.as_os_str() == COMMANDS);
                let kind = if is_commands { COMMANDS } else { SKILLS };
                read(&mut loaded, &of(path, kind), &self.places);
                continue;
            }
            let path = if path.is_dir() { skill } else { path.clone() };
            let is_skill = path.file_name().is_some_and(|name| name == "SKILL.md");
            let above = path.parent().unwrap_or(Path::new("/"));
            let directory = match is_skill {
                true => of(above.parent().unwrap_or(above), SKILLS),
                false => of(above, COMMANDS),
            };
            match scan::read(&path, None) {
                Ok(text) => take(&mut loaded, path, &text, &directory, &self.places)
                    .into_iter()
                    .for_each(|it| loaded.add(it)),
                Err((line, reason)) => {
                    loaded.remarks.push(Remark {
                        weight: Severity::Error,
                        path,
                        line,
                        reason,
                    });
                }
            }
        }
        in_order(loaded)
    }
}

impl WatchedSources for SkillSources {
    type Item = Skill;
    const WORD: &'static str = "skills";
    const CHECK: &'static str = "posse skills check";

    fn load(&self) -> DefinitionSet<Skill> {
        self.load()
    }

    fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet<Skill> {
        Self::load_only(self, paths)
    }

    fn candidates(&self) -> Vec<PathBuf> {
        place::all(&self.places, KINDS)
    }

    fn cwd(&self) -> &Path {
        &self.places.cwd
    }
}

/// Adds all skills in a directory.
fn read(loaded: &mut DefinitionSet<Skill>, directory: &Directory, places: &SearchPaths) {
    let (look, kind) = match directory.kind {
        SKILLS => (&ScanKind::FOLDERS, FileKind::Skill),
        _ => (&ScanKind::FILES, FileKind::Command),
    };
    let mut scanned = scan::scan(
        &directory.path,
        directory.bounds.as_deref(),
        look,
        &mut loaded.left,
    );
    place::admit(places, directory, kind, &mut scanned);
    loaded.remarks.extend(scanned.remarks);
    loaded.directories.extend(scanned.directories);
    for (path, text) in scanned.files {
        // A README beside commands is for people.
        if path
            .file_stem()
            .is_some_and(|name| name.eq_ignore_ascii_case("readme"))
        {
            continue;
        }
        if directory.kind == SKILLS && path.parent() == Some(&directory.path) {
            let reason =
                "a skill is a directory with a SKILL.md; this file is beside them".to_owned();
            loaded.remarks.push(Remark {
                weight: Severity::Error,
                path,
                line: None,
                reason,
            });
        } else if let Some(known) = take(loaded, path, &text, directory, places) {
            loaded.add(known);
        }
    }
}

/// Returns the skill in a file, and records remarks about it.
fn take(
    loaded: &mut DefinitionSet<Skill>,
    path: PathBuf,
    text: &str,
    directory: &Directory,
    places: &SearchPaths,
) -> Option<DefinitionEntry<Skill>> {
    let mut say = |weight, line, reason| {
        loaded.remarks.push(Remark {
            weight,
            path: path.clone(),
            line,
            reason,
        })
    };
    let kind = if directory.kind == SKILLS {
        Kind::Skill
    } else {
        Kind::Command
    };
    let read = file::read(text, &name(&path, directory, kind), &path, kind);
    let Read {
        mut skill,
        hooks,
        notes,
    } = match read {
        Ok(read) => read,
        Err(problem) => {
            say(Severity::Error, Some(problem.line), problem.reason);
            return None;
        }
    };
    notes
        .into_iter()
        .for_each(|note| say(Severity::Note, Some(note.line), note.reason));
    if directory.source == DefinitionSource::Project && !skill.allowed.is_empty() {
        // Otherwise the repository's authors would decide which tool calls need no approval.
        skill.allowed.clear();
        let reason = "ignored: `allowed-tools` of a repository's skill: a repository may only \
                      tighten permissions; your own settings or --allowedTools may allow it";
        say(
            Severity::Warning,
            Some(scan::line_of(text, "allowed-tools")),
            reason.to_owned(),
        );
    }
    let front = HookFront {
        layer: HookLayer::Skill,
        path: &path,
        text,
        source: directory.source,
    };
    let (hooks, remarks) = front.read(hooks.as_ref(), places);
    skill.hooks = hooks;
    loaded.about_hooks.extend(remarks.iter().cloned());
    loaded.remarks.extend(remarks);
    Some(DefinitionEntry {
        definition: skill,
        source: directory.source,
        path: Some(path),
    })
}

/// Returns a skill's name, which its path determines.
fn name(path: &Path, directory: &Directory, kind: Kind) -> String {
    if kind == Kind::Skill {
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        return folder.to_string_lossy().into_owned();
    }
    let within = path
        .strip_prefix(&directory.path)
        .unwrap_or(path)
        .with_extension("");
    let parts = within
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join(":")
}

/// Sorts by name, with a repository's last: however many there are, the model learns about the
/// others.
fn in_order(mut loaded: DefinitionSet<Skill>) -> DefinitionSet<Skill> {
    let place = |known: &DefinitionEntry<Skill>| known.source == DefinitionSource::Project;
    loaded
        .known
        .sort_by_key(|known| (place(known), known.definition.name.to_lowercase()));
    loaded
}

#[cfg(test)]
mod tests;
