//! Runs git. This is the only place that does. Whatever the environment or a repository's
//! settings could change (another directory, hooks, questions, hidden files) is ruled out here.

mod hold;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use crate::child::{self, Heard, Unheard};
use crate::process_table::CALL_MARK;
use hold::FileCall;
pub(crate) use hold::GitHold;
pub use hold::HoldError;

/// Time limit of a read-only call.
const LOOK: Duration = Duration::from_secs(60);
/// Time limit of a call that changes something.
const CHANGE: Duration = Duration::from_secs(600);

/// Variables that lead git elsewhere, or change how it reads paths.
const ASTRAY: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_ATTR_SOURCE",
    "GIT_REFLOG_ACTION",
    "GIT_REF_PARANOIA",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
    "GIT_TRACE2",
];

/// Settings against running other programs or hiding something from a look. The log of HEAD is
/// turned on, because it shows commits that no branch names.
const SETTINGS: &[&str] = &[
    "safe.bareRepository=explicit",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.checkStat=default",
    "core.trustctime=true",
    "core.fileMode=true",
    "core.ignoreCase=false",
    "submodule.recurse=false",
    "log.showSignature=false",
    "core.logAllRefUpdates=true",
    "status.showUntrackedFiles=normal",
    "status.aheadBehind=false",
    "diff.ignoreSubmodules=none",
    "worktree.useRelativePaths=false",
];

/// A call of git that is being assembled.
pub(crate) struct Git {
    command: Command,
    at: PathBuf,
    directory: Option<PathBuf>,
    index: Option<PathBuf>,
    input: Option<Vec<u8>>,
    limit: Duration,
    files: Option<OfFiles>,
}

/// What is done with the files of a checkout, and what holds the programs that git may run for
/// that.
struct OfFiles {
    hold: GitHold,
    changes: bool,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("there is no git on this machine, or it is not in the PATH")]
    Missing,
    /// It could not be started or read.
    #[error("git cannot be run: {0}")]
    Io(#[from] io::Error),
    /// It took too long, and was ended.
    #[error("git had not finished after {} s", .0.as_secs())]
    Late(Duration),
    /// It printed too much.
    #[error("git printed too much output")]
    TooMuch,
    /// It was not run, since nothing holds what it would run.
    #[error(transparent)]
    NotHeld(#[from] HoldError),
    /// It refused.
    #[error("git said: {said}")]
    Refused {
        /// What it had printed until then.
        printed: Vec<u8>,
        /// The reason, in git's words.
        said: String,
    },
}

impl From<Unheard> for GitError {
    fn from(unheard: Unheard) -> Self {
        match unheard {
            Unheard::Missing => Self::Missing,
            Unheard::Io(error) => Self::Io(error),
            Unheard::Late(limit) => Self::Late(limit),
            Unheard::TooMuch => Self::TooMuch,
        }
    }
}

/// Returns true if git knows that nobody has added a file to the repository at `top`. False if that
/// cannot be told. Blocks.
pub fn is_untracked(file: &Path, top: &Path) -> bool {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return false;
    };
    let mut git = Git::look(directory).words(["ls-files", "--cached", "-z", "--"]);
    // Without a repository there, git would go on upwards and find another.
    git.command
        .env("GIT_CEILING_DIRECTORIES", top.parent().unwrap_or(top));
    git.word(name).run().is_ok_and(|printed| printed.is_empty())
}

impl Git {
    /// Returns a call from `at` that reads references and commits: it needs no index, so that it
    /// runs nothing.
    pub(crate) fn look(at: &Path) -> Self {
        let mut git = Self::at(at, LOOK);
        // Without this, `status` would refresh the index under its lock.
        git.command.env("GIT_OPTIONAL_LOCKS", "0");
        git
    }

    /// Returns a call from `at` that changes references: it needs no index, so that it runs nothing.
    pub(crate) fn change(at: &Path) -> Self {
        Self::at(at, CHANGE)
    }

    /// Returns a call that reads the index or the files of the checkout at `at`.
    pub(crate) fn look_at_files(at: &Path, hold: &GitHold) -> Self {
        Self::look(at).of_files(hold, false)
    }

    /// Returns a call that changes the index or the files of the checkout at `at`.
    pub(crate) fn change_files(at: &Path, hold: &GitHold) -> Self {
        Self::change(at).of_files(hold, true)
    }

    fn of_files(mut self, hold: &GitHold, changes: bool) -> Self {
        let hold = hold.clone();
        self.files = Some(OfFiles { hold, changes });
        self
    }

    /// Returns a call from `at` with a neutral environment.
    #[expect(clippy::disallowed_methods, reason = "this is where git is started")]
    fn at(at: &Path, limit: Duration) -> Self {
        let mut command = Command::new("git");
        for name in ASTRAY {
            command.env_remove(name);
        }
        // What a repository's filters run was not started by a person, either.
        command.env(CALL_MARK, "git");
        // Its messages are parsed, so they must be in English; and nobody is there to answer a
        // prompt.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        // A partial clone would fetch objects, with the programs that its settings name.
        command.env("GIT_NO_LAZY_FETCH", "1");
        command.arg("-C").arg(at);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        Self {
            command,
            at: at.to_owned(),
            directory: None,
            index: None,
            input: None,
            limit,
            files: None,
        }
    }

