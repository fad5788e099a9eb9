//! Which files in a workspace are protected or ruled about: found by a walk, which is made again
//! only so often that it costs little.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use posse_permission::may_be_guarded;
use posse_port::confinement::{Confinement, FileAccess};
use posse_port::tool::RuledPaths;
use posse_sandbox::{KnownTree, Survey};

use super::SandboxError;

/// How many entries one walk looks at.
const MOST_ENTRIES: usize = 5_000_000;
/// Directories that are not looked into: their files are none of anybody's.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// How long what was found counts at least.
const SHORTEST: Duration = Duration::from_secs(1);
/// A walk is made again when so many times its own time has passed.
const PATIENCE: u32 = 20;
/// How many workspaces are remembered.
const MOST_KNOWN: usize = 32;

/// What walks have found.
#[derive(Debug, Default)]
pub(super) struct SurveyCache(Mutex<Vec<KnownSurvey>>);

#[derive(Debug)]
struct KnownSurvey {
    key: SurveyKey,
    made: Instant,
    lasts: Duration,
    found: Arc<GuardedFiles>,
}

/// What a walk depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SurveyKey {
    directories: Vec<PathBuf>,
    rules: Vec<String>,
    unasked: bool,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct GuardedFiles {
    /// Files and directories that commands may not change or read.
    pub(super) guarded: Vec<PathBuf>,
    /// Top directories of checkouts.
    pub(super) repositories: Vec<PathBuf>,
    /// Directories that could not be looked into.
    pub(super) unreadable: Vec<PathBuf>,
    /// The others.
    pub(super) tree: Arc<KnownTree>,
}

impl SurveyCache {
    /// Returns what is in the directories that commands may write to, and in those that rules are
    /// about.
    pub(super) fn of(
        &self,
        bounds: &Confinement,
        ruled: &RuledPaths,
        unasked: bool,
        access: impl Fn(&Path) -> FileAccess,
    ) -> Result<GuardedFiles, SandboxError> {
        let roots = bounds.write.iter().filter(|root| *root != Path::new("/"));
        let directories = outermost(roots.chain(&ruled.beneath));
        if directories.is_empty() {
            return Ok(GuardedFiles::default());
        }
        let key = SurveyKey {
            directories,
            rules: ruled.rules.clone(),
            unasked,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|it| it.made.elapsed() < it.lasts && !it.found.tree.is_outdated());
        if let Some(known) = known.iter().find(|it| it.key == key) {
            return Ok(GuardedFiles::clone(&known.found));
        }
        drop(known);
        let made = Instant::now();
        let found = Arc::new(walk(&key, !ruled.beneath.is_empty(), access)?);
        let lasts = (made.elapsed() * PATIENCE).max(SHORTEST);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == MOST_KNOWN {
            known.remove(0);
        }
        known.push(KnownSurvey {
            key,
            made,
            lasts,
            found: Arc::clone(&found),
        });
        Ok(GuardedFiles::clone(&found))
    }
}

fn walk(
    key: &SurveyKey,
    has_patterns: bool,
    access: impl Fn(&Path) -> FileAccess,
) -> Result<GuardedFiles, SandboxError> {
    let mut found = GuardedFiles::default();
    let mut directories = Vec::new();
    for directory in &key.directories {
        let survey = Survey::of(directory, MOST_ENTRIES, |path| {
            let name = path.file_name().unwrap_or_default();
            let is_kernel = OF_KERNEL.iter().any(|it| path == Path::new(it));
            is_kernel || (has_patterns || may_be_guarded(name)) && access(path) < FileAccess::Write
        });
        if !survey.complete {
            return Err(SandboxError::TooLarge(directory.clone()));
        }
        found.unreadable.extend(survey.unreadable);
        found.guarded.extend(survey.named);
        found.repositories.extend(survey.repositories);
        directories.extend(survey.directories);
    }
    found.tree = Arc::new(KnownTree::new(directories));
    Ok(found)
}

/// Returns the directories without those that lie in others.
fn outermost<'a>(directories: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut sorted: Vec<&PathBuf> = directories.collect();
    sorted.sort();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for directory in sorted {
        if !outermost.last().is_some_and(|it| directory.starts_with(it)) {
            outermost.push(directory.clone());
        }
    }
    outermost
}
