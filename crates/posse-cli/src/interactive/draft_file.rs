//! The draft of a session's prompt, so that not even kill -9 loses it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use posse_protocol::AgentId;

use crate::config::environment::posse_home;

/// The file with a draft.
pub(super) struct DraftFile {
    path: Option<PathBuf>,
    /// What is in it.
    kept: String,
}

impl DraftFile {
    /// Returns the file of a session.
    pub(super) fn of(session: AgentId) -> Self {
        let path = posse_home().map(|home| home.join("drafts").join(session.to_string()));
        Self {
            path,
            kept: String::new(),
        }
    }

    /// Returns the draft that an earlier process left.
    pub(super) fn read(&mut self) -> Option<String> {
        let text = std::fs::read_to_string(self.path.as_deref()?).ok()?;
        self.kept.clone_from(&text);
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the file in which the draft can be edited, in a directory that exists.
    pub(super) fn for_editor(&self) -> Option<PathBuf> {
        let path = self.path.as_deref()?;
        made(path).ok()?;
        Some(path.with_extension("md"))
    }

    /// Returns true if the draft differs from what is kept.
    pub(super) fn is_old(&self, draft: &str) -> bool {
        self.kept != draft
    }

    /// Keeps a draft. A file that cannot be written costs only that.
    pub(super) fn keep(&mut self, draft: &str) {
        let Some(path) = self.path.as_deref() else {
            return;
        };
        self.kept = draft.to_owned();
        if draft.is_empty() {
            let _ = std::fs::remove_file(path);
            return;
        }
        let _ = made(path);
        // Beside it first: a draft is whole or the one before.
        let new = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        let written = options
            .open(&new)
            .and_then(|mut file| file.write_all(draft.as_bytes()));
        if written.is_ok() {
            let _ = std::fs::rename(&new, path);
        }
    }
}

/// Makes the directory of a file.
fn made(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory),
        None => Ok(()),
    }
}
