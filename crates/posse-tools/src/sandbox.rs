//! The sandbox of this process's commands: from what an agent may do, what is on the disk and what
//! the kernel gives to a job that a launcher confines.

mod after;
mod programs;
mod survey_cache;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use posse_permission::guarded_names;
use posse_port::confinement::{Confinement, FileAccess, Limits, Tier};
use posse_port::tool::{FileGuard, RuledPaths, Workspace};
use posse_sandbox::{
    Backend as _, ConfinedJob, DeepWatch, Job, Launcher, Linux, Plan, PlanError, Probe,
    Surroundings, Watch,
};

use crate::process_start::OF_A_REPOSITORY;
use crate::process_table::CALL_MARK;
use crate::proxy::Upstream;
pub(crate) use after::AfterCommand;
use after::ConfinedBy;
use programs::{RuledPrograms, SearchPath};
use survey_cache::{GuardedFiles, SurveyCache};

/// The directory in an agent's spill that is `/tmp` for its commands.
const TEMPORARY: &str = "tmp";
/// The directory in an agent's spill for what its commands write to caches.
const CACHES: &str = "caches";
/// The directory in an agent's spill for what must not stay where a command has made it.
const QUARANTINE: &str = "quarantine";

/// How the commands of a process are confined, beside what each agent may do.
#[derive(Clone, Debug, Default)]
pub struct SandboxConfig {
    /// The program that becomes a launcher.
    pub launcher: PathBuf,
    /// The environment that commands are to have, before secrets are taken out.
    pub environment: Vec<(OsString, OsString)>,
    /// Paths that no command can read.
    pub hide: Vec<PathBuf>,
    /// Paths that only commands can read which may write everywhere.
    pub secrets: Vec<PathBuf>,
    /// Files that commands can read whatever is hidden: certificates of the user's.
    pub show: Vec<PathBuf>,
    /// Directories of package managers that commands which may write to the workspace can write to,
    /// too: what they write is kept for the agent alone. Made if they are missing.
    pub caches: Vec<PathBuf>,
    /// The proxy through which hosts are reached, if not directly.
    pub upstream: Option<Arc<Upstream>>,
    /// Further directories that commands may write to if they may write to the workspace.
    pub write: Vec<PathBuf>,
    /// What commands may use of the machine.
    pub limits: Limits,
    /// True if commands must not run without a sandbox of tier A.
    pub required: bool,
    /// True if commands are asked about as if there were no sandbox.
    pub asks: bool,
    /// True if no command may run outside.
    pub never_outside: bool,
}

/// The sandbox. Clones share what was found out about the machine and the disk.
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<SandboxState>);

#[derive(Debug)]
struct SandboxState {
    config: SandboxConfig,
    surveys: SurveyCache,
    /// What is found out with the first command that needs it.
    path: OnceLock<SearchPath>,
    caches: OnceLock<Vec<PathBuf>>,
}

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SandboxError {
    #[error(
        "no command runs without a sandbox, since settings require one, and this machine has \
         none of tier A: {0}"
    )]
    Required(String),
    #[error("the sandbox cannot hold it: {0}")]
    Plan(#[from] PlanError),
    #[error(
        "there are too many files in {} to look for those that it may not read or change",
        .0.display()
    )]
    TooLarge(PathBuf),
    #[error("its temporary directory cannot be made: {0}")]
    Temporary(io::Error),
    #[error("its orders cannot be given: {0}")]
    Orders(io::Error),
}

/// What runs in a sandbox.
#[derive(Clone, Copy)]
pub(crate) enum JobProgram<'a> {
    /// A shell with this command.
    Shell(&'a str),
    /// A program and its arguments.
    Words(&'a [OsString]),
}

/// A command that is to be confined.
pub(crate) struct CommandRequest<'a> {
    pub(crate) program: JobProgram<'a>,
    pub(crate) directory: &'a Path,
    /// Variables beside those of all commands.
    pub(crate) variables: &'a [(OsString, OsString)],
    pub(crate) marker: &'a str,
    pub(crate) workspace: &'a Workspace,
    pub(crate) files: &'a dyn FileGuard,
    pub(crate) bounds: &'a Confinement,
    pub(crate) unasked: bool,
    /// What a person has opened to it.
    pub(crate) opened: &'a [PathBuf],
    /// How strongly it is to be held.
    pub(crate) tier: Tier,
}

