//! One settings file. Keys that are not ours are left alone: other programs keep theirs in it.

use std::path::Path;

use posse_protocol::PermissionMode;
use serde::{Deserialize, Deserializer};

use super::SettingsError;

/// What posse understands of a settings file.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SettingsFile {
    #[serde(default)]
    pub(super) permissions: Permissions,
    pub(super) model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permissions {
    #[serde(default)]
    pub(super) allow: Vec<String>,
    #[serde(default)]
    pub(super) ask: Vec<String>,
    #[serde(default)]
    pub(super) deny: Vec<String>,
    #[serde(default, deserialize_with = "mode")]
    pub(super) default_mode: Option<PermissionMode>,
    #[serde(default)]
    pub(super) additional_directories: Vec<String>,
    /// `"disable"` in other programs' files, `true` in ours.
    #[serde(default, rename = "disableBypassPermissionsMode", deserialize_with = "switch")]
    pub(super) disables_bypass: bool,
}

/// Reads a file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<SettingsFile>, SettingsError> {
    let text = match std::fs::metadata(path) {
        // To read a pipe would be to wait.
        Ok(found) if !found.is_file() => Err(std::io::Error::other("it is no file")),
        Ok(_) => std::fs::read_to_string(path),
        Err(error) => Err(error),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(source) => return Err(SettingsError::Unreadable { path: path.to_owned(), source }),
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    let wrong =
        |error: serde_json::Error| SettingsError::Wrong { path: path.to_owned(), why: error.to_string() };
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn mode<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PermissionMode>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    word.map(|word| word.parse().map_err(serde::de::Error::custom)).transpose()
}

fn switch<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Switch {
        Plain(bool),
        Word(String),
    }
    match Switch::deserialize(from) {
        Ok(Switch::Plain(on)) => Ok(on),
        Ok(Switch::Word(word)) if word == "disable" => Ok(true),
        _ => Err(serde::de::Error::custom("disableBypassPermissionsMode is true, false or \"disable\"")),
    }
}
