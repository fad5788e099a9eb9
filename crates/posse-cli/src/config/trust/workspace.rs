//! Which directory trust is about. Only names in directories are looked at: no file of a workspace
//! is read.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use posse_protocol::AgentId;

/// A workspace: its directory, and what tells it from another one that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkspaceKey {
    /// Its path, resolved.
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl WorkspaceKey {
    /// Returns the workspace around a directory: the nearest one upwards that has an entry `.git`,
    /// else the directory itself. None if it does not exist.
    pub(crate) fn around(directory: &Path) -> Option<Self> {
        let directory = directory.canonicalize().ok()?;
        let path = root(&directory).to_owned();
        let about = std::fs::metadata(&path).ok()?;
        Some(Self {
            path,
            device: about.dev(),
            inode: about.ino(),
        })
    }
}

/// Returns the nearest directory upwards that has an entry `.git`, else the directory itself.
pub(crate) fn root(directory: &Path) -> &Path {
    let mut above = directory.ancestors();
    above.find(|it| has_git(it)).unwrap_or(directory)
}

/// Returns true if a directory has an entry `.git`.
pub(crate) fn has_git(directory: &Path) -> bool {
    directory.join(".git").symlink_metadata().is_ok()
}

/// Returns true if trust in this directory can be kept. That in `/`, in the home directory and in
/// those above it would hold for everything that is ever put there.
pub(crate) fn can_be_kept(path: &Path, home: Option<&Path>) -> bool {
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    path.parent().is_some() && !home.is_some_and(|home| home.starts_with(path))
}

/// Returns the directory of the repository that a worktree of posse's own was made from, as noted
/// in posse's home. None if posse has not made it.
pub(super) fn origin(posse_home: &Path, worktree: &Path) -> Option<PathBuf> {
    let all = posse_home.join("worktrees").canonicalize().ok()?;
    let directory = worktree.parent()?;
    let name = worktree.file_name()?.to_str()?;
    name.parse::<AgentId>().ok()?;
    if directory.parent() != Some(&all) {
        return None;
    }
    let noted = std::fs::read(directory.join(".repository")).ok()?;
    let git = PathBuf::from(OsString::from_vec(noted));
    match git.file_name() {
        Some(name) if name == ".git" => git.parent().map(Path::to_owned),
        _ => None,
    }
}
