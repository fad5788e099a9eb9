//! Trust in a workspace: which of a repository's files the person has seen and accepted. Nothing in
//! the workspace takes part in deciding it.

pub(crate) mod fingerprint;
pub(crate) mod record;
pub(crate) mod workspace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::fingerprint::Fingerprint;
use self::record::{SeenFiles, TrustFile};
use self::workspace::WorkspaceKey;
use super::{caller, environment};

/// Workspaces that are trusted for as long as the variable is set, separated by colons.
const VARIABLE: &str = "POSSE_TRUST";

/// What a repository's file is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileKind {
    Agent,
    Skill,
    Command,
    Team,
    /// Instructions for agents: AGENTS.md, CLAUDE.md, rules, and what they import.
    Memory,
    Settings,
    /// An MCP server in `.mcp.json`.
    Server,
}

impl FileKind {
    /// Returns the kind in words, for one file or for several.
    pub(crate) fn name(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Agent, 1) => "agent type",
            (Self::Agent, _) => "agent types",
            (Self::Skill, 1) => "skill",
            (Self::Skill, _) => "skills",
            (Self::Command, 1) => "command",
            (Self::Command, _) => "commands",
            (Self::Team, 1) => "team",
            (Self::Team, _) => "teams",
            (Self::Memory, 1) => "memory file",
            (Self::Memory, _) => "memory files",
            (Self::Settings, 1) => "settings file",
            (Self::Settings, _) => "settings files",
            (Self::Server, 1) => "MCP server",
            (Self::Server, _) => "MCP servers",
        }
    }
}

/// Whether a repository's file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The person has accepted it as it is.
    Accepted,
    /// It has changed since they accepted it.
    Changed,
    /// They have not accepted it.
    New,
}

/// A repository's file that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookedFile {
    /// Its path in the workspace.
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) state: FileState,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// What trust rests on.
#[derive(Clone, Debug)]
enum Basis {
    /// Nobody has trusted the workspace.
    Nothing,
    /// The person has accepted these files.
    Seen(Arc<Mutex<SeenFiles>>),
    /// The person trusts all of it, for one run.
    Everything,
    /// Everything is read to be shown to the person, and nothing is run.
    Survey,
}

/// The trust in the workspace around a directory.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    root: PathBuf,
    basis: Basis,
    looked: Arc<Mutex<BTreeMap<PathBuf, LookedFile>>>,
    /// posse's home and the user's, where trust is kept.
    homes: Option<(PathBuf, Option<PathBuf>)>,
    /// Why the record of trusted workspaces cannot be used.
    problem: Option<Arc<str>>,
}

impl Trust {
    /// Returns the trust in the workspace around `cwd`, from the person's record and environment.
    pub(crate) fn of(cwd: &Path, posse_home: Option<&Path>, home: Option<&Path>) -> Self {
        let key = WorkspaceKey::around(cwd);
        let root = key
            .as_ref()
            .map_or_else(|| cwd.to_owned(), |key| key.path.clone());
        if key.as_ref().is_some_and(is_named) {
            return Self::new(root, Basis::Everything);
        }
        Self::kept(cwd, posse_home, home)
    }

    /// Returns the trust in the workspace around `cwd` that the person has kept, whatever the
    /// environment says.
    pub(crate) fn kept(cwd: &Path, posse_home: Option<&Path>, home: Option<&Path>) -> Self {
        let key = WorkspaceKey::around(cwd);
        let root = key
            .as_ref()
            .map_or_else(|| cwd.to_owned(), |key| key.path.clone());
        let (Some(key), Some(posse_home)) = (key, posse_home) else {
            return Self::new(root, Basis::Nothing);
        };
        let homes = Some((posse_home.to_owned(), home.map(Path::to_owned)));
        match TrustFile::read(posse_home, home) {
            Ok(file) => {
                let seen = file.files_of(&key).or_else(|| {
                    // posse has made this worktree itself, from a repository that it has noted.
                    let origin = workspace::origin(posse_home, &key.path)?;
                    file.files_of(&WorkspaceKey::around(&origin)?)
                });
                let basis = seen.cloned().map_or(Basis::Nothing, |seen| {
                    Basis::Seen(Arc::new(Mutex::new(seen)))
                });
                Self {
                    homes,
                    ..Self::new(root, basis)
                }
            }
            Err(error) => Self {
                homes,
                problem: Some(posse_port::in_a_line(&error).into()),
                ..Self::new(root, Basis::Nothing)
            },
        }
    }

