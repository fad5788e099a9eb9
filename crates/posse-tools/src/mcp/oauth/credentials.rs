//! What is kept of a sign-in: a file for each server, which only its owner can read, and a lock for
//! whoever changes it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_port::clock::Clock;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::client::OAuthClient;
use super::secret::Secret;

/// How often a lock is tried.
const TRY: Duration = Duration::from_millis(25);
/// How long it may take to have a lock: somebody else may refresh.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is kept of a sign-in to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Credentials {
    /// The server's address.
    pub(super) url: String,
    /// Who has given the tokens.
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    /// What the server is called there.
    pub(super) resource: String,
    pub(super) client: OAuthClient,
    pub(super) access_token: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<Secret>,
    /// When the token ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ends: Option<u64>,
    /// What it permits.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// What the server wanted to be permitted besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted: Vec<String>,
}

/// The directory of credentials.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct CredentialFiles(PathBuf);

impl CredentialFiles {
    /// Returns the files of a directory, which need not be there.
    pub(in crate::mcp) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Returns the file for a server.
    pub(super) fn file(&self, url: &str) -> CredentialFile {
        let hash = Sha256::digest(url.as_bytes());
        let name: String = hash.iter().take(16).map(|it| format!("{it:02x}")).collect();
        CredentialFile(self.0.join(name + ".json"))
    }
}

/// What tells a version of a file from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    inode: u64,
    changed: (i64, i64),
}

/// The file for a server.
#[derive(Clone, Debug)]
pub(super) struct CredentialFile(PathBuf);

impl CredentialFile {
    /// Returns which version is there; none if there is no file.
    pub(super) fn version(&self) -> Option<FileVersion> {
        let about = fs::metadata(&self.0).ok()?;
        Some(FileVersion {
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    /// Reads it. What others can read is not believed.
    pub(super) fn read(&self) -> Option<Credentials> {
        let is_private = fs::metadata(&self.0).ok()?.mode() & 0o077 == 0;
        let text = is_private.then(|| fs::read_to_string(&self.0).ok())??;
        serde_json::from_str(&text).ok()
    }

    /// Replaces it. After a crash it is the old or the new one.
    pub(super) fn write(
        &self,
        credentials: &Credentials,
        _lock: &CredentialLock,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(credentials)?;
        let new = self.0.with_extension("new");
        // Left by somebody who has had the lock before.
        let _ = fs::remove_file(&new);
        let written = write_new(&new, &text).and_then(|()| fs::rename(&new, &self.0));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Removes it. Returns false if it is not there.
    pub(super) fn remove(&self, _lock: &CredentialLock) -> io::Result<bool> {
        match fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until nobody else on this machine changes it.
    pub(super) async fn lock(&self, clock: &dyn Clock) -> io::Result<CredentialLock> {
        let file = open_lock(&self.0.with_extension("lock"))?;
        let begun = clock.now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(CredentialLock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if clock.now() >= begun + PATIENCE => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(TryLockError::WouldBlock) => clock.sleep(TRY).await,
            }
        }
    }
}

/// Keeps others from changing a file. It ends with the process, too.
pub(super) struct CredentialLock {
    _file: File,
}

fn open_lock(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)?;
    file.sync_all()
}
