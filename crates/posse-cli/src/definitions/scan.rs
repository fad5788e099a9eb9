//! Finds files of definitions in a directory, within limits: a repository may contain anything.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::{Remark, Severity};

/// What to look for.
pub(super) struct ScanKind {
    /// Maximum depth of directories.
    depth: usize,
    /// Follow links to directories.
    links: bool,
    /// Selects files by name.
    wanted: fn(&Path) -> bool,
}

impl ScanKind {
    /// Files that each define something.
    pub(super) const FILES: Self = Self {
        depth: 8,
        links: false,
        wanted: is_markdown,
    };
    /// Directories that each define something. They are often links to where they are kept.
    pub(super) const FOLDERS: Self = Self {
        depth: 1,
        links: true,
        wanted: is_skill,
    };
    /// Files that each declare a team.
    pub(super) const TABLES: Self = Self {
        depth: 0,
        links: false,
        wanted: is_toml,
    };
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "toml")
}

fn is_markdown(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("md"))
}

fn is_skill(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "SKILL.md")
}

/// Maximum number of files and directories.
const MOST: usize = 1_000;
/// Maximum number of names read from a directory.
const NAMES: usize = 10_000;
/// Maximum size of a file in bytes.
const LONGEST: u64 = 256 * 1024;

/// Maximum size of all files of a kind in bytes, because all are kept in memory.
pub(super) const ALL: usize = 16 * 1024 * 1024;

/// Why a file cannot be used: the line, if known, and the reason.
type ReadFailure = (Option<usize>, String);

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Files with their texts, ordered by path.
    pub(super) files: Vec<(PathBuf, String)>,
    /// The directories that were read, and those of linked files.
    pub(super) directories: BTreeSet<PathBuf>,
    pub(super) remarks: Vec<Remark>,
}

/// Finds files in a directory and below. Links must not lead out of `bounds`. `left` is the
/// number of bytes that may still be read, of [`ALL`].
pub(super) fn scan(
    directory: &Path,
    bounds: Option<&Path>,
    look: &ScanKind,
    left: &mut usize,
) -> ScanResult {
    let (found, seen) = (ScanResult::default(), BTreeSet::new());
    let mut scan = Scanner {
        bounds,
        look,
        left,
        found,
        seen,
        full: false,
    };
    match directory.canonicalize() {
        Ok(real) if !beneath(&real, bounds) => {
            scan.remark(Severity::Error, directory, None, leads_out(bounds));
        }
        Ok(_) => scan.walk(directory, 0),
        Err(error) if is_absence(&error) => {}
        Err(error) => scan.remark(
            Severity::Error,
            directory,
            None,
            format!("cannot be read: {error}"),
        ),
    }
    scan.found
}

/// Reads a file, if it can be a definition.
pub(super) fn read(path: &Path, bounds: Option<&Path>) -> Result<String, ReadFailure> {
    let unread = |error: std::io::Error| (None, format!("cannot be read: {error}"));
    let real = path.canonicalize().map_err(unread)?;
    if !beneath(&real, bounds) {
        return Err((None, leads_out(bounds)));
    }
    let file = open(&real).map_err(|error| (None, error.to_string()))?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells that the file is too long.
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unread)?;
    if bytes.len() as u64 > LONGEST {
        return Err((None, "it is longer than 256 KiB".into()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        (Some(line), "it is not all UTF-8".into())
    })
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("it is not a file")]
    NotAFile,
    #[error("it is not text")]
    NotText,
    #[error("cannot be read: {0}")]
    Failed(#[from] std::io::Error),
}

/// Opens a regular file by its resolved path. A link that was put in the way since makes it fail.
pub(super) fn open(resolved: &Path) -> Result<fs::File, OpenError> {
    // NONBLOCK, because opening a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = rustix::fs::openat2(rustix::fs::CWD, resolved, flags, Mode::empty(), links)
        .map_err(std::io::Error::from)?;
    let file = fs::File::from(file);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(OpenError::NotAFile),
    }
}

/// Reads the first `most` bytes of a text file by its resolved path and one more, if there are
/// more. Returns the file's size as well.
pub(super) fn read_start(resolved: &Path, most: usize) -> Result<(String, u64), OpenError> {
    let file = open(resolved)?;
    let size = file.metadata()?.len();
    let mut start = Vec::new();
    // One byte more tells that it has to be cut.
    file.take(most as u64 + 1).read_to_end(&mut start)?;
    match start.contains(&0) {
        true => Err(OpenError::NotText),
        false => Ok((String::from_utf8_lossy(&start).into_owned(), size)),
    }
}

/// Returns the line with the name.
pub(super) fn line_of_name(text: &str) -> usize {
    line_of(text, "name")
}

