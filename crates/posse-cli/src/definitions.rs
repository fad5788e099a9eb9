//! Agent types and skills as people define them: where the files are, which of several with the
//! same name counts, and what is wrong with the others. The runtime interprets what a file says.

pub(crate) mod attachments;
pub(crate) mod guide;
mod hooks;
mod inline_agents;
pub(crate) mod instructions;
mod memory;
mod place;
mod scan;
pub(crate) mod servers;
pub(crate) mod skills;
pub(crate) mod slash;
pub(crate) mod teams;
pub(crate) mod trustable;

#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::file;
use posse_runtime::definition::server::AgentServer;
use posse_runtime::definition::skill::Skill;
use posse_runtime::hook::HookLayer;

use self::hooks::HookFront;
pub(crate) use self::inline_agents::{InlineAgents, InlineAgentsError};
use self::place::Directory;
use self::scan::ScanKind;
pub(crate) use self::watch::{
    LiveDefinitions, WatchGuard, WatchedFiles, WatchedSources, watch_files,
};
use crate::config::search_paths::SearchPaths;
use crate::config::settings::no_such_mode;
use crate::config::trust::FileKind;
use crate::config::trust::record::RecordError;
use crate::output::tame;

/// Where a definition comes from, highest precedence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionSource {
    /// The administrator.
    Managed,
    /// `--agents`.
    Flag,
    /// The repository, as far as the person trusts it.
    Project,
    /// The user.
    User,
    /// posse itself.
    BuiltIn,
}

impl DefinitionSource {
    /// Returns the source in one word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Flag => "--agents",
            Self::Project => "project",
            Self::User => "user",
            Self::BuiltIn => "built-in",
        }
    }
}

/// Something that files define under a name.
pub(crate) trait HasName: Clone + PartialEq + Send + Sync + 'static {
    /// Returns its name. Case does not matter.
    fn name(&self) -> &str;
}

impl HasName for Definition {
    fn name(&self) -> &str {
        &self.name
    }
}

impl HasName for Skill {
    fn name(&self) -> &str {
        &self.name
    }
}

/// A definition and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DefinitionEntry<T = Definition> {
    pub(crate) definition: T,
    pub(crate) source: DefinitionSource,
    /// Its file, if it has one.
    pub(crate) path: Option<PathBuf>,
}

impl<T: HasName> DefinitionEntry<T> {
    /// Returns true if this is its name, regardless of case.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        same(self.definition.name(), name)
    }

    /// Returns its file for people, or its source if it has none.
    pub(crate) fn origin(&self, cwd: &Path) -> String {
        self.path
            .as_deref()
            .map_or_else(|| self.source.as_str().to_owned(), |path| shown(path, cwd))
    }
}

/// The weight of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// A definition is not loaded.
    Error,
    /// A definition does not mean what is written.
    Warning,
    /// For information.
    Note,
}

impl Severity {
    /// Returns the severity in one word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A remark about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) weight: Severity,
    pub(crate) path: PathBuf,
    /// Counted from 1; `None` if it is about the whole file.
    pub(crate) line: Option<usize>,
    pub(crate) reason: String,
}

impl Remark {
    /// Returns `file:line`, safe to print.
    pub(crate) fn place(&self, cwd: &Path) -> String {
        let path = shown(&self.path, cwd);
        self.line
            .map_or_else(|| path.clone(), |line| format!("{path}:{line}"))
    }

    /// Returns `file:line: reason`, safe to print.
    pub(crate) fn in_a_line(&self, cwd: &Path) -> String {
        format!("{}: {}", self.place(cwd), tame(&self.reason))
    }
}

/// All definitions that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DefinitionSet<T = Definition> {
    /// Those that count: posse's own first, then by name.
    pub(crate) known: Vec<DefinitionEntry<T>>,
    /// Those overridden by another of the same name, highest precedence first.
    pub(crate) shadowed: Vec<DefinitionEntry<T>>,
    pub(crate) remarks: Vec<Remark>,
    /// Those of the remarks that are about hooks.
    pub(crate) about_hooks: Vec<Remark>,
    /// The directories that were read, and those that links lead to. All of them are watched.
    directories: BTreeSet<PathBuf>,
    /// Number of bytes that may still be read.
    left: usize,
}

impl<T> Default for DefinitionSet<T> {
    fn default() -> Self {
        let (known, shadowed) = (Vec::new(), Vec::new());
        Self {
            known,
            shadowed,
            remarks: Vec::new(),
            about_hooks: Vec::new(),
            directories: BTreeSet::new(),
            left: scan::ALL,
        }
    }
}

impl<T: HasName> DefinitionSet<T> {
    /// Returns the definitions that count.
    pub(crate) fn definitions(&self) -> Vec<T> {
        self.known
            .iter()
            .map(|known| known.definition.clone())
            .collect()
    }

    /// Returns true if the same definitions count.
    fn counts_the_same(&self, other: &Self) -> bool {
        self.known
            .iter()
            .map(|known| &known.definition)
            .eq(other.known.iter().map(|known| &known.definition))
    }

