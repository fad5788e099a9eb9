//! A worktree root: the directory beneath posse's home that holds the worktrees of one repository.
//!
//! ```text
//! <name>-<hash>/<agent>             a worktree <name>-<hash>/.repository         where its git
//! directory is <name>-<hash>/.lock               held by whoever ends or revives a worktree here
//! <name>-<hash>/.noting             held by whoever has git note a new one
//! <name>-<hash>/.making-<agent>.<host>   one is being made: if that host is dead, nobody has
//! worked in it <name>-<hash>/.gone-<agent>       one that nothing is lost with, on its way out
//! ```

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use posse_port::worktree::Worktree;
use posse_protocol::AgentId;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::git::GitHold;

use super::registration::{Registration, gone_is_fine, put};

/// How long is waited for a lock. Whoever holds it may be stopped.
const PATIENCE: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(2);

const LOCK: &str = ".lock";
const NOTING: &str = ".noting";

/// The longest part of a directory's name that comes from the repository's.
const LONGEST_NAME: usize = 40;
const MAKING: &str = ".making-";
const GONE: &str = ".gone-";
const REPOSITORY: &str = ".repository";

/// The place of a repository's worktrees.
#[derive(Clone, Debug)]
pub(super) struct WorktreeRoot {
    pub(super) directory: PathBuf,
    /// The repository's git directory, which all its checkouts share.
    pub(super) common: PathBuf,
    /// What holds the programs that it has git run.
    pub(super) hold: GitHold,
}

/// That a worktree is being made: all that has to go if it is not finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MakingNote {
    pub(super) worktree: Worktree,
    /// True if its branch is made with it.
    pub(super) branch: bool,
}

/// What lies in a worktree root.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Directories that are named like a worktree's.
    pub(super) agents: Vec<AgentId>,
    pub(super) gone: Vec<AgentId>,
}

impl WorktreeRoot {
    /// Returns the worktree root of a repository, made if it is the first time.
    pub(super) fn claim(home: &Path, common: &Path, hold: &GitHold) -> io::Result<Self> {
        let root = Self {
            directory: home.join(name(common)),
            common: common.to_owned(),
            hold: hold.clone(),
        };
        match DirBuilder::new().mode(0o700).create(&root.directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        // What somebody has put there must be a directory, not a link to one.
        if !root.directory.symlink_metadata()?.is_dir() {
            return Err(io::Error::other(format!(
                "{} is not a directory",
                root.directory.display()
            )));
        }
        let known = root.directory.join(REPOSITORY);
        if fs::read(&known).ok().as_deref() != Some(common.as_os_str().as_bytes()) {
            let _lock = root.lock()?;
            put(&known, common.as_os_str().as_bytes())?;
        }
        Ok(root)
    }

    /// Returns the worktree root in this directory, if it is one.
    pub(super) fn at(directory: &Path, hold: &GitHold) -> io::Result<Self> {
        let common = PathBuf::from(std::ffi::OsString::from_vec(fs::read(
            directory.join(REPOSITORY),
        )?));
        Ok(Self {
            directory: directory.to_owned(),
            common,
            hold: hold.clone(),
        })
    }

    /// Returns where an agent's worktree is.
    pub(super) fn path(&self, agent: AgentId) -> PathBuf {
        self.directory.join(agent.to_string())
    }

    /// Returns where it is when it is on its way out.
    pub(super) fn gone(&self, agent: AgentId) -> PathBuf {
        self.directory.join(format!("{GONE}{agent}"))
    }

    pub(super) fn registration(&self, agent: AgentId) -> Registration {
        Registration::of(&self.common, agent)
    }

    /// Waits until nobody else ends or revives worktrees here, and keeps them from it until this is
    /// dropped.
    pub(super) fn lock(&self) -> io::Result<File> {
        lock(&self.directory, LOCK)
    }

    /// The same for whoever has git note a new worktree: git stumbles over one that another git has
    /// only half noted. If somebody is stopped who holds it, it is done without: git says so if it
    /// stumbles.
    pub(super) fn lock_notes(&self) -> io::Result<Option<File>> {
        match lock(&self.directory, NOTING) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            locked => locked.map(Some),
        }
    }

