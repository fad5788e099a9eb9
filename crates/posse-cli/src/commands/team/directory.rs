//! A directory with a team's files, read with suspicion and written with care.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::Context;
use rustix::fs::OFlags;

use super::archive::{ArchiveFiles, CONFIG, PreviousExport, previous, unfinished};
use crate::config::replace::{Durability, FileMode, replace};
use crate::error::Advised;

/// Maximum size of a file that is read.
const LARGEST: u64 = 64 << 20;
/// Maximum size of all files that are read.
const MOST: usize = 512 << 20;
/// Subdirectories, and the extensions of their files.
const PLACES: [(&str, &str); 3] = [("inboxes", "json"), ("tasks", "json"), ("notes", "md")];

/// Reads all files of a team in `directory`.
pub(super) fn read(directory: &Path) -> anyhow::Result<ArchiveFiles> {
    if !directory.is_dir() {
        let what = if directory.exists() {
            "is not a directory"
        } else {
            "does not exist"
        };
        anyhow::bail!(Advised {
            what: format!("{} {what}", directory.display()),
            advice: "name a directory that `posse team export` wrote, or one with a config.json"
                .into(),
        });
    }
    let mut files = ArchiveFiles::new();
    let mut size = 0;
    let mut take = |name: String| -> anyhow::Result<()> {
        let text =
            read_file(&directory.join(&name)).map_err(|error| refused(directory, &name, &error))?;
        size += text.len();
        if size > MOST {
            anyhow::bail!(
                "the files of {} are more than {} MiB",
                directory.display(),
                MOST >> 20
            );
        }
        files.insert(name, text);
        Ok(())
    };
    take(CONFIG.to_owned())?;
    for (place, ending) in PLACES {
        for name in names(&directory.join(place))? {
            if Path::new(&name).extension() == Some(OsStr::new(ending)) {
                take(format!("{place}/{name}"))?;
            }
        }
    }
    Ok(files)
}

fn refused(directory: &Path, name: &str, error: &io::Error) -> Advised {
    let path = directory.join(name);
    match error.kind() {
        io::ErrorKind::NotFound => Advised {
            what: format!("{} does not exist", path.display()),
            advice: "an exported team has one; name the directory that contains it".into(),
        },
        _ => Advised {
            what: format!("cannot read {}: {error}", path.display()),
            advice: "nothing was imported; fix the file, or remove it".into(),
        },
    }
}

/// Returns the names in a directory; none if it does not exist. Links are not followed.
fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => {
            let found = found.with_context(|| format!("cannot read {}", directory.display()))?;
            if !found.is_dir() {
                anyhow::bail!(Advised {
                    what: format!("{} is not a directory", directory.display()),
                    advice: "links are not followed; put the files themselves there".into(),
                });
            }
        }
    }
    entries(directory)
}

