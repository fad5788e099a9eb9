//! A directory with a team's files: read with suspicion, written with care.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use rustix::fs::OFlags;

use super::archive::{CONFIG, Files, previous};
use crate::hint::Advised;

/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// The most that is read of a directory.
const MOST: usize = 512 << 20;
/// Where files are looked for, and what they end in.
const PLACES: [(&str, &str); 3] = [("inboxes", "json"), ("tasks", "json"), ("notes", "md")];

/// Reads all files of a team beneath `directory`.
pub(super) fn read(directory: &Path) -> anyhow::Result<Files> {
    if !directory.is_dir() {
        let what = if directory.exists() { "is no directory" } else { "does not exist" };
        anyhow::bail!(Advised {
            what: format!("{} {what}", directory.display()),
            advice: "name a directory that `posse team export` wrote, or one with a config.json".into(),
        });
    }
    let mut files = Files::new();
    let mut size = 0;
    let mut take = |name: String| -> anyhow::Result<()> {
        let text = read_file(&directory.join(&name)).map_err(|error| refused(directory, &name, &error))?;
        size += text.len();
        if size > MOST {
            anyhow::bail!("the files of {} are more than {} MiB", directory.display(), MOST >> 20);
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
            what: format!("{} is not there", path.display()),
            advice: "an exported team has one; name the directory that holds it".into(),
        },
        _ => Advised {
            what: format!("cannot read {}: {error}", path.display()),
            advice: "nothing was imported; mend the file, or remove it".into(),
        },
    }
}

/// The names in a directory; none if it is not there. A link to one is not followed.
fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => {
            let found = found.with_context(|| format!("cannot read {}", directory.display()))?;
            if !found.is_dir() {
                anyhow::bail!(Advised {
                    what: format!("{} is no directory", directory.display()),
                    advice: "links and other things are not followed; put the files themselves there".into(),
                });
            }
        }
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        // What has no name in Unicode is none of ours.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// A file's text. Links are not followed, and nothing is waited for.
fn read_file(path: &Path) -> io::Result<String> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link, and links are not followed"));
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Writes `files`, and removes what an earlier export of the same team wrote and is gone since. Gives the
/// names of files that are too large to be imported again.
pub(super) fn write(directory: &Path, team: &str, files: &Files) -> anyhow::Result<Vec<String>> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let old = earlier(directory, team)?;
    for (place, _) in PLACES {
        let path = directory.join(place);
        if !files.keys().any(|name| name.starts_with(place)) {
            continue;
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => anyhow::bail!(Advised {
                what: format!("{} is no directory", path.display()),
                advice: "remove it, or export into another directory".into(),
            }),
            Err(_) => fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?,
        }
    }
    // The description is written last: until then it is the earlier export's.
    let (config, others): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| *name == CONFIG);
    for (name, text) in others.into_iter().chain(config) {
        let path = directory.join(name);
        write_file(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    for name in old.iter().filter(|name| !files.contains_key(*name)) {
        let path = directory.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(files.iter().filter(|(_, text)| text.len() as u64 > LARGEST).map(|(name, _)| name.clone()).collect())
}

/// What an earlier export wrote into `directory`, which is empty or holds one of the same team.
fn earlier(directory: &Path, team: &str) -> anyhow::Result<Vec<String>> {
    let there = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    if there.count() == 0 {
        return Ok(Vec::new());
    }
    let refuse = |what: String| {
        let advice = "choose a new directory, or an earlier export of this team".into();
        Err(Advised { what: format!("{} {what}", directory.display()), advice }.into())
    };
    let config = read_file(&directory.join(CONFIG)).ok();
    match config.as_deref().and_then(previous) {
        Some(previous) if previous.team == team => Ok(previous.files),
        Some(previous) => refuse(format!("holds an export of another team, {}", previous.team)),
        None => refuse("is not empty, and no export of posse".into()),
    }
}

/// Writes a file as a whole or not at all. What is the same already is left alone.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if read_file(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        // A link of that name is replaced, not followed.
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may not be there.
        let _ = fs::remove_file(&new);
    }
    written
}
