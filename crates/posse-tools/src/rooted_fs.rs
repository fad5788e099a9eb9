//! Paths that file tools are given, and the one way to what they name: a handle of the root and
//! `openat2`, which follows no link. What is swapped between the look and the open makes the open
//! fail; it never leads outside.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use posse_port::tool::{Subject, ToolContext, ToolError, Workspace};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::answer::{cannot, tell};

/// What a path is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The spill directory may be read, too.
    Read,
    /// The roots and the agent's notes only.
    Write,
}

/// A path that lies beneath a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootedPath {
    /// What was asked for: absolute, without `.` and `..`.
    pub(crate) named: PathBuf,
    /// What it leads to, through all links.
    pub(crate) resolved: PathBuf,
    root: PathBuf,
}

impl RootedPath {
    /// Where `path` leads, if that is still what was judged: a link may have been put in its way
    /// since.
    pub(crate) fn judged(
        path: &str,
        access: Access,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        let place = Self::find(path, access, &context.workspace)?;
        let subject = match access {
            Access::Read => Subject::Reads(place.paths()),
            Access::Write => Subject::Edits(place.paths()),
        };
        if subject == context.subject {
            return Ok(place);
        }
        Err(cannot(
            "use",
            &place.named,
            "its target changed after this call was checked; call again",
        ))
    }

    /// Looks at where `path` leads and refuses what is not beneath a root.
    pub(crate) fn find(
        path: &str,
        access: Access,
        workspace: &Workspace,
    ) -> Result<Self, ToolError> {
        if path.is_empty() {
            return Err(tell("the path is empty"));
        }
        if path.contains('\0') {
            return Err(tell("a path cannot contain a NUL character"));
        }
        let named = normalise(&absolute(path, workspace)?);
        let roots = roots(access, workspace);
        let resolved = match resolve(&named) {
            Ok(resolved) => resolved,
            // What is outside is not described either.
            Err(_) if !roots.iter().any(|root| named.starts_with(root)) => {
                return Err(outside(&named, &roots));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(cannot("follow", &named, "it is a broken link"));
            }
            Err(error) => return Err(cannot("find", &named, error)),
        };
        let within = roots.iter().filter(|root| resolved.starts_with(root));
        let root = within.max_by_key(|root| root.components().count());
        match root {
            Some(root) => Ok(Self {
                root: (*root).to_owned(),
                named,
                resolved,
            }),
            None => Err(outside(&named, &roots)),
        }
    }

    /// Returns the paths that rules are asked about.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.named.clone()];
        if self.resolved != self.named {
            paths.push(self.resolved.clone());
        }
        paths
    }

    /// Returns a handle of its root.
    pub(crate) fn root(&self) -> Result<Root, ToolError> {
        Root::open(&self.root).map_err(|error| refused("open", &self.root, error))
    }

    /// Opens the regular file that it names; `None` if nothing is there.
    pub(crate) fn open(&self) -> Result<Option<(File, Stat)>, ToolError> {
        match self.root()?.open_file(&self.resolved) {
            Ok((file, stat)) => regular(&self.named, &stat).map(|()| Some((file, stat))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused("open", &self.named, error)),
        }
    }

    /// Returns a handle of the directory it lies in, and its name there. Missing directories are
    /// made.
    pub(crate) fn parent(&self) -> Result<(OwnedFd, &OsStr), ToolError> {
        let is_directory = || cannot("write", &self.named, "it is a directory");
        let name = self.resolved.file_name().ok_or_else(is_directory)?;
        let within = self
            .resolved
            .strip_prefix(&self.root)
            .ok()
            .and_then(Path::parent);
        let within = within.ok_or_else(is_directory)?;
        let root = self.root()?;
        let made = root.directory(within);
        made.map(|directory| (directory, name))
            .map_err(|error| refused("write", &self.named, error))
    }
}

