//! Rules that a person wants to keep: "don't ask again".

mod lasting;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use posse_permission::{Policy, RuleError, RuleList, Source};
use posse_protocol::{AcceptedRules, RuleScope};

use self::lasting::lasting;
use super::json_text;
use super::replace::{self, Durability, FileMode};
use super::search_paths::SearchPaths;

/// How long others who keep rules are waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at the lock.
const MOMENT: Duration = Duration::from_millis(10);
/// Number of symbolic links that are followed.
const LINKS: usize = 40;

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

impl NewRules {
    /// Returns the rules of an answer, if they hold in later sessions.
    pub(crate) fn of_answer(AcceptedRules { rules, scope }: &AcceptedRules) -> Option<Self> {
        let place = match scope {
            RuleScope::Session => return None,
            RuleScope::Directory => RulePlace::Local,
            RuleScope::Everywhere => RulePlace::User,
        };
        Some(Self {
            place,
            list: "allow".into(),
            rules: rules.clone(),
        })
    }
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
    /// Others write for too long.
    #[error(
        "{} is locked; {holder} may hold it: wait until it has ended, or end it",
        lock.display()
    )]
    Locked { lock: PathBuf, holder: String },
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
    keep_within(places, new, PATIENCE)
}

/// Adds rules, and waits for others who write at the same time, at most as long as `patience`.
fn keep_within(
    places: &SearchPaths,
    new: &NewRules,
    patience: Duration,
) -> Result<KeptRules, KeepError> {
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
    let _lock = lock(home.join("rules.lock"), patience)?;
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

/// Locks the settings files of posse's home against others who keep rules, until it is dropped.
#[expect(
    clippy::disallowed_methods,
    reason = "another process holds it, which has no clock of ours"
)]
fn lock(path: PathBuf, patience: Duration) -> Result<File, KeepError> {
    let unwritable = |source| KeepError::Unwritable {
        path: path.clone(),
        source,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(unwritable)?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(unwritable(error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                let mut id = String::new();
                let is_known = file.read_to_string(&mut id).is_ok() && !id.trim().is_empty();
                let holder = match is_known {
                    true => format!("process {}", id.trim()),
                    false => "another posse".to_owned(),
                };
                return Err(KeepError::Locked { lock: path, holder });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(MOMENT),
        }
    }
    // For those who wait in vain.
    let named = file
        .set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()));
    named.map_err(unwritable)?;
    Ok(file)
}

/// Replaces a settings file. A symbolic link stays one, and its target is replaced.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = &target(path)?;
    let mode = match std::fs::metadata(path) {
        Ok(about) => FileMode::Like(about.permissions()),
        Err(_) => FileMode::Usual,
    };
    replace::replace(path, text, mode, Durability::Synced)
}

/// Returns the file that a path leads to by symbolic links, whether or not it exists.
fn target(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(to) = std::fs::read_link(&path) else {
            return Ok(path);
        };
        path.pop();
        path.push(to);
    }
    Err(std::io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests;