    /// Returns trust in all that is in the workspace around `cwd`, for one run.
    pub(crate) fn everything(cwd: &Path) -> Self {
        let key = WorkspaceKey::around(cwd);
        let root = key.map_or_else(|| cwd.to_owned(), |key| key.path);
        Self::new(root, Basis::Everything)
    }

    /// Returns what lets all of the workspace around `cwd` be read, to show it to the person. It is
    /// not trusted by that.
    pub(crate) fn survey(cwd: &Path) -> Self {
        Self {
            basis: Basis::Survey,
            ..Self::everything(cwd)
        }
    }

    /// Returns no trust in the workspace around `cwd`.
    #[cfg(test)]
    pub(crate) fn nothing(cwd: &Path) -> Self {
        Self {
            basis: Basis::Nothing,
            ..Self::everything(cwd)
        }
    }

    /// Returns trust in these files of the workspace around `cwd`.
    #[cfg(test)]
    pub(crate) fn seen(cwd: &Path, files: SeenFiles) -> Self {
        Self {
            basis: Basis::Seen(Arc::new(Mutex::new(files))),
            ..Self::everything(cwd)
        }
    }

    fn new(root: PathBuf, basis: Basis) -> Self {
        Self {
            root,
            basis,
            looked: Arc::default(),
            homes: None,
            problem: None,
        }
    }

    /// Returns trust in what was looked at as it was. Of a workspace that is trusted for one run, what
    /// changes in it later does not count.
    pub(crate) fn of_what_was_seen(&self) -> Self {
        if !self.is_trusted_for_now() {
            return self.clone();
        }
        let seen = self.looked().into_iter();
        let seen =
            seen.filter_map(|file| Some((file.path.to_str()?.to_owned(), file.fingerprint?)));
        let basis = Basis::Seen(Arc::new(Mutex::new(seen.collect())));
        Self::new(self.root.clone(), basis)
    }

    /// Returns true if the person has accepted this file, and it is another now, or gone.
    pub(crate) fn has_changed(&self, kind: FileKind, path: &Path, text: Option<&str>) -> bool {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let accepted = self.accepted();
        let known = path.to_str().and_then(|name| accepted.get(name));
        let now = text.map(|text| Fingerprint::of(kind, text));
        known.is_some_and(|known| now.as_ref() != Some(known))
    }

    /// Returns the workspace's directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns true if the person trusts the workspace. Files that have changed since wait all the
    /// same.
    pub(crate) fn is_trusted(&self) -> bool {
        matches!(self.basis, Basis::Seen(_) | Basis::Everything)
    }

    /// Returns true if all of the workspace counts in this run, whatever is kept.
    pub(crate) fn is_trusted_for_now(&self) -> bool {
        matches!(self.basis, Basis::Everything)
    }

    /// Returns why the record of trusted workspaces cannot be used, if that is so.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns true if a repository's file with this content counts. `top` is the directory of the
    /// checkout, which may be a worktree. No fingerprint means that the file cannot be accepted.
    pub(crate) fn admits(
        &self,
        kind: FileKind,
        (path, top): (&Path, &Path),
        fingerprint: Option<Fingerprint>,
    ) -> bool {
        let path = path.strip_prefix(top).unwrap_or(path).to_owned();
        let state = self.state(&path, fingerprint.as_ref());
        let file = LookedFile {
            path: path.clone(),
            kind,
            state,
            fingerprint,
        };
        held(&self.looked).insert(path, file);
        state == FileState::Accepted
    }

