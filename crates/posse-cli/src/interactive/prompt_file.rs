//! Prompts of a directory, kept for later sessions in posse's home.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::config::environment::posse_home;
use crate::config::replace::{Durability, FileMode, replace};

/// Number of prompts that are read.
const MOST: usize = 1000;
/// Size of a file after which its older half is removed, in bytes.
const LARGEST: u64 = 4 << 20;

/// The file with the prompts of a directory; a JSON string in each line.
pub(super) struct PromptFile(Option<PathBuf>);

impl PromptFile {
    /// Returns the file of a directory.
    pub(super) fn of(directory: &Path) -> Self {
        let file = format!("{}.jsonl", directory_name(directory));
        Self(posse_home().map(|home| home.join("prompts").join(file)))
    }

    /// Returns the prompts, oldest first. Lines that cannot be read are skipped.
    pub(super) fn read(&self) -> Vec<String> {
        let text = self
            .0
            .as_deref()
            .and_then(|path| std::fs::read_to_string(path).ok());
        let text = text.unwrap_or_default();
        let mut prompts: Vec<String> = text
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str(line).ok())
            .take(MOST)
            .collect();
        prompts.reverse();
        prompts
    }

    /// Adds a prompt. A file that cannot be written costs only the memory of it.
    pub(super) fn add(&self, prompt: &str) {
        let Some(path) = self.0.as_deref() else {
            return;
        };
        let _ = self.try_add(path, prompt);
    }

    fn try_add(&self, path: &Path, prompt: &str) -> std::io::Result<()> {
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
        }
        if std::fs::metadata(path).is_ok_and(|about| about.len() > LARGEST) {
            let kept = self.read();
            let lines = kept.iter().skip(kept.len() / 2).map(|prompt| line(prompt));
            let lines: String = lines.collect();
            replace(path, &lines, FileMode::Private, Durability::Unsynced)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        options.open(path)?.write_all(line(prompt).as_bytes())
    }
}

/// Returns the name of a directory's files.
pub(super) fn directory_name(directory: &Path) -> String {
    let name = directory.as_os_str().as_encoded_bytes();
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(name))
}

fn line(prompt: &str) -> String {
    format!("{}\n", serde_json::Value::from(prompt))
}