/// Returns the line of a field in the front matter; 1 if it is not found.
pub(super) fn line_of(text: &str, field: &str) -> usize {
    let says = |line: &str| {
        let line = line.trim_start_matches(['"', '\'']);
        line.strip_prefix(field)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
    };
    text.lines().position(says).map_or(1, |at| at + 1)
}

/// The state of a scan.
struct Scanner<'a> {
    bounds: Option<&'a Path>,
    look: &'a ScanKind,
    left: &'a mut usize,
    found: ScanResult,
    /// Real paths of files: a link to one that was read is skipped.
    seen: BTreeSet<PathBuf>,
    /// A limit was reached.
    full: bool,
}

impl Scanner<'_> {
    fn remark(&mut self, weight: Severity, path: &Path, line: Option<usize>, reason: String) {
        self.found.remarks.push(Remark {
            weight,
            path: path.to_owned(),
            line,
            reason,
        });
    }

    fn walk(&mut self, directory: &Path, depth: usize) {
        let (names, more) = match names(directory) {
            Ok(found) => found,
            Err(error) => {
                return self.remark(
                    Severity::Error,
                    directory,
                    None,
                    format!("cannot be read: {error}"),
                );
            }
        };
        self.found.directories.insert(directory.to_owned());
        if more {
            let reason = format!("only part of it is read: it has more than {NAMES} entries");
            self.remark(Severity::Error, directory, None, reason);
        }
        for path in names {
            let is_link = path.is_symlink();
            if path.is_dir() {
                self.enter(&path, is_link, depth + 1);
            } else if (self.look.wanted)(&path) {
                self.take(&path, is_link);
            }
            if self.full {
                return;
            }
        }
    }

    fn enter(&mut self, path: &Path, is_link: bool, depth: usize) {
        if is_link && !self.look.links {
            // A link could lead in a circle, or to a huge directory.
            return self.remark(
                Severity::Warning,
                path,
                None,
                "links to directories are not followed".into(),
            );
        }
        if is_link
            && !path
                .canonicalize()
                .is_ok_and(|real| beneath(&real, self.bounds))
        {
            return self.remark(Severity::Error, path, None, leads_out(self.bounds));
        }
        if depth > self.look.depth {
            if self.look.links {
                // Subdirectories of a skill are its own.
                return;
            }
            if self.look.depth == 0 {
                let reason = "not read: only files directly in the directory are used";
                return self.remark(Severity::Note, path, None, reason.into());
            }
            let reason = format!(
                "not read: it is deeper than {} directories",
                self.look.depth
            );
            return self.remark(Severity::Error, path, None, reason);
        }
        if self.room(path) {
            self.walk(path, depth);
        }
    }

    fn take(&mut self, path: &Path, is_link: bool) {
        if !self.room(path) {
            return;
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !self.seen.insert(real.clone()) {
            return;
        }
        match read(path, self.bounds) {
            Ok(text) if text.len() > *self.left => {
                (*self.left, self.full) = (0, true);
                let reason =
                    "not used, nor any that follow: all files together are larger than 16 MiB";
                self.remark(Severity::Error, path, None, reason.into());
            }
            Ok(text) => {
                *self.left -= text.len();
                let parent = real.parent().filter(|_| is_link);
                self.found.directories.extend(parent.map(Path::to_owned));
                self.found.files.push((path.to_owned(), text));
            }
            Err((line, reason)) => self.remark(Severity::Error, path, line, reason),
        }
    }

    /// Returns true if one more file or directory may be read.
    fn room(&mut self, path: &Path) -> bool {
        self.full = self.seen.len() + self.found.directories.len() > MOST;
        if self.full {
            let reason = format!("not read, nor any that follow: there are more than {MOST} files");
            self.remark(Severity::Error, path, None, reason);
        }
        !self.full
    }
}

/// Returns the entries of a directory by name, and true if there are more. Hidden ones belong to
/// programs, not to people.
fn names(directory: &Path) -> std::io::Result<(Vec<PathBuf>, bool)> {
    let mut names = Vec::new();
    let mut entries = fs::read_dir(directory)?;
    for entry in entries.by_ref().take(NAMES) {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            names.push(entry.path());
        }
    }
    names.sort_unstable();
    Ok((names, entries.next().is_some()))
}

/// Returns true if a resolved path is inside `bounds`.
fn beneath(real: &Path, bounds: Option<&Path>) -> bool {
    bounds.is_none_or(|bounds| {
        bounds
            .canonicalize()
            .is_ok_and(|bounds| real.starts_with(bounds))
    })
}

fn leads_out(bounds: Option<&Path>) -> String {
    let bounds = bounds
        .map(|bounds| bounds.display().to_string())
        .unwrap_or_default();
    format!("it is a link to a place outside {bounds}")
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
    )
}