    /// Sets the git directory, regardless of what is around `at`.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        let mut option = OsString::from("--git-dir=");
        option.push(directory);
        self.word(option)
    }

    /// Sets the checkout.
    pub(crate) fn checkout(self, checkout: &Path) -> Self {
        let mut option = OsString::from("--work-tree=");
        option.push(checkout);
        self.word(option)
    }

    /// Sets another index than the checkout's own.
    pub(crate) fn index(mut self, index: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", index);
        self.index = Some(index.to_owned());
        self
    }

    /// Adds an argument.
    pub(crate) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Adds arguments.
    pub(crate) fn words<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.command.args(words);
        self
    }

    /// Sets its input.
    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    /// Runs it and returns its output.
    pub(crate) fn run(self) -> Result<Vec<u8>, GitError> {
        self.first_bytes(child::MOST_OUTPUT + 1)
    }

    /// Runs it and returns the first `most` bytes of its output.
    pub(crate) fn first_bytes(self, most: usize) -> Result<Vec<u8>, GitError> {
        let held = match &self.files {
            Some(OfFiles { hold, changes }) => {
                let call = FileCall {
                    at: &self.at,
                    directory: self.directory.as_deref(),
                    changes: *changes,
                    index: self.index.as_deref(),
                    input: self.input.as_deref(),
                };
                hold.held(&self.command, &call)?
            }
            None => None,
        };
        output(match held {
            Some(mut held) => child::run_prepared(&mut held.command, self.limit, most)?,
            None => {
                let mut command = self.command;
                child::prepare(&mut command, self.input.as_deref())?;
                child::run_prepared(&mut command, self.limit, most)?
            }
        })
    }

    /// Runs it and returns its output without the last line end.
    pub(crate) fn line(self) -> Result<String, GitError> {
        let printed = self.run()?;
        Ok(String::from_utf8_lossy(&printed)
            .trim_end_matches('\n')
            .to_owned())
    }
}

/// Returns the output, unless it has failed.
fn output(heard: Heard) -> Result<Vec<u8>, GitError> {
    let Heard {
        printed,
        said,
        status,
    } = heard;
    if status.success() && !is_blind(&said) {
        Ok(printed)
    } else {
        Err(GitError::Refused {
            printed,
            said: words(&said, status),
        })
    }
}

/// Returns true if it could not read a directory, which git does not treat as a failure.
fn is_blind(said: &[u8]) -> bool {
    memchr::memmem::find(said, b"could not open directory").is_some()
}

/// Returns its reason in one line.
fn words(said: &[u8], status: ExitStatus) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // What it was about to do is not a reason.
    let reasons: Vec<&str> = lines
        .filter(|line| !line.starts_with("Preparing worktree"))
        .collect();
    let mut text: String = reasons
        .join("; ")
        .chars()
        .filter(|c| !c.is_control())
        .take(1_000)
        .collect();
    if text.is_empty() {
        text = status.to_string();
    }
    // It becomes part of a sentence.
    text.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_it_prints_and_why_it_refuses_are_told() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(
            Git::look(here)
                .word("--version")
                .line()
                .unwrap()
                .starts_with("git version")
        );
        let input = b"some text".to_vec();
        let hashed = Git::look(Path::new("/"))
            .words(["hash-object", "--stdin"])
            .input(input)
            .line();
        assert_eq!(
            hashed.unwrap(),
            "b649a9bf89116c581f8329b8ec3c79a86a70be04".to_owned()
        );
        let refused = Git::look(here).word("no-such-command").run().unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("'no-such-command' is not a git command"),
            "{refused}"
        );
    }

    #[test]
    fn what_could_not_be_looked_into_is_no_answer() {
        assert!(is_blind(
            b"warning: could not open directory 'x/': Permission denied\n"
        ));
        assert!(!is_blind(b"warning: something else\n"));
        let warns = [
            "-c",
            "alias.warn=!echo \"could not open directory 'x/'\" >&2",
            "warn",
        ];
        let failed = Git::look(Path::new("/")).words(warns).run().unwrap_err();
        assert!(
            failed.to_string().contains("could not open directory"),
            "{failed}"
        );
    }

    #[test]
    fn a_git_that_does_not_end_is_ended() {
        let mut git = Git::look(Path::new("/"));
        git.limit = Duration::from_millis(50);
        let begun = Instant::now();
        let late = git
            .words(["-c", "alias.wait=!sleep 1000", "wait"])
            .run()
            .unwrap_err();
        assert!(matches!(late, GitError::Late(_)), "{late}");
        assert!(begun.elapsed() < child::GRACE, "{:?}", begun.elapsed());
    }
}