    fn note(&self, agent: AgentId, host: Uuid) -> PathBuf {
        self.directory.join(format!("{MAKING}{agent}.{host}"))
    }

    /// Notes that a worktree is being made, before anything of it is there.
    pub(super) fn begin(&self, agent: AgentId, host: Uuid, note: &MakingNote) -> io::Result<()> {
        put(&self.note(agent, host), &serde_json::to_vec(note)?)
    }

    /// It is made, or nothing is left of it.
    pub(super) fn finish(&self, agent: AgentId, host: Uuid) -> io::Result<()> {
        gone_is_fine(fs::remove_file(self.note(agent, host)))
    }

    /// Returns who is making what, and what it is.
    pub(super) fn making(&self) -> Vec<(AgentId, Uuid, Option<MakingNote>)> {
        let names =
            entries(&self.directory).filter_map(|entry| entry.file_name().into_string().ok());
        let made = names.filter_map(|name| {
            let (agent, rest) = name.strip_prefix(MAKING)?.split_once('.')?;
            // A note that was not finished has one more part, and nothing was made yet.
            let host = rest.split('.').next()?.parse().ok()?;
            let text = if rest.contains('.') {
                None
            } else {
                fs::read(self.directory.join(&name)).ok()
            };
            let note = text.and_then(|text| serde_json::from_slice(&text).ok());
            Some((agent.parse().ok()?, host, note))
        });
        made.collect()
    }

    /// Returns what lies in it. Directories are listed before notes are: one that is being made has
    /// its note first.
    pub(super) fn contents(&self) -> Contents {
        let mut contents = Contents::default();
        for entry in entries(&self.directory) {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            match name.strip_prefix(GONE) {
                Some(agent) => contents.gone.extend(agent.parse::<AgentId>().ok()),
                None => contents.agents.extend(name.parse::<AgentId>().ok()),
            }
        }
        contents
    }

    /// Removes a note that is not finished.
    pub(super) fn drop_notes(&self, agent: AgentId, host: Uuid) {
        let start = format!("{MAKING}{agent}.{host}.");
        for entry in entries(&self.directory) {
            if entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.starts_with(&start))
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one who holds it is no clock of ours"
)]
fn lock(root: &Path, name: &str) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_link);
    let file = options.open(root.join(name))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                let busy = "another posse process has held the worktrees of this repository for \
                            too long";
                return Err(io::Error::new(io::ErrorKind::TimedOut, busy));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(MOMENT),
        }
    }
}

/// Removes what was being written when a process ended that had just found this place for a
/// worktree root.
pub(super) fn tidy(directory: &Path) {
    let unfinished = |entry: &fs::DirEntry| {
        entry
            .file_name()
            .as_bytes()
            .strip_prefix(REPOSITORY.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"."))
    };
    if !entries(directory).any(|entry| unfinished(&entry)) {
        return;
    }
    // Whoever is still at it has the lock.
    let Ok(_lock) = lock(directory, LOCK) else {
        return;
    };
    for entry in entries(directory).filter(unfinished) {
        let _ = fs::remove_file(entry.path());
    }
}

/// Returns what is in a directory, as far as it can be read.
pub(super) fn entries(directory: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

/// Returns the repository's name, for people, and what tells it from others of the same name.
fn name(common: &Path) -> String {
    let named = if common.file_name() == Some(OsStr::new(".git")) {
        common.parent()
    } else {
        Some(common)
    };
    let name = named
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let name = name.strip_suffix(".git").unwrap_or(&name);
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let mut name: String = name.chars().take(LONGEST_NAME).map(plain).collect();
    if name.is_empty() {
        name.push_str("repository");
    }
    let hash = xxhash_rust::xxh3::xxh3_64(common.as_os_str().as_bytes());
    format!("{name}-{:08x}", hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_named_after_its_repository() {
        let named = |common: &str| name(Path::new(common));
        assert!(named("/home/me/my project/.git").starts_with("my-project-"));
        assert!(named("/srv/posse.git").starts_with("posse-"));
        assert!(named("/.git").starts_with("repository-"));
        assert_ne!(named("/a/posse/.git"), named("/b/posse/.git"));
        assert_eq!(named("/a/posse/.git").len(), "posse-".len() + 8);
    }
}
