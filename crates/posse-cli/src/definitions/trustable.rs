//! What a workspace has that would count if the person trusted it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_permission::Policy;
use posse_port::tool::Workspace;

use super::instructions::InstructionSources;
use super::servers::{OF_PROJECT, ServerFlags, ServerSources, approved_as};
use super::skills::SkillSources;
use super::teams::TeamSources;
use super::{AgentSources, DefinitionSet, DefinitionSource, HasName, InlineAgents};
use crate::config::search_paths::SearchPaths;
use crate::config::settings::servers::ServerSettings;
use crate::config::settings::{FlagSettings, Settings};
use crate::config::trust::record::SeenFiles;
use crate::config::trust::workspace::has_git;
use crate::config::trust::{FileKind, FileState, LookedFile, Trust};

/// Names whose directory has something that can count.
const MARKS: [&str; 6] = [
    OF_PROJECT,
    ".posse",
    ".claude",
    "AGENTS.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
];
/// Directories of programs, which hold thousands of files of others.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];
/// Maximum number of entries that are looked at.
const MOST: usize = 200_000;
/// Maximum number of directories whose files are read. What is beyond waits.
const MOST_DIRECTORIES: usize = 200;
/// Maximum depth of directories.
const DEPTH: usize = 24;

/// How much of a workspace is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// What counts for an agent in the working directory.
    Here,
}

/// A file that would count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustableFile {
    /// Its path in the workspace.
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) state: FileState,
    /// What it defines, if that has a name.
    pub(crate) name: Option<String>,
    /// Whose definition of the same name it replaces.
    pub(crate) replaces: Option<DefinitionSource>,
    /// False if it is too large to be accepted.
    pub(crate) is_acceptable: bool,
}

/// What a workspace has, compared with what the person has accepted.
pub(crate) struct Trustable {
    pub(crate) trust: Trust,
    pub(crate) files: Vec<TrustableFile>,
    /// What is kept if the person accepts all.
    accepted: SeenFiles,
}

impl Trustable {
    /// Looks at the workspace around `places.cwd`.
    pub(crate) fn at(places: &SearchPaths, extent: Extent) -> Self {
        let (posse_home, home) = (places.posse_home.as_deref(), places.home.as_deref());
        let trust = Trust::kept(&places.cwd, posse_home, home);
        let all = Trust::survey(&places.cwd);
        let mut names = BTreeMap::new();
        let directories = match extent {
            Extent::Here => vec![places.cwd.clone()],
            Extent::Whole => marked(trust.root(), &places.cwd),
        };
        for cwd in directories {
            let places = SearchPaths {
                cwd,
                trust: all.clone(),
                ..places.clone()
            };
            look(&places, &mut names);
        }
        let looked = all.looked();
        let file = |file: &LookedFile| {
            let (name, replaces) = names.remove(&file.path).unzip();
            TrustableFile {
                path: file.path.clone(),
                kind: file.kind,
                state: trust.state_of(file),
                name,
                replaces: replaces.flatten(),
                is_acceptable: file.fingerprint.is_some() && file.path.to_str().is_some(),
            }
        };
        let files = looked.iter().map(file).collect();
        let mut accepted = match extent {
            Extent::Whole => SeenFiles::new(),
            Extent::Here => trust.accepted(),
        };
        accepted.extend(looked.into_iter().filter_map(|file| {
            let name = file.path.to_str()?.to_owned();
            Some((name, file.fingerprint?))
        }));
        Self {
            trust,
            files,
            accepted,
        }
    }

    /// Returns the files that do not count yet.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &TrustableFile> {
        let files = self.files.iter();
        files.filter(|file| file.state != FileState::Accepted)
    }

    /// Keeps that the person accepts all files as they were looked at.
    pub(crate) fn accept(self) -> anyhow::Result<()> {
        Ok(self.trust.keep(self.accepted)?)
    }
}

/// Names and what they replace, by the paths of files in the workspace.
type Names = BTreeMap<PathBuf, (String, Option<DefinitionSource>)>;

/// Has everything loaded that would count in a directory.
fn look(places: &SearchPaths, names: &mut Names) {
    let root = places.trust.root().to_owned();
    let agents = AgentSources::new(places.clone(), InlineAgents::default()).load();
    note(&agents, &root, names);
    note(&SkillSources::new(places.clone()).load(), &root, names);
    let types = agents.known.iter();
    let types = types.map(|it| it.definition.name.clone()).collect();
    note(
        &TeamSources::new(places.clone(), types).load(),
        &root,
        names,
    );
    let workspace = Workspace {
        cwd: places.cwd.clone(),
        roots: vec![root.clone()],
        spill: PathBuf::new(),
        home: places.home.clone(),
        mirror: None,
        notes: None,
    };
    let policy = Arc::new(Policy::default());
    InstructionSources::new(places.clone(), policy, Arc::new(workspace)).survey();
    note_servers(places, &root, names);
    // A file that is wrong is told when it is used; here it only matters which there are.
    let _ = Settings::load(places, FlagSettings::default());
}

/// Notes the names of a repository's definitions.
fn note<T: HasName>(loaded: &DefinitionSet<T>, root: &Path, names: &mut Names) {
    for entry in loaded.known.iter().chain(&loaded.shadowed) {
        let Some(path) = entry
            .path
            .as_ref()
            .and_then(|path| path.strip_prefix(root).ok())
        else {
            continue;
        };
        if entry.source != DefinitionSource::Project {
            continue;
        }
        let name = entry.definition.name();
        let is_used = loaded.winner(entry).is_none();
        let others = loaded.shadowed_by_name(name);
        let mut others = others.iter().map(|other| other.source);
        let replaced = others.find(|source| *source != DefinitionSource::Project);
        let noted = (name.to_owned(), replaced.filter(|_| is_used));
        names.insert(path.to_owned(), noted);
    }
}

/// Notes what the servers of a repository run.
fn note_servers(places: &SearchPaths, root: &Path, names: &mut Names) {
    let sources = ServerSources {
        places,
        settings: &ServerSettings::default(),
        flags: &ServerFlags::default(),
        environment: BTreeMap::new(),
    };
    let set = sources.load().set;
    let servers = set.all().chain(set.overridden());
    for server in servers.filter(|server| server.origin.of_repository) {
        let path = approved_as(&server.origin.file, &server.name);
        if let Ok(path) = path.strip_prefix(root) {
            let runs = format!("{} ({})", server.name, server.title());
            names.insert(path.to_owned(), (runs, None));
        }
    }
}

/// Returns the directories of a workspace with something that can count, and the working directory.
/// Links are not followed, and nested repositories are workspaces of their own.
fn marked(root: &Path, cwd: &Path) -> Vec<PathBuf> {
    let mut found = vec![cwd.to_owned()];
    let mut left = MOST;
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        if found.len() >= MOST_DIRECTORIES {
            return found;
        }
        let mut is_marked = false;
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let Some(rest) = left.checked_sub(1) else {
                return found;
            };
            left = rest;
            let name = entry.file_name();
            is_marked |= MARKS.iter().any(|mark| name == *mark);
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_skipped = SKIPPED.iter().chain(&MARKS).any(|skipped| name == *skipped);
            let path = entry.path();
            if is_directory && !is_skipped && depth < DEPTH && !has_git(&path) {
                open.push((path, depth + 1));
            }
        }
        if is_marked && !found.contains(&directory) {
            found.push(directory);
        }
    }
    found
}
