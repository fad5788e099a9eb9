//! Rules that a person wants to keep: "don't ask again".

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::json_text;
use super::search_paths::SearchPaths;

/// Where a rule is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RulePlace {
    /// In the user's settings, for every project.
    User,
    /// For this directory only. A repository cannot be trusted yet, so that its own file is not
    /// used: posse's home has one for it.
    Local,
}

/// Rules to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewRules {
    pub(crate) place: RulePlace,
    /// `allow`, `ask` or `deny`.
    pub(crate) list: String,
    pub(crate) rules: Vec<String>,
}

/// Why rules were not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    /// There is no place for them.
    #[error("there is no home directory; set POSSE_HOME")]
    NoHome,
    /// The file is not what it should be.
    #[error("{} is not a JSON object with lists of rules; fix it first", .0.display())]
    Unclear(PathBuf),
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Returns posse's own settings for a project: in its home, under the project's path.
pub(super) fn local_file(places: &SearchPaths) -> Option<PathBuf> {
    let project = places.project();
    let project = project
        .canonicalize()
        .unwrap_or_else(|_| project.to_owned());
    let below = project.strip_prefix("/").ok()?;
    let local = places.posse_home.as_ref()?.join("local");
    Some(local.join(below).join("settings.json"))
}

/// Adds rules to the file of their place, and returns it. Others who write at the same time wait.
pub(crate) fn keep(places: &SearchPaths, new: &NewRules) -> Result<PathBuf, KeepError> {
    let home = places.posse_home.as_ref().ok_or(KeepError::NoHome)?;
    let path = match new.place {
        RulePlace::User => home.join("settings.json"),
        RulePlace::Local => local_file(places).ok_or(KeepError::NoHome)?,
    };
    let unwritable = |source| KeepError::Unwritable {
        path: path.clone(),
        source,
    };
    let directory = path.parent().unwrap_or(home);
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    let lock = std::fs::File::create(home.join("rules.lock")).map_err(unwritable)?;
    lock.lock().map_err(unwritable)?;
    let mut text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unwritable(error)),
    };
    for rule in &new.rules {
        let added = json_text::with_rule(&text, &new.list, rule);
        text = added.ok_or_else(|| KeepError::Unclear(path.clone()))?;
    }
    replace(&path, &text).map_err(unwritable)?;
    Ok(path)
}

/// Replaces a file as a whole: after a crash it is the old or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let other = path.with_extension("new");
    let mut file = std::fs::File::create(&other)?;
    if let Ok(about) = std::fs::metadata(path) {
        file.set_permissions(about.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&other, path)
}
