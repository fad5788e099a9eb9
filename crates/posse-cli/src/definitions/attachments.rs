//! Files that a person names with `@` in a prompt or in a command: their texts go with it.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_permission::Policy;
use posse_port::tool::{FileGuard as _, Workspace};
use posse_protocol::ContentBlock;
use posse_runtime::definition::instructions::imports::{imports, is_file_name, target};
use posse_runtime::definition::instructions::{Kept, MemoryRoom, PER_FILE};
use posse_runtime::prompt::attached;

use super::scan;

/// Maximum number of files that one prompt can name.
const MOST: usize = 100;
/// Maximum number of names in a directory's listing.
const NAMES: usize = 500;

/// Which files may be attached.
#[derive(Clone, Debug)]
pub(crate) struct Attachments {
    policy: Arc<Policy>,
    workspace: Arc<Workspace>,
}

/// Why a file is not attached. It stays in the prompt as text.
#[derive(Debug, thiserror::Error)]
enum Unattached {
    #[error("there is no such file")]
    Missing,
    #[error("it is outside the directories that agents may read; --add-dir adds one")]
    Outside,
    #[error("a permission rule denies reading it")]
    Denied,
    #[error("all files together are too large")]
    NoRoom,
    #[error("more than {MOST} files are named")]
    TooMany,
    #[error(transparent)]
    Unread(#[from] scan::OpenError),
    #[error("cannot be read: {0}")]
    Failed(#[from] std::io::Error),
}

impl Attachments {
    pub(crate) fn new(policy: Arc<Policy>, workspace: Arc<Workspace>) -> Self {
        Self { policy, workspace }
    }

    /// Returns the files that a text names, and a line about each that is not attached.
    pub(super) fn of(&self, text: &str) -> (Vec<ContentBlock>, Vec<String>) {
        let (mut blocks, mut refused) = (Vec::new(), Vec::new());
        let mut room = MemoryRoom::default();
        for (number, name) in imports(text).into_iter().enumerate() {
            let found = match number < MOST {
                true => self.read(&name, &mut room),
                false => Err(Unattached::TooMany),
            };
            match found {
                Ok((path, text)) => blocks.push(ContentBlock::text(attached(&path, &text))),
                // `@someone` is rarely meant as a file, and `@server:uri` is a server's.
                Err(Unattached::Missing) if !is_file_name(&name) || name.contains(':') => {}
                Err(why) => refused.push(format!("@{name} is left as text: {why}")),
            }
        }
        (blocks, refused)
    }

    /// Returns the text of a file, or the names in a directory.
    fn read(&self, name: &str, room: &mut MemoryRoom) -> Result<(PathBuf, String), Unattached> {
        let Workspace { cwd, home, .. } = &*self.workspace;
        let path = target(name, cwd, home.as_deref()).ok_or(Unattached::Missing)?;
        let resolved = path.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Unattached::Missing,
            _ => Unattached::Failed(error),
        })?;
        self.check(&resolved)?;
        let (text, size) = match resolved.is_dir() {
            true => {
                let names = self.names(&resolved)?;
                let size = names.len() as u64;
                (names, size)
            }
            false => scan::read_start(&resolved, PER_FILE)?,
        };
        match room.take(&text, size) {
            Kept::Whole(text) | Kept::Start { text, .. } => Ok((resolved, text)),
            Kept::Nothing => Err(Unattached::NoRoom),
        }
    }

    /// Checks that agents may read a file without asking.
    fn check(&self, resolved: &Path) -> Result<(), Unattached> {
        let mut roots = self.workspace.roots.iter();
        if !roots.any(|root| resolved.starts_with(root)) {
            return Err(Unattached::Outside);
        }
        let (policy, workspace) = (&self.policy, &self.workspace);
        match policy.denies_reading(resolved, workspace) || policy.asks_reading(resolved, workspace)
        {
            true => Err(Unattached::Denied),
            false => Ok(()),
        }
    }

    /// Returns the names in a directory, without those that agents may not read.
    fn names(&self, directory: &Path) -> Result<String, Unattached> {
        let mut names = Vec::new();
        let mut entries = std::fs::read_dir(directory)?;
        for entry in entries.by_ref().take(NAMES) {
            let entry = entry?;
            if self.check(&entry.path()).is_ok() {
                let end = if entry.file_type()?.is_dir() { "/" } else { "" };
                names.push(format!("{}{end}", entry.file_name().to_string_lossy()));
            }
        }
        names.sort_unstable();
        if entries.next().is_some() {
            names.push(format!("[cut here: only {NAMES} names are listed]"));
        }
        Ok(names.join("\n"))
    }
}
