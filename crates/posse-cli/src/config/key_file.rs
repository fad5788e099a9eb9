//! Keys of model APIs that a person has given to posse, in a file that only they can read.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

use super::environment::posse_home;
use super::replace::{Durability, FileMode, replace};

/// Keys by the names of their variables.
type Keys = BTreeMap<String, String>;

/// Returns the file; none if there is no home.
pub(crate) fn path() -> Option<PathBuf> {
    posse_home().map(|home| home.join("keys.json"))
}

/// Returns a key. A file that others can read has none: what is in it may be known.
pub(crate) fn read(name: &str) -> Option<String> {
    keys().remove(name)
}

/// Keeps a key.
pub(crate) fn keep(name: &str, key: &str) -> io::Result<PathBuf> {
    let path = path().ok_or_else(|| io::Error::other("there is no home directory"))?;
    if let Some(home) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    }
    let mut keys = keys();
    keys.insert(name.to_owned(), key.to_owned());
    let text = serde_json::to_string(&keys)?;
    replace(&path, &text, FileMode::Private, Durability::Synced)?;
    Ok(path)
}

/// Removes all keys. Returns the file, none if there was none.
pub(crate) fn remove() -> io::Result<Option<PathBuf>> {
    let Some(path) = path() else {
        return Ok(None);
    };
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(Some(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn keys() -> Keys {
    let Some(path) = path() else {
        return Keys::new();
    };
    let is_private = std::fs::metadata(&path).is_ok_and(|about| about.mode() & 0o077 == 0);
    let text = is_private.then(|| std::fs::read_to_string(&path).ok());
    let keys = text
        .flatten()
        .and_then(|text| serde_json::from_str(&text).ok());
    keys.unwrap_or_default()
}