    /// Returns errors and warnings, which are shown without being asked for.
    pub(crate) fn trouble(&self) -> impl Iterator<Item = &Remark> {
        self.remarks
            .iter()
            .filter(|remark| remark.weight < Severity::Note)
    }

    /// Returns the definition that overrides this one, if any.
    pub(crate) fn winner(&self, entry: &DefinitionEntry<T>) -> Option<&DefinitionEntry<T>> {
        self.find(entry.definition.name())
            .filter(|winner| *winner != entry)
    }

    /// Returns the overridden definitions of this name.
    pub(crate) fn shadowed_by_name(&self, name: &str) -> Vec<&DefinitionEntry<T>> {
        let is_called = |entry: &&DefinitionEntry<T>| entry.is_called(name);
        self.shadowed.iter().filter(is_called).collect()
    }

    /// Returns the definition that counts under this name.
    pub(crate) fn find(&self, name: &str) -> Option<&DefinitionEntry<T>> {
        self.known.iter().find(|known| known.is_called(name))
    }

    /// Adds a definition of lower precedence than all before it.
    fn add(&mut self, known: DefinitionEntry<T>) {
        match self.find(known.definition.name()) {
            Some(_) => self.shadowed.push(known),
            None => self.known.push(known),
        }
    }
}

impl DefinitionSet {
    /// Adds all definitions in a directory.
    fn read(&mut self, directory: &Directory, places: &SearchPaths) {
        let (bounds, left) = (directory.bounds.as_deref(), &mut self.left);
        let mut scanned = scan::scan(&directory.path, bounds, &ScanKind::FILES, left);
        place::admit(places, directory, FileKind::Agent, &mut scanned);
        self.remarks.extend(scanned.remarks);
        self.directories.extend(scanned.directories);
        let mut here: Vec<DefinitionEntry> = Vec::new();
        for (path, text) in scanned.files {
            let Some(known) = self.take(path, &text, directory, places) else {
                continue;
            };
            let Some(first) = here
                .iter()
                .find(|first| first.is_called(&known.definition.name))
            else {
                here.push(known);
                continue;
            };
            let Some(path) = known.path else { continue };
            let file = first.origin(&directory.path);
            let reason = format!("{file} already defines a {}", known.definition.name);
            let line = Some(scan::line_of_name(&text));
            self.remarks.push(Remark {
                weight: Severity::Error,
                path,
                line,
                reason,
            });
        }
        here.into_iter().for_each(|known| self.add(known));
    }

    /// Returns the definition in a file, and records remarks about it.
    fn take(
        &mut self,
        path: PathBuf,
        text: &str,
        directory: &Directory,
        places: &SearchPaths,
    ) -> Option<DefinitionEntry> {
        let mut say = |weight, line, reason| {
            self.remarks.push(Remark {
                weight,
                path: path.clone(),
                line: Some(line),
                reason,
            });
        };
        let file::ReadDefinition {
            mut definition,
            memory,
            hooks,
            unknown_mode,
            notes,
        } = match file::read(text) {
            Ok(read) => read?,
            Err(problem) => {
                say(Severity::Error, problem.line, problem.reason);
                return None;
            }
        };
        notes
            .into_iter()
            .for_each(|note| say(Severity::Note, note.line, note.reason));
        if let Some(word) = unknown_mode {
            let line = scan::line_of(text, "permissionMode");
            say(Severity::Warning, line, no_such_mode(&word));
        }
        if let Some(why) = definition.tools.as_deref().and_then(file::unavailable) {
            say(Severity::Warning, scan::line_of(text, "tools"), why);
        }
        if let Some(scope) = memory {
            let (memory, warning) =
                memory::resolve(scope, &definition.name, Some(directory), places);
            definition.memory = memory;
            warning
                .into_iter()
                .for_each(|why| say(Severity::Warning, scan::line_of(text, "memory"), why));
        }
        let front = HookFront {
            layer: HookLayer::Definition,
            path: &path,
            text,
            source: directory.source,
        };
        let (hooks, remarks) = front.read(hooks.as_ref(), places);
        definition.hooks = hooks;
        definition.mcp_servers = declared_in(definition.mcp_servers, directory.source, &path, text);
        self.about_hooks.extend(remarks.iter().cloned());
        self.remarks.extend(remarks);
        Some(DefinitionEntry {
            definition,
            source: directory.source,
            path: Some(path),
        })
    }

    /// Sorts posse's own definitions first, in their order, and the others by name.
    fn in_order(mut self) -> Self {
        let own = self::guide::built_in();
        let place = |known: &DefinitionEntry| own.iter().position(|own| known.is_called(&own.name));
        self.known.sort_by_key(|known| {
            (
                place(known).unwrap_or(own.len()),
                known.definition.name.to_lowercase(),
            )
        });
        self
    }
}