/// Returns the names in a directory that is there.
fn entries(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?
    {
        // A name that is not Unicode is not one of posse's.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Reads a file. Links are not followed, and a pipe does not block.
fn read_file(path: &Path) -> io::Result<String> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link, and links are not followed"));
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!(
            "it is larger than {} MiB",
            LARGEST >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// What an export has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExportSummary {
    /// Number of files written; unchanged ones are left alone.
    pub(super) written: usize,
    /// Number of files removed.
    pub(super) removed: usize,
    /// Files that are too large to be imported again.
    pub(super) too_large: Vec<String>,
    /// Files that do not belong to the export.
    pub(super) strange: Vec<String>,
}

/// Writes `files`, and removes what an earlier export of the same team wrote and is gone. If it
/// is interrupted, the directory is marked, and the next export continues.
pub(super) fn write(
    directory: &Path,
    team: &str,
    files: &ArchiveFiles,
) -> anyhow::Result<ExportSummary> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    // One export at a time. If directories cannot be locked, the worst case is a mixture of two.
    let lock = fs::File::open(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    let _ = lock.lock();
    let old = earlier(directory, team)?;
    let (mut stale, mut done) = (Vec::new(), ExportSummary::default());
    for (place, _) in PLACES {
        for name in names(&directory.join(place))? {
            let name = format!("{place}/{name}");
            let wrote =
                old.as_ref().is_some_and(|old| old.wrote(&name)) || is_left_over(&name, files);
            match (files.contains_key(&name), wrote) {
                (true, _) => {}
                (false, true) => stale.push(name),
                (false, false) => done.strange.push(name),
            }
        }
    }
    stale.extend(
        entries(directory)?
            .into_iter()
            .filter(|name| is_left_over(name, files)),
    );
    let put = |name: &String, text: &str| {
        let path = directory.join(name);
        let mode = match name.starts_with("inboxes/") {
            true => FileMode::Private,
            false => FileMode::Usual,
        };
        replace(&path, text, mode, Durability::Unsynced).map_err(|error| unwritten(&path, error))
    };
    let changed: Vec<(&String, &String)> = files
        .iter()
        .filter(|(name, text)| *name != CONFIG && !is_there(&directory.join(name), text))
        .collect();
    let config = files.get(CONFIG).map_or("", String::as_str);
    done.written += usize::from(!is_there(&directory.join(CONFIG), config));
    if !changed.is_empty() || !stale.is_empty() {
        // Marked first: an interrupted export must not pass for a complete one.
        put(&CONFIG.to_owned(), &unfinished(config))?;
    }
    for (place, _) in PLACES {
        if files.keys().any(|name| name.starts_with(place)) {
            make_directory(&directory.join(place))?;
        }
    }
    for (name, text) in changed {
        put(name, text)?;
        done.written += 1;
    }
    for name in &stale {
        let path = directory.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            done.removed += usize::from(!is_left_over(name, files));
        }
    }
    for name in files.keys().filter(|name| name.starts_with("inboxes/")) {
        let path = directory.join(name);
        // Files of other programs, or of an earlier posse, may be readable by everyone.
        if fs::metadata(&path).is_ok_and(|about| about.permissions().mode() & 0o077 != 0) {
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o600));
        }
    }
    if !is_there(&directory.join(CONFIG), config) {
        put(&CONFIG.to_owned(), config)?;
    }
    done.too_large = files
        .iter()
        .filter(|(_, text)| text.len() as u64 > LARGEST)
        .map(|(name, _)| name.clone())
        .collect();
    Ok(done)
}

/// Returns a directory that is not a link to one.
fn make_directory(path: &Path) -> anyhow::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => anyhow::bail!(Advised {
            what: format!("{} is not a directory", path.display()),
            advice: "remove it, or export into another directory".into(),
        }),
        Err(_) => fs::create_dir(path).map_err(|error| unwritten(path, error)),
    }
}

/// Returns what to do about a file that could not be written.
fn unwritten(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => anyhow::Error::new(Advised {
            what: format!("cannot write {}: {error}", path.display()),
            advice: "free some space there and export again; the team itself is untouched".into(),
        }),
        _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    }
}

/// Returns true for a temporary file that an interrupted export has left.
fn is_left_over(name: &str, files: &ArchiveFiles) -> bool {
    let named = name
        .strip_suffix(".new")
        .and_then(|name| name.rsplit_once('.'));
    named.is_some_and(|(file, pid)| files.contains_key(file) && pid.parse::<u32>().is_ok())
}

/// Returns what an earlier export wrote into `directory`, which must be empty or hold one of the
/// same team.
fn earlier(directory: &Path, team: &str) -> anyhow::Result<Option<PreviousExport>> {
    let beginning = |name: &String| name.starts_with("config.json.") && name.ends_with(".new");
    if entries(directory)?.iter().all(beginning) {
        return Ok(None);
    }
    let refuse = |what: String| {
        let advice = "choose a new directory, or an earlier export of this team".into();
        Err(Advised {
            what: format!("{} {what}", directory.display()),
            advice,
        }
        .into())
    };
    let config = read_file(&directory.join(CONFIG)).ok();
    match config.as_deref().and_then(previous) {
        Some(previous) if previous.team == team => Ok(Some(previous)),
        Some(previous) => refuse(format!(
            "holds an export of another team, {}",
            previous.team
        )),
        None => refuse("is not empty, and not an export of posse".into()),
    }
}

/// Returns true if a file already has this content.
fn is_there(path: &Path, text: &str) -> bool {
    read_file(path).is_ok_and(|there| there == text)
}