/// A root directory, held open.
pub(crate) struct Root {
    path: PathBuf,
    handle: OwnedFd,
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A root was resolved when it became one: a link in its path was put there since.
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let handle = rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve)?;
        Ok(Self {
            path: path.to_owned(),
            handle,
        })
    }

    /// Opens a file for reading. A pipe does not make it wait; the caller looks at what it got.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<(File, Stat)> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open_beneath(&self.handle, self.within(path)?, flags)?;
        let stat = rustix::fs::fstat(&file)?;
        Ok((File::from(file), stat))
    }

    /// Returns what is there, without opening it.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(open_beneath(
            &self.handle,
            self.within(path)?,
            OFlags::PATH,
        )?)?)
    }

    fn within<'a>(&self, path: &'a Path) -> io::Result<&'a Path> {
        let within = path
            .strip_prefix(&self.path)
            .map_err(|_| io::ErrorKind::PermissionDenied)?;
        Ok(if within.as_os_str().is_empty() {
            Path::new(".")
        } else {
            within
        })
    }

    /// Opens a directory beneath the root, step by step, making what is missing.
    fn directory(&self, within: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut at = open_beneath(&self.handle, Path::new("."), flags)?;
        for step in within.components() {
            let step = Path::new(step.as_os_str());
            at = match open_beneath(&at, step, flags) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match rustix::fs::mkdirat(&at, step, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => open_beneath(&at, step, flags)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(at)
    }
}

/// Opens what lies beneath `handle`, following no link on the way nor at the end.
pub(crate) fn open_beneath(handle: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(
        handle,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

/// Refuses what is not a regular file.
pub(crate) fn regular(path: &Path, stat: &Stat) -> Result<(), ToolError> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "not a regular file",
    };
    Err(cannot("open", path, format!("it is {kind}")))
}

/// Returns an error of opening. All links were resolved before and all steps were directories: what
/// is not so any more was put there since.
pub(crate) fn refused(what: &str, path: &Path, error: io::Error) -> ToolError {
    match Errno::from_io_error(&error) {
        Some(Errno::LOOP | Errno::XDEV | Errno::NOTDIR) => {
            cannot(what, path, "part of the path was replaced in the meantime")
        }
        _ => cannot(what, path, error),
    }
}

fn absolute(path: &str, workspace: &Workspace) -> Result<PathBuf, ToolError> {
    let in_home = if path == "~" {
        Some("")
    } else {
        path.strip_prefix("~/")
    };
    match (in_home, &workspace.home) {
        (Some(rest), Some(home)) => Ok(home.join(rest.trim_start_matches('/'))),
        (Some(_), None) => Err(tell("the home directory is unknown; give the path from /")),
        (None, _) => Ok(workspace.cwd.join(path)),
    }
}

/// Takes `.` and `..` out, by the letter: `link/..` is where the link stands.
fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(name) => normal.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Follows all links of what exists; the rest is appended as it is.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut absent: Vec<OsString> = Vec::new();
    let mut at = path;
    loop {
        match fs::symlink_metadata(at) {
            Ok(_) => {
                let mut real = fs::canonicalize(at)?;
                real.extend(absent.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match (at.parent(), at.file_name()) {
                    (Some(parent), Some(name)) => {
                        absent.push(name.to_owned());
                        at = parent;
                    }
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn roots(access: Access, workspace: &Workspace) -> Vec<&Path> {
    let spill = (access == Access::Read).then_some(&workspace.spill);
    workspace
        .reach()
        .chain(spill.map(PathBuf::as_path))
        .collect()
}

fn outside(path: &Path, roots: &[&Path]) -> ToolError {
    let roots: Vec<_> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    cannot(
        "reach",
        path,
        format!(
            "it is outside the allowed directories: {}; the user can add one (--add-dir)",
            roots.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_taken_out_by_the_letter() {
        for (path, normal) in [
            ("/a/./b", "/a/b"),
            ("/a/../b", "/b"),
            ("/../../x", "/x"),
            ("/a//b/", "/a/b"),
            ("/", "/"),
        ] {
            assert_eq!(normalise(Path::new(path)), Path::new(normal), "{path}");
        }
    }
}