/// Returns the servers of an agent type with the place where they are declared.
fn declared_in(
    servers: Vec<AgentServer>,
    source: DefinitionSource,
    path: &Path,
    text: &str,
) -> Vec<AgentServer> {
    let of_repository = source == DefinitionSource::Project;
    let line = (!text.is_empty()).then(|| scan::line_of(text, "mcpServers"));
    let servers = servers.into_iter();
    let declared = servers.map(|it| it.declared_in(path.to_owned(), line, of_repository));
    declared.collect()
}

/// Name of directories with agent types.
const AGENTS: &[&str] = &["agents"];

/// Where agent types are defined.
#[derive(Clone, Debug)]
pub(crate) struct AgentSources {
    places: SearchPaths,
    given: InlineAgents,
}

impl AgentSources {
    /// Returns the sources for an agent that works in `cwd`.
    pub(crate) fn at(cwd: &Path, given: InlineAgents) -> Self {
        Self::new(SearchPaths::at(cwd), given)
    }

    pub(crate) fn new(places: SearchPaths, given: InlineAgents) -> Self {
        Self {
            places: place::resolved(places),
            given,
        }
    }

    /// Returns where the agent works.
    pub(crate) fn cwd(&self) -> &Path {
        &self.places.cwd
    }

    /// Reads all current definitions.
    pub(crate) fn load(&self) -> DefinitionSet {
        let mut loaded = DefinitionSet::default();
        let (managed, others) = place::directories(&self.places, AGENTS);
        loaded.read(&managed, &self.places);
        for (definition, remarks) in self.given.resolved(&self.places) {
            loaded.remarks.extend(remarks);
            loaded.add(DefinitionEntry {
                definition,
                source: DefinitionSource::Flag,
                path: None,
            });
        }
        let mut seen = BTreeSet::new();
        for directory in others {
            // Often one directory is a link to another, and must not be read twice.
            let path = directory.path.canonicalize();
            if seen.insert(path.unwrap_or_else(|_| directory.path.clone())) {
                loaded.read(&directory, &self.places);
            }
        }
        for definition in self::guide::built_in() {
            loaded.add(DefinitionEntry {
                definition,
                source: DefinitionSource::BuiltIn,
                path: None,
            });
        }
        loaded.in_order()
    }

    /// Reads only these files and directories. One outside of all sources counts as the user's.
    pub(crate) fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet {
        let mut loaded = DefinitionSet::default();
        for path in paths {
            let directory = self.directory_of(path);
            if path.is_dir() {
                loaded.read(&directory, &self.places);
                continue;
            }
            let error = |line, reason| Remark {
                weight: Severity::Error,
                path: path.clone(),
                line,
                reason,
            };
            let before = loaded.remarks.len();
            match scan::read(path, None) {
                Ok(text) => match loaded.take(path.clone(), &text, &directory, &self.places) {
                    Some(known) => loaded.add(known),
                    None if loaded.remarks.len() > before => {}
                    None => loaded.remarks.push(error(
                        Some(1),
                        "it is not a definition: one begins with a line `---` and fields".into(),
                    )),
                },
                Err((line, reason)) => loaded.remarks.push(error(line, reason)),
            }
        }
        loaded.in_order()
    }

    /// Returns a directory with the source it belongs to.
    fn directory_of(&self, path: &Path) -> Directory {
        let source = place::source_of(path, &self.places, AGENTS);
        Directory {
            path: path.to_owned(),
            kind: AGENTS[0],
            source,
            bounds: None,
        }
    }

    /// Returns true if the person trusts the workspace.
    pub(crate) fn is_trusted(&self) -> bool {
        self.places.trust.is_trusted()
    }

    /// Accepts a definition that posse has just written for the person, if it is the project's.
    pub(crate) fn accept(&self, path: &Path, text: &str) -> Result<(), RecordError> {
        match path.starts_with(self.places.trust.root()) {
            true => self.places.trust.accept(FileKind::Agent, path, text),
            false => Ok(()),
        }
    }

    /// Returns the path for a new definition of the project or of the user.
    pub(crate) fn place_for(&self, name: &str, user: bool) -> Option<PathBuf> {
        let project = self.places.project();
        // In the home directory itself a project's definitions would be taken for the user's.
        let is_home = self.places.home.as_deref() == Some(project);
        let directory = if user || is_home {
            self.places.posse_home.clone()?
        } else {
            project.join(".posse")
        };
        Some(directory.join("agents").join(format!("{name}.md")))
    }
}

impl WatchedSources for AgentSources {
    type Item = Definition;
    const WORD: &'static str = "agents";
    const CHECK: &'static str = "posse agents check";

    fn load(&self) -> DefinitionSet {
        self.load()
    }

    fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet {
        Self::load_only(self, paths)
    }

    fn candidates(&self) -> Vec<PathBuf> {
        place::all(&self.places, AGENTS)
    }

    fn cwd(&self) -> &Path {
        &self.places.cwd
    }
}

/// Returns true if two names are the same, regardless of case.
fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Returns a path for people, relative to `cwd` if it is inside.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    let near = path
        .strip_prefix(cwd)
        .ok()
        .filter(|near| !near.as_os_str().is_empty());
    tame(&near.unwrap_or(path).to_string_lossy())
}
