//! The record of trusted workspaces, `trust.toml` in posse's home.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::workspace::{WorkspaceKey, can_be_kept};
use crate::config::replace::{Durability, FileMode, replace};

/// Name of the file.
const NAME: &str = "trust.toml";
/// Maximum size of the file in bytes.
const MOST: u64 = 64 << 20;
/// The form of the file.
const VERSION: u32 = 1;

/// The files of a workspace that the person has accepted, by their paths in it.
pub(crate) type SeenFiles = BTreeMap<String, Fingerprint>;

/// All trusted workspaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustFile {
    version: u32,
    #[serde(default, rename = "workspace", skip_serializing_if = "Vec::is_empty")]
    pub(crate) workspaces: Vec<TrustedWorkspace>,
}

/// A trusted workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustedWorkspace {
    pub(crate) path: PathBuf,
    /// Numbers of the file system and the directory, as text: TOML has no numbers of this size.
    #[serde(with = "number")]
    device: u64,
    #[serde(with = "number")]
    inode: u64,
    /// When the person accepted its files.
    pub(crate) since: String,
    #[serde(default)]
    pub(crate) files: SeenFiles,
}

/// Why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not used: {why}", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{} cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("trust in {} is not kept: it would hold for everything below", .0.display())]
    NeverKept(PathBuf),
    #[error("there is no home directory to keep trust in")]
    NoHome,
    #[error("trust in {} cannot be kept: its path is not UTF-8", .0.display())]
    NotText(PathBuf),
}

impl Default for TrustFile {
    fn default() -> Self {
        Self {
            version: VERSION,
            workspaces: Vec::new(),
        }
    }
}

impl TrustFile {
    /// Reads the record in posse's home. One that others could have written is refused as a whole,
    /// and so is one with an entry that posse would not write.
    pub(crate) fn read(posse_home: &Path, home: Option<&Path>) -> Result<Self, RecordError> {
        let path = posse_home.join(NAME);
        let unreadable = |source| RecordError::Unreadable {
            path: path.clone(),
            source,
        };
        let refused = |why: String| RecordError::Refused {
            path: path.clone(),
            why,
        };
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(error)),
        };
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            return Err(refused("it is not a file".into()));
        }
        if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0 {
            return Err(refused("others can write it".into()));
        }
        let mut text = String::new();
        file.take(MOST + 1)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        if text.len() as u64 > MOST {
            return Err(refused("it is too long".into()));
        }
        let record: Self = toml::from_str(&text)
            .map_err(|error| refused(error.message().lines().collect::<Vec<_>>().join("; ")))?;
        match record.fault(home) {
            Some(why) => Err(refused(why)),
            None => Ok(record),
        }
    }

    /// Returns what posse would not have written; none if it could have.
    fn fault(&self, home: Option<&Path>) -> Option<String> {
        if self.version != VERSION {
            return Some(format!("its version is {}, not {VERSION}", self.version));
        }
        self.workspaces.iter().find_map(|workspace| {
            let path = &workspace.path;
            let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
            if !path.is_absolute() || !path.components().all(is_plain) {
                return Some(format!("`{}` is not a whole path", path.display()));
            }
            (!can_be_kept(path, home)).then(|| format!("`{}` can never be trusted", path.display()))
        })
    }

    /// Returns the accepted files of a workspace. None if it is not trusted, or if another
    /// directory has replaced it.
    pub(super) fn files_of(&self, key: &WorkspaceKey) -> Option<&SeenFiles> {
        let found = self.workspaces.iter().find(|it| it.path == key.path);
        found
            .filter(|it| (it.device, it.inode) == (key.device, key.inode))
            .map(|it| &it.files)
    }

    /// Returns true if a directory of this path was trusted, and another one has replaced it.
    pub(crate) fn was_replaced(&self, key: &WorkspaceKey) -> bool {
        let is_listed = self.workspaces.iter().any(|it| it.path == key.path);
        is_listed && self.files_of(key).is_none()
    }

    /// Writes the record that `change` makes of the present one, while no other process does.
    fn rewrite(
        posse_home: &Path,
        home: Option<&Path>,
        change: impl FnOnce(&mut Self) -> bool,
    ) -> Result<bool, RecordError> {
        let path = posse_home.join(NAME);
        let unwritable = |source| RecordError::Unwritable {
            path: path.clone(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(posse_home)
            .map_err(unwritable)?;
        let lock = File::open(posse_home).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        let mut record = Self::read(posse_home, home)?;
        if !change(&mut record) {
            return Ok(false);
        }
        let text = toml::to_string(&record).map_err(|error| unwritable(io::Error::other(error)))?;
        replace(&path, &text, FileMode::Private, Durability::Synced).map_err(unwritable)?;
        Ok(true)
    }

    /// Keeps that the person trusts a workspace with these files, instead of what was kept before.
    pub(crate) fn keep(
        posse_home: &Path,
        home: Option<&Path>,
        key: &WorkspaceKey,
        files: SeenFiles,
    ) -> Result<(), RecordError> {
        if key.path.to_str().is_none() {
            return Err(RecordError::NotText(key.path.clone()));
        }
        if !can_be_kept(&key.path, home) {
            return Err(RecordError::NeverKept(key.path.clone()));
        }
        let new = TrustedWorkspace {
            path: key.path.clone(),
            device: key.device,
            inode: key.inode,
            since: now(),
            files,
        };
        Self::rewrite(posse_home, home, |record| {
            record.workspaces.retain(|it| it.path != new.path);
            record.workspaces.push(new);
            record
                .workspaces
                .sort_by(|one, other| one.path.cmp(&other.path));
            true
        })?;
        Ok(())
    }

    /// Adds an accepted file to a workspace that is trusted already.
    pub(super) fn add(
        posse_home: &Path,
        home: Option<&Path>,
        path: &Path,
        (name, print): (&str, &Fingerprint),
    ) -> Result<(), RecordError> {
        Self::rewrite(posse_home, home, |record| {
            let found = record.workspaces.iter_mut().find(|it| it.path == path);
            let added = found.map(|it| it.files.insert(name.to_owned(), print.clone()));
            added.is_some()
        })?;
        Ok(())
    }

    /// Forgets that a workspace is trusted. Returns false if it was not.
    pub(crate) fn forget(
        posse_home: &Path,
        home: Option<&Path>,
        path: &Path,
    ) -> Result<bool, RecordError> {
        Self::rewrite(posse_home, home, |record| {
            let before = record.workspaces.len();
            record.workspaces.retain(|it| it.path != path);
            record.workspaces.len() < before
        })
    }
}

/// Returns the time to the second.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Numbers as text.
mod number {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}
