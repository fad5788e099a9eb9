//! Fingerprints of files, which an attacker cannot match with other content.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::FileKind;

/// Maximum number of files in a skill's directory.
const MOST_FILES: usize = 1_000;
/// Maximum size of all files in a skill's directory in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Maximum depth of a skill's directory.
const DEPTH: usize = 8;

/// The SHA-256 of a file's use and content, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Fingerprint(String);

/// Why a text is not a fingerprint.
#[derive(Debug, thiserror::Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub(crate) struct NotAFingerprint;

impl TryFrom<String> for Fingerprint {
    type Error = NotAFingerprint;

    fn try_from(text: String) -> Result<Self, NotAFingerprint> {
        let is_digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        match text.len() == 64 && text.bytes().all(is_digit) {
            true => Ok(Self(text)),
            false => Err(NotAFingerprint),
        }
    }
}

impl From<Fingerprint> for String {
    fn from(Fingerprint(text): Fingerprint) -> Self {
        text
    }
}

impl Fingerprint {
    /// Returns the fingerprint of a text that is used as a file of this kind.
    pub(crate) fn of(kind: FileKind, text: &str) -> Self {
        let mut hasher = start(kind);
        hasher.update(text.as_bytes());
        Self::end(hasher)
    }

    /// Returns the fingerprint of a skill with all files beside it, because its text can have them
    /// run. None if there are too many, or if one cannot be read.
    pub(crate) fn of_skill(text: &str, directory: &Path) -> Option<Self> {
        let mut tree = Tree {
            hasher: start(FileKind::Skill),
            files: 0,
            bytes: 0,
        };
        tree.hasher.update(text.as_bytes());
        tree.add_directory(directory, 0).ok()?;
        Some(Self::end(tree.hasher))
    }

    fn end(hasher: Sha256) -> Self {
        let digits = hasher.finalize();
        Self(digits.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn start(kind: FileKind) -> Sha256 {
    let mut hasher = Sha256::new();
    hasher.update(kind.name(1).as_bytes());
    hasher.update([0]);
    hasher
}

/// A directory whose fingerprint is being taken.
struct Tree {
    hasher: Sha256,
    files: usize,
    bytes: u64,
}

impl Tree {
    fn add_directory(&mut self, directory: &Path, depth: usize) -> io::Result<()> {
        let mut entries = fs::read_dir(directory)?
            .take(MOST_FILES + 1)
            .collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            self.files += 1;
            if self.files > MOST_FILES || depth > DEPTH {
                return Err(io::Error::other("too many files"));
            }
            let (name, path, kind) = (entry.file_name(), entry.path(), entry.file_type()?);
            self.add(b"name", name.as_bytes());
            if kind.is_dir() {
                self.add_directory(&path, depth + 1)?;
                self.add(b"end", b"");
            } else if kind.is_symlink() {
                let target = fs::read_link(&path)?;
                self.add(b"link", target.as_os_str().as_bytes());
            } else if kind.is_file() {
                let content = self.read(&path)?;
                self.add(b"file", &content);
            }
        }
        Ok(())
    }

    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Another process could have put a pipe or a link there since.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let file = fs::File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let mut content = Vec::new();
        let left = MOST_BYTES - self.bytes;
        file.take(left + 1).read_to_end(&mut content)?;
        self.bytes += content.len() as u64;
        match self.bytes > MOST_BYTES {
            true => Err(io::Error::other("too many bytes")),
            false => Ok(content),
        }
    }

    /// Adds a part with its length, so that no two directories have the same bytes.
    fn add(&mut self, label: &[u8], bytes: &[u8]) {
        self.hasher.update(label);
        self.hasher.update((bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }
}
