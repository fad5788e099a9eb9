//! Holds git within a sandbox where a repository's own settings may make it run programs: filters,
//! for example, which can be scripts of the checkout that an agent has changed.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use posse_sandbox::{Job, Repository, first_that_runs};
use uuid::Uuid;

use crate::sandbox::{Sandbox, SandboxError};

/// Where held calls have their temporary directories, beneath the home of worktrees.
const TEMPORARY: &str = ".held";
/// How long a temporary directory is there at most: longer than any call takes.
const OLD: Duration = Duration::from_secs(3600);
/// The file in it that a call reads, and where the call finds that.
const INPUT: &str = "input";
const INPUT_INSIDE: &str = "/tmp/input";

/// What holds git.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitHold {
    /// None if nothing is to be held.
    sandbox: Option<Sandbox>,
    temporary: PathBuf,
}

/// Why a call is not held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// It would run programs, and nothing here holds those.
    #[error(
        "the repository's own settings may make git run programs (`{setting}`), and there is no \
         sandbox on this machine that holds them (`posse doctor --sandbox`). POSSE_SANDBOX=off lets \
         them run"
    )]
    Unheld {
        /// The setting.
        setting: String,
    },
    /// There is a sandbox, but not for this.
    #[error("git cannot be held: {0}")]
    Sandbox(String),
    /// A file could not be made.
    #[error("git cannot be held: {0}")]
    Io(#[from] io::Error),
}

impl From<SandboxError> for HoldError {
    fn from(error: SandboxError) -> Self {
        Self::Sandbox(error.to_string())
    }
}

/// A call that looks at or changes the files of a checkout.
pub(super) struct FileCall<'a> {
    /// Where git begins to look for the checkout.
    pub(super) at: &'a Path,
    /// Its git directory, if that is given.
    pub(super) directory: Option<&'a Path>,
    /// Whether it changes files there.
    pub(super) changes: bool,
    /// The index that it writes, if that is another than the checkout's own.
    pub(super) index: Option<&'a Path>,
    pub(super) input: Option<&'a [u8]>,
}

/// A call that is ready to be run in a sandbox.
pub(super) struct HeldCall {
    pub(super) command: Command,
    /// Removed when this is dropped.
    _temporary: HeldDirectory,
}

impl GitHold {
    /// Returns what holds git in a sandbox, with a place for temporary files beneath `home`.
    pub(crate) fn new(sandbox: Option<Sandbox>, home: &Path) -> Self {
        Self {
            sandbox,
            temporary: home.join(TEMPORARY),
        }
    }

    /// Returns the call as it runs in a sandbox; none if it needs none.
    pub(super) fn held(
        &self,
        git: &Command,
        call: &FileCall<'_>,
    ) -> Result<Option<HeldCall>, HoldError> {
        let Some(sandbox) = &self.sandbox else {
            return Ok(None);
        };
        let Some(setting) = setting_that_runs(call) else {
            return Ok(None);
        };
        if !sandbox.tier().has_mounts() {
            return Err(HoldError::Unheld { setting });
        }
        let temporary = HeldDirectory::new(&self.temporary)?;
        let mut words: Vec<OsString> = git.get_args().map(Into::into).collect();
        let program = match call.input {
            None => git.get_program().to_owned(),
            Some(input) => {
                fs::write(temporary.0.join(INPUT), input)?;
                let script = r#"exec "$0" "$@" <"#.to_owned() + INPUT_INSIDE;
                words.splice(
                    0..0,
                    ["-c".into(), script.into(), git.get_program().to_owned()],
                );
                "sh".into()
            }
        };
        let job = Job {
            program,
            arguments: words,
            directory: "/".into(),
            environment: sandbox.environment_with(git.get_envs()),
        };
        let checkout = call.at.canonicalize()?;
        let of_index = call.index.and_then(Path::parent).map(Path::canonicalize);
        let mut write: Vec<PathBuf> = of_index.transpose()?.into_iter().collect();
        write.extend(call.changes.then(|| checkout.clone()));
        let show = [Some(checkout.as_path()), call.directory];
        let show: Vec<PathBuf> = show.into_iter().flatten().map(Into::into).collect();
        let command = sandbox.git_command(job, write, show, &temporary.0)?;
        Ok(Some(HeldCall {
            command,
            _temporary: temporary,
        }))
    }
}

/// Returns a setting of the repository's own that may make git run a program.
fn setting_that_runs(call: &FileCall<'_>) -> Option<String> {
    let found = || {
        let top = call.at.ancestors().find(|it| it.join(".git").exists())?;
        Repository::at(top).map(|repository| repository.git)
    };
    // Without a repository, git says so itself.
    let directory = call.directory.map(Path::to_owned).or_else(found)?;
    let common = match fs::read_to_string(directory.join("commondir")) {
        Ok(common) => directory.join(common.trim_end()),
        Err(_) => directory.clone(),
    };
    let files = [
        common.join("config"),
        common.join("config.worktree"),
        directory.join("config.worktree"),
    ];
    files.iter().find_map(|file| match fs::read(file) {
        Ok(settings) => first_that_runs(&String::from_utf8_lossy(&settings)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("{}: {error}", file.display())),
    })
}

/// A directory that is removed when this is dropped.
struct HeldDirectory(PathBuf);

impl HeldDirectory {
    /// Makes one, and removes those that a process has left that was killed.
    fn new(beneath: &Path) -> io::Result<Self> {
        fs::create_dir_all(beneath)?;
        let oldest = SystemTime::now().checked_sub(OLD);
        for entry in fs::read_dir(beneath)?.flatten() {
            let made = entry.metadata().and_then(|found| found.modified()).ok();
            if made.zip(oldest).is_some_and(|(made, oldest)| made < oldest) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = beneath.canonicalize()?.join(Uuid::now_v7().to_string());
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for HeldDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
