//! What git knows of a worktree: the directory `worktrees/<name>` in the repository. The lock and
//! our marker are files in it, which are written and removed here; the rest is git's.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use posse_port::worktree::Worktree;
use posse_protocol::AgentId;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A registration, which may be there or not. Its name is the agent's id.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    /// Its directory: the worktree's own git directory.
    pub(super) directory: PathBuf,
    agent: AgentId,
}

/// Who has locked a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    Nobody,
    Host(Uuid),
    /// Somebody who is not posse, and why.
    Stranger(String),
}

/// Written when a worktree is handed out. As long as it is not there, nobody has worked in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) agent: AgentId,
    pub(super) worktree: Worktree,
}

impl Marker {
    /// Returns true if it says what we would have written: git is told it word by word.
    fn is_sound(&self) -> bool {
        let Worktree {
            branch,
            base,
            carried,
            ..
        } = &self.worktree;
        let named = *branch == super::branch_of(self.agent);
        named && is_object(base) && carried.as_deref().is_none_or(is_object)
    }
}

/// Returns true if it is the name of an object, and nothing that git could take for an option.
pub(super) fn is_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// No file of these is longer.
const MOST: u64 = 64 << 10;

/// Reads a file that whoever can write in the repository could have put there. What is none, or too
/// long, is an error: nobody waits for a pipe, or for what has no end.
pub(super) fn read_small(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        Err(io::Error::other("it is too long"))
    } else {
        Ok(content)
    }
}

/// Whether there is a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    No,
    Yes(Box<Marker>),
    /// It is there and cannot be read.
    Damaged,
}

impl Registration {
    pub(super) fn of(common: &Path, agent: AgentId) -> Self {
        Self {
            directory: common.join("worktrees").join(agent.to_string()),
            agent,
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.directory.symlink_metadata().is_ok()
    }

    /// Returns true if it is that of the worktree at `path`, which may be gone.
    pub(super) fn leads_to(&self, path: &Path) -> bool {
        self.place().is_some_and(|told| told == path.join(".git"))
    }

    /// Returns true if it is that of a worktree somewhere else. One that git has only begun to
    /// write leads nowhere.
    pub(super) fn leads_elsewhere(&self, path: &Path) -> bool {
        self.place().is_some_and(|told| told != path.join(".git"))
    }

    /// Returns the `.git` of the worktree that it is of.
    fn place(&self) -> Option<PathBuf> {
        led(&self.directory.join("gitdir"), "", &self.directory)
    }

    /// Returns true if the worktree at `path` knows that it is its.
    pub(super) fn is_known_at(&self, path: &Path) -> bool {
        led(&path.join(".git"), "gitdir: ", path).is_some_and(|told| told == self.directory)
    }

    pub(super) fn lock(&self) -> Lock {
        match read_small(&self.directory.join("locked"), MOST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Lock::Nobody,
            Err(error) => Lock::Stranger(error.to_string()),
            Ok(reason) => {
                let reason = String::from_utf8_lossy(&reason);
                let host = reason
                    .trim_end()
                    .strip_prefix(&format!("posse: agent {}, host ", self.agent));
                match host.and_then(|host| host.parse().ok()) {
                    Some(host) => Lock::Host(host),
                    None => Lock::Stranger(reason.trim_end().to_owned()),
                }
            }
        }
    }

    /// Returns why it is locked while `host` has it.
    pub(super) fn reason(&self, host: Uuid) -> String {
        format!("posse: agent {}, host {host}", self.agent)
    }

    /// Locks it for `host`, whoever had it.
    pub(super) fn set_lock(&self, host: Uuid) -> io::Result<()> {
        put(&self.directory.join("locked"), self.reason(host).as_bytes())
    }

    pub(super) fn unlock(&self) -> io::Result<()> {
        gone_is_fine(fs::remove_file(self.directory.join("locked")))
    }

    pub(super) fn marked(&self) -> Marked {
        match read_small(&self.directory.join("posse"), MOST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Marked::No,
            Err(_) => Marked::Damaged,
            // After a power cut it may be empty. It was there, and that counts.
            Ok(text) => match serde_json::from_slice::<Box<Marker>>(&text) {
                Ok(marker) if marker.is_sound() => Marked::Yes(marker),
                _ => Marked::Damaged,
            },
        }
    }

    /// Says that this worktree is handed out.
    pub(super) fn mark(&self, worktree: &Worktree) -> io::Result<()> {
        let marker = Marker {
            agent: self.agent,
            worktree: worktree.clone(),
        };
        put(&self.directory.join("posse"), &serde_json::to_vec(&marker)?)
    }

    /// Removes it. What git has begun to remove is removed as well.
    pub(super) fn remove(&self) -> io::Result<()> {
        gone_is_fine(fs::remove_dir_all(&self.directory))
    }
}

/// Returns where a file of git's leads, which says so in one line.
fn led(file: &Path, prefix: &str, from: &Path) -> Option<PathBuf> {
    let text = read_small(file, MOST).ok()?;
    let text = text.strip_prefix(prefix.as_bytes())?;
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    let told = Path::new(std::ffi::OsStr::from_bytes(text));
    if told.is_absolute() {
        return Some(told.to_owned());
    }
    // Git can write it from where the file lies.
    let told = from.join(told);
    let directory = told.parent()?.canonicalize().ok()?;
    Some(directory.join(told.file_name()?))
}

/// Puts a small file there, whole or not at all.
pub(super) fn put(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", Uuid::now_v7()));
    let new = file.with_file_name(name);
    let written = fs::write(&new, content).and_then(|()| fs::rename(&new, file));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// What is not there need not be removed.
pub(super) fn gone_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