impl CommandRequest<'_> {
    /// Returns true if a person has opened this very path.
    fn opens(&self, path: &Path) -> bool {
        self.opened.iter().any(|opened| opened == path)
    }
}

/// A command that is ready to be started in a sandbox.
pub(crate) struct ConfinedCommand {
    pub(crate) job: ConfinedJob,
    pub(crate) launcher: PathBuf,
    pub(crate) after: AfterCommand,
}

impl Sandbox {
    /// Returns the sandbox. What the machine gives is found out with the first command.
    pub fn new(config: SandboxConfig) -> Self {
        Self(Arc::new(SandboxState {
            config,
            surveys: SurveyCache::default(),
            path: OnceLock::new(),
            caches: OnceLock::new(),
        }))
    }

    /// Returns what the machine gives. It is tried once in the life of a process.
    pub fn probe(&self) -> &'static Probe {
        static PROBE: OnceLock<Probe> = OnceLock::new();
        let launcher = || Launcher::at(&self.0.config.launcher);
        PROBE.get_or_init(|| Linux::new(launcher()).probe())
    }

    /// Returns how strong it is.
    pub(crate) fn tier(&self) -> Tier {
        self.probe().tier()
    }

    /// Returns true if commands need not be asked about, since it holds them.
    pub(crate) fn holds(&self) -> bool {
        !self.0.config.asks && self.tier().has_mounts()
    }

    /// Returns the proxy through which hosts are reached.
    pub(crate) fn upstream(&self) -> Option<Arc<Upstream>> {
        self.0.config.upstream.clone()
    }

    /// Returns true if no command may run outside.
    pub(crate) fn is_never_left(&self) -> bool {
        self.0.config.never_outside
    }

    /// Prepares a command. Returns none if nothing is to hold it.
    pub(crate) fn prepare(
        &self,
        request: &CommandRequest<'_>,
    ) -> Result<Option<ConfinedCommand>, SandboxError> {
        let config = &self.0.config;
        let probe = self.probe();
        let tier = request.tier;
        if config.required && !tier.has_mounts() {
            return Err(SandboxError::Required(probe.missing.join("; ")));
        }
        if tier == Tier::C {
            return Ok(None);
        }
        let spill = &request.workspace.spill;
        let temporary = make_private(spill, TEMPORARY).map_err(SandboxError::Temporary)?;
        let ruled = request.files.ruled_paths(request.workspace);
        let programs = self.path().ruled(&ruled);
        let (bounds, survey) = self.bounds(request, tier, &ruled, &programs)?;
        let nested = &survey.repositories;
        let mut surroundings = Surroundings::look(&bounds, probe.support, &temporary, nested);
        // Where a program has further names, those in the path are hidden with it.
        let twins = &mut surroundings.unfound_twins;
        twins.retain(|twin| !programs.contains(twin));
        let kept = make_private(spill, CACHES).map_err(SandboxError::Temporary)?;
        let caches = self.caches().iter().enumerate();
        let copies = caches.map(|(at, path)| (path.clone(), kept.join(at.to_string())));
        surroundings.copies = copies.collect();
        for repository in &mut surroundings.repositories {
            repository.keep.retain(|path| !request.opens(path));
            if !tier.has_mounts() {
                // It cannot keep anything; somebody has agreed to that.
                repository.keep.clear();
            }
        }
        let plan = Plan::new(&bounds, &surroundings)?;
        let is_writing = !bounds.write.is_empty() && !bounds.write.contains(&"/".into());
        let watch = is_writing.then(|| {
            let roots = bounds.write.iter().filter(|it| !it.starts_with(spill));
            let mut directories: Vec<PathBuf> = roots.cloned().collect();
            directories.push(request.workspace.cwd.clone());
            directories.sort();
            directories.dedup();
            let mut names = guarded_names(request.unasked);
            // What a person has opened may be made.
            let opened = request.opened.iter().filter_map(|path| path.file_name());
            let opened: Vec<_> = opened.collect();
            names.retain(|name| !opened.contains(&OsStr::new(name)));
            let checkouts = nested.iter().map(|top| top.join(".git"));
            let deep = DeepWatch {
                tree: Arc::clone(&survey.tree),
                roots: directories.clone(),
                present: survey.guarded.iter().cloned().chain(checkouts).collect(),
                names: names.clone(),
                since: SystemTime::now(),
            };
            let watch = Watch::before(&directories, &surroundings.repositories, &names);
            watch.deep(deep)
        });
        let after = AfterCommand {
            watch,
            quarantine: spill.join(QUARANTINE),
            confined: Some(ConfinedBy {
                plan: plan.clone(),
                directory: request.directory.to_owned(),
                opened: request.opened.to_vec(),
                closed: [config.hide.as_slice(), &programs.denied].concat(),
            }),
            proxy: None,
        };
        Ok(Some(ConfinedCommand {
            job: ConfinedJob {
                plan,
                job: self.job(request),
            },
            launcher: config.launcher.clone(),
            after,
        }))
    }

    /// Returns what the command may touch, with what is on the disk, and what was found there.
    fn bounds(
        &self,
        request: &CommandRequest<'_>,
        tier: Tier,
        ruled: &RuledPaths,
        programs: &RuledPrograms,
    ) -> Result<(Confinement, GuardedFiles), SandboxError> {
        let config = &self.0.config;
        let workspace = request.workspace;
        let mut bounds = request.bounds.clone();
        bounds.limits = bounds.limits.meet(&config.limits);
        if bounds.access(&workspace.cwd) == FileAccess::Write {
            bounds.write.extend(config.write.iter().cloned());
        }
        // An agent's notes may not be there yet; and a link was made by somebody else.
        bounds
            .write
            .retain(|root| root.canonicalize().is_ok_and(|real| real == *root));
        bounds.write.sort();
        bounds.write.dedup();
        if !tier.has_mounts() {
            // It can neither hide nor keep anything; somebody has agreed to that.
            return Ok((bounds, GuardedFiles::default()));
        }
        let is_open = bounds.access(Path::new("/")) == FileAccess::Write;
        let secrets = config.secrets.iter().filter(|_| !is_open);
        bounds
            .hide
            .extend(config.hide.iter().chain(secrets).cloned());
        for path in workspace.reach().chain([workspace.spill.as_path()]) {
            match bounds.access(path) {
                FileAccess::Write => {}
                FileAccess::Hidden if is_open => bounds.write.push(path.to_owned()),
                FileAccess::Hidden | FileAccess::Read => bounds.show.push(path.to_owned()),
            }
        }
        let certificates = config.show.iter();
        let hidden = certificates.filter(|path| bounds.access(path) == FileAccess::Hidden);
        let hidden: Vec<PathBuf> = hidden.cloned().collect();
        bounds.show.extend(hidden);
        let access = |path: &Path| request.files.access(path, workspace, request.unasked);
        let surveys = &self.0.surveys;
        let mut survey = surveys.of(&bounds, ruled, request.unasked, access)?;
        bounds.hide.extend(programs.denied.iter().cloned());
        if request.unasked {
            bounds.hide.extend(programs.asked.iter().cloned());
        }
        bounds.hide.retain(|path| !request.opens(path));
        // What a person has opened beneath something hidden.
        for path in request.opened {
            if bounds.access(path) == FileAccess::Hidden {
                bounds.show.push(path.clone());
            }
        }
        // One that cannot be looked at may be there.
        let is_there = |path: &&PathBuf| match path.symlink_metadata() {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        let guarded = ruled.named.iter().filter(is_there).chain(&survey.guarded);
        bounds.hide.extend(survey.unreadable.iter().cloned());
        for path in guarded.filter(|path| !request.opens(path)) {
            match access(path) {
                FileAccess::Hidden => bounds.hide.push(path.clone()),
                FileAccess::Read => bounds.keep.push(path.clone()),
                FileAccess::Write => {}
            }
        }
        let above = self.repository_above(workspace, &mut bounds);
        survey.repositories.extend(above);
        Ok((bounds, survey))
    }

    /// Returns the checkout that the workspace is a part of, if its top lies above the workspace,
    /// and opens its git directory: what decides there what git runs is kept.
    fn repository_above(&self, workspace: &Workspace, bounds: &mut Confinement) -> Option<PathBuf> {
        if bounds.access(&workspace.cwd) != FileAccess::Write {
            return None;
        }
        let mut above = workspace.cwd.ancestors();
        let top = above.find(|top| top.join(".git").symlink_metadata().is_ok())?;
        let git = top.join(".git");
        let is_above = bounds.access(top) != FileAccess::Write && git.is_dir() && !git.is_symlink();
        if !is_above {
            return None;
        }
        bounds.write.push(git);
        Some(top.to_owned())
    }

    /// Returns the environment of a program that is not an agent's, with these changes.
    pub(crate) fn environment_with<'a>(
        &self,
        changes: impl Iterator<Item = (&'a OsStr, Option<&'a OsStr>)>,
    ) -> Vec<(OsString, OsString)> {
        let mut environment = self.0.config.environment.clone();
        for (name, value) in changes {
            environment.retain(|(known, _)| known != name);
            environment.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        }
        environment
    }

    /// Returns the command that runs posse's own git for a checkout: without a network, and so that
    /// only these directories can be written.
    pub(crate) fn git_command(
        &self,
        job: Job,
        write: Vec<PathBuf>,
        show: Vec<PathBuf>,
        temporary: &Path,
    ) -> Result<Command, SandboxError> {
        let config = &self.0.config;
        let mut bounds = Confinement {
            write,
            hide: config.hide.iter().chain(&config.secrets).cloned().collect(),
            limits: config.limits,
            ..Confinement::default()
        };
        let hidden = show.into_iter();
        let hidden: Vec<PathBuf> = hidden
            .filter(|path| bounds.access(path) == FileAccess::Hidden)
            .collect();
        bounds.show = hidden;
        let mut surroundings = Surroundings::look(&bounds, self.probe().support, temporary, &[]);
        // What is known of one worktree is kept from the others, but this call is about it.
        for repository in &mut surroundings.repositories {
            repository.keep.retain(|path| !bounds.write.contains(path));
        }
        let plan = Plan::new(&bounds, &surroundings)?;
        let command = Launcher::at(&config.launcher).command(&plan, job);
        command.map_err(SandboxError::Orders)
    }

    fn path(&self) -> &SearchPath {
        let path = || SearchPath::of(&self.0.config.environment);
        self.0.path.get_or_init(path)
    }

    /// Returns the caches, without links. A command could not make one that is missing, so it is
    /// made here.
    fn caches(&self) -> &[PathBuf] {
        self.0.caches.get_or_init(|| {
            let caches = self.0.config.caches.iter();
            let made = caches.filter(|path| std::fs::create_dir_all(path).is_ok());
            made.filter_map(|path| path.canonicalize().ok()).collect()
        })
    }

    fn job(&self, request: &CommandRequest<'_>) -> Job {
        let workspace = request.workspace;
        let environment = self.0.config.environment.iter();
        // In a worktree, git must find the worktree and not what the environment names.
        let is_elsewhere = |name: &OsString| {
            workspace.mirror.is_some() && OF_A_REPOSITORY.iter().any(|known| name == known)
        };
        let mut environment: Vec<_> = environment
            .filter(|(name, _)| !is_elsewhere(name))
            .cloned()
            .collect();
        environment.extend(request.variables.iter().cloned());
        environment.push((CALL_MARK.into(), request.marker.into()));
        environment.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        let (program, arguments) = match request.program {
            JobProgram::Shell(text) => (self.path().shell.into(), vec!["-c".into(), text.into()]),
            JobProgram::Words(words) => {
                let (program, arguments) = words.split_first().unzip();
                (
                    program.cloned().unwrap_or_default(),
                    arguments.unwrap_or_default().to_vec(),
                )
            }
        };
        Job {
            program,
            arguments,
            directory: request.directory.to_owned(),
            environment,
        }
    }
}

/// Makes a directory in the spill that nobody else can read, and returns it without links.
fn make_private(spill: &Path, name: &str) -> io::Result<PathBuf> {
    let path = spill.join(name);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&path)?;
    path.canonicalize()
}
