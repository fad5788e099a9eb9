//! Rules that a person wants to keep: "don't ask again".

mod lasting;

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use posse_permission::{Policy, RuleError, RuleList, Source};

use self::lasting::lasting;
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

/// Rules that were kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeptRules {
    pub(crate) path: PathBuf,
    /// As they are written there.
    pub(crate) rules: Vec<String>,
}

/// Why rules were not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    /// One of them is not a rule.
    #[error(transparent)]
    NoRule(#[from] RuleError),
    /// A path below the working directory cannot be made absolute.
    #[error("the name of the working directory is not text, so that no rule can contain it")]
    Unnameable,
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

/// Adds rules to the file of their place, in a form that means there what it means in a session in
/// `places.cwd`. If one of them is not a rule, none is added.
pub(crate) fn keep(places: &SearchPaths, new: &NewRules) -> Result<KeptRules, KeepError> {
    let home = places.posse_home.as_ref().ok_or(KeepError::NoHome)?;
    let path = match new.place {
        RulePlace::User => home.join("settings.json"),
        RulePlace::Local => local_file(places).ok_or(KeepError::NoHome)?,
    };
    let rules = lasting_rules(places, new, &path)?;
    let unwritable = |source| KeepError::Unwritable {
        path: path.clone(),
        source,
    };
    let directory = path.parent().unwrap_or(home);
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    let lock = File::create(home.join("rules.lock")).map_err(unwritable)?;
    lock.lock().map_err(unwritable)?;
    let mut text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unwritable(error)),
    };
    for rule in &rules {
        let added = json_text::with_rule(&text, &new.list, rule);
        text = added.ok_or_else(|| KeepError::Unclear(path.clone()))?;
    }
    replace(&path, &text).map_err(unwritable)?;
    Ok(KeptRules { path, rules })
}

/// Returns the rules in a form that means the same in later sessions.
fn lasting_rules(
    places: &SearchPaths,
    new: &NewRules,
    path: &Path,
) -> Result<Vec<String>, KeepError> {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let cwd = resolved(&places.cwd);
    let source = Source {
        name: path.display().to_string(),
        root: cwd.clone(),
        cwd: cwd.clone(),
        home: places.home.as_deref().map(resolved),
    };
    let check = |rules: &[String]| {
        let mut list = RuleList::default();
        match new.list.as_str() {
            "allow" => list.allow = rules.to_vec(),
            "ask" => list.ask = rules.to_vec(),
            _ => list.deny = rules.to_vec(),
        }
        Policy::default().add(&source, &list)
    };
    check(&new.rules)?;
    let rules = new.rules.iter();
    let rules: Option<Vec<String>> = rules.map(|rule| lasting(rule, new.place, &cwd)).collect();
    let rules = rules.ok_or(KeepError::Unnameable)?;
    // The name of the directory may have characters that no rule may have.
    check(&rules)?;
    Ok(rules)
}

/// Replaces a file as a whole: after a crash it is the old or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let other = path.with_extension("new");
    let mut file = File::create(&other)?;
    if let Ok(about) = std::fs::metadata(path) {
        file.set_permissions(about.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&other, path)
}

#[cfg(test)]
mod tests;
