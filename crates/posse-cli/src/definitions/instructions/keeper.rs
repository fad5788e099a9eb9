//! Adds notes to memory files. Nothing is written through a symbolic link that leads out of the
//! file's directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use posse_protocol::MemoryScope;
use posse_runtime::definition::instructions::{InstructionKeeper, NoteError};
use rustix::fs::OFlags;

use super::InstructionSources;
use crate::config::replace::{Durability, FileMode, replace};
use crate::config::trust::FileKind;

/// Maximum number of links from one name of a directory to another.
const LINKS: usize = 8;

/// Adds notes to the memory files of a session's project and user.
#[derive(Debug)]
pub(crate) struct MemoryKeeper {
    pub(crate) sources: InstructionSources,
}

impl InstructionKeeper for MemoryKeeper {
    fn add(&self, line: &str, scope: MemoryScope) -> Result<PathBuf, NoteError> {
        let (directory, name) = self.file(scope).ok_or(NoteError::NotRead(scope))?;
        let failed = |source| NoteError::Unwritable {
            path: directory.join(name),
            source,
        };
        std::fs::create_dir_all(&directory).map_err(failed)?;
        // Held until the file is replaced: of two notes at once none is lost.
        let lock = File::open(&directory).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let path = target(&directory, name)?;
        let (before, now) = append(&path, line).map_err(failed)?;
        let trust = &self.sources.places.trust;
        let is_theirs = scope != MemoryScope::User
            && trust.is_accepted(FileKind::Memory, &path, before.as_deref());
        if is_theirs {
            // Otherwise the person's own words would wait for their trust.
            let accepted = trust.accept(FileKind::Memory, &path, &now);
            accepted.map_err(|error| failed(io::Error::other(error)))?;
        }
        Ok(path)
    }
}

impl MemoryKeeper {
    /// Returns the directory and the name of the file for notes: one that is there, if one is. None
    /// if no such file is read.
    fn file(&self, scope: MemoryScope) -> Option<(PathBuf, &'static str)> {
        let places = &self.sources.places;
        let is_there =
            |directory: &Path, name: &str| directory.join(name).symlink_metadata().is_ok();
        let project = || places.project().to_owned();
        match scope {
            MemoryScope::Project if places.sources.project => {
                let names = ["CLAUDE.md", "AGENTS.md"];
                let found = names.into_iter().find(|name| is_there(&project(), name));
                Some((project(), found.unwrap_or("AGENTS.md")))
            }
            MemoryScope::Local if places.sources.local => Some((project(), "CLAUDE.local.md")),
            MemoryScope::User if places.sources.user => {
                let ours = places.posse_home.clone().map(|home| (home, "AGENTS.md"));
                let claude = places.home.as_ref().map(|home| home.join(".claude"));
                let theirs = claude.map(|home| (home, "CLAUDE.md"));
                let is_found = |it: &&(PathBuf, &str)| is_there(&it.0, it.1);
                let found = ours.iter().chain(&theirs).find(is_found).cloned();
                found.or(ours)
            }
            _ => None,
        }
    }
}

/// Returns the file that a name leads to by links within its directory.
fn target(directory: &Path, name: &str) -> Result<PathBuf, NoteError> {
    let mut path = directory.join(name);
    for _ in 0..LINKS {
        let Ok(to) = std::fs::read_link(&path) else {
            return Ok(path);
        };
        let mut parts = to.components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(name)), None) => path = directory.join(name),
            _ => break,
        }
    }
    Err(NoteError::Elsewhere(path))
}

/// Replaces a file by one with another line at its end: after a crash it is the old or the new one.
/// Returns what it says before, if it is there, and now.
fn append(path: &Path, line: &str) -> io::Result<(Option<String>, String)> {
    let mut text = String::new();
    let mut options = OpenOptions::new();
    // A link that has come since is not followed; the rename replaces it.
    let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
    let permissions = match options.read(true).custom_flags(nofollow).open(path) {
        Ok(mut file) => {
            file.read_to_string(&mut text)?;
            Some(file.metadata()?.permissions())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let before = permissions.is_some().then(|| text.clone());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("- {line}\n"));
    let mode = permissions.map_or(FileMode::Usual, FileMode::Like);
    replace(path, &text, mode, Durability::Synced)?;
    Ok((before, text))
}