    fn state(&self, path: &Path, fingerprint: Option<&Fingerprint>) -> FileState {
        match (&self.basis, path.to_str(), fingerprint) {
            (Basis::Everything | Basis::Survey, _, _) => FileState::Accepted,
            (Basis::Seen(files), Some(name), Some(now)) => match held(files).get(name) {
                Some(known) if known == now => FileState::Accepted,
                Some(_) => FileState::Changed,
                None => FileState::New,
            },
            _ => FileState::New,
        }
    }

    /// Returns true if a file of the workspace may be replaced with the person's own words: it is
    /// accepted as it is, or not there yet.
    pub(crate) fn is_accepted(&self, kind: FileKind, path: &Path, text: Option<&str>) -> bool {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let print = text.map(|text| Fingerprint::of(kind, text));
        print.is_none_or(|print| self.state(path, Some(&print)) == FileState::Accepted)
    }

    /// Accepts a file of the workspace that posse has just written for the person. Without a record
    /// of the workspace, or for an agent's command, nothing is kept.
    pub(crate) fn accept(
        &self,
        kind: FileKind,
        path: &Path,
        text: &str,
    ) -> Result<(), record::RecordError> {
        if !caller::is_person() {
            return Ok(());
        }
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        let (Basis::Seen(files), Some((posse_home, home)), Some(name)) =
            (&self.basis, &self.homes, path.to_str())
        else {
            return Ok(());
        };
        let print = Fingerprint::of(kind, text);
        TrustFile::add(posse_home, home.as_deref(), &self.root, (name, &print))?;
        held(files).insert(name.to_owned(), print);
        Ok(())
    }

    /// Returns the files that were looked at, by path.
    pub(crate) fn looked(&self) -> Vec<LookedFile> {
        held(&self.looked).values().cloned().collect()
    }

    /// Returns the files that were looked at and do not count yet.
    pub(crate) fn waiting(&self) -> Vec<LookedFile> {
        let mut files = self.looked();
        files.retain(|file| file.state != FileState::Accepted);
        files
    }

    /// Returns whether this trust covers a file that was looked at with another.
    pub(crate) fn state_of(&self, file: &LookedFile) -> FileState {
        self.state(&file.path, file.fingerprint.as_ref())
    }

    /// Returns the files that the person has accepted.
    pub(crate) fn accepted(&self) -> SeenFiles {
        match &self.basis {
            Basis::Seen(files) => held(files).clone(),
            Basis::Nothing | Basis::Everything | Basis::Survey => SeenFiles::new(),
        }
    }

    /// Keeps that the person accepts the workspace with these files.
    pub(crate) fn keep(&self, files: SeenFiles) -> Result<(), record::RecordError> {
        let (Some((posse_home, home)), Some(key)) = (&self.homes, WorkspaceKey::around(&self.root))
        else {
            return Err(record::RecordError::NoHome);
        };
        TrustFile::keep(posse_home, home.as_deref(), &key, files)
    }

    /// Returns true if trust in this workspace can be kept.
    pub(crate) fn can_be_kept(&self) -> bool {
        let home = self.homes.as_ref().and_then(|(_, home)| home.as_deref());
        self.homes.is_some() && workspace::can_be_kept(&self.root, home)
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if the environment names this workspace. An agent's command could have set the
/// variable, so that it does not count there.
fn is_named(key: &WorkspaceKey) -> bool {
    let Some(named) = environment::variable(VARIABLE) else {
        return false;
    };
    let mut directories = named.split(':').filter(|name| !name.is_empty());
    directories.any(|name| {
        WorkspaceKey::around(Path::new(name)).is_some_and(|other| other.path == key.path)
    }) && caller::is_person()
}

/// Returns files in words: how many of each kind.
pub(crate) fn counted(files: &[LookedFile]) -> String {
    let mut counts: BTreeMap<FileKind, usize> = BTreeMap::new();
    for file in files {
        *counts.entry(file.kind).or_default() += 1;
    }
    let counts = counts.into_iter();
    let words: Vec<String> = counts
        .map(|(kind, count)| format!("{count} {}", kind.name(count)))
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests;
