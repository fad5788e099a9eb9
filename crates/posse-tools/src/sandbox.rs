//! The sandbox of this process's commands: from what an agent may do, what is on the disk and what
//! the kernel gives to a job that a launcher confines.

mod survey_cache;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use posse_permission::guarded_names;
use posse_port::confinement::{Confinement, FileAccess, Limits, NetworkAccess};
use posse_port::tool::{FileGuard, ToolContext, Workspace};
use posse_protocol::SandboxRefusal;
use posse_sandbox::{
    Backend as _, ConfinedJob, Finding, Job, Launcher, Linux, Plan, PlanError, Probe, Refusals,
    Surroundings, Tier, Watch,
};

use crate::process_table::CALL_MARK;
use crate::proxy::{Proxy, Upstream};
use crate::shell::OF_A_REPOSITORY;
use survey_cache::SurveyCache;

/// The directory in an agent's spill that is `/tmp` for its commands.
const TEMPORARY: &str = "tmp";
/// The directory in an agent's spill for what its commands write to caches.
const CACHES: &str = "caches";
/// The directory in an agent's spill for what must not stay where a command has made it.
const QUARANTINE: &str = "quarantine";

/// Files that are many programs, by the name that they are called by.
const MANY_PROGRAMS: [&str; 3] = ["busybox", "toybox", "coreutils"];

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
    /// too: what they write is kept for the agent alone.
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
    shell: OnceLock<&'static str>,
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
}

/// A command that is to be confined.
pub(crate) struct CommandRequest<'a> {
    pub(crate) command: &'a str,
    pub(crate) marker: &'a str,
    pub(crate) workspace: &'a Workspace,
    pub(crate) files: &'a dyn FileGuard,
    pub(crate) bounds: &'a Confinement,
    pub(crate) unasked: bool,
    /// What a person has opened to it.
    pub(crate) opened: &'a [PathBuf],
    /// Whether it runs because the sandbox holds it.
    pub(crate) is_held: bool,
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

/// What is looked at when a command has ended.
#[derive(Debug, Default)]
pub(crate) struct AfterCommand {
    watch: Option<Watch>,
    quarantine: PathBuf,
    /// What it was confined by, where it ran, and what a person had opened to it.
    confined: Option<ConfinedBy>,
    /// Its proxy, which serves it as long as this is there.
    proxy: Option<Proxy>,
}

#[derive(Debug)]
struct ConfinedBy {
    plan: Plan,
    directory: PathBuf,
    opened: Vec<PathBuf>,
    /// Paths that stay closed whatever a person says.
    closed: Vec<PathBuf>,
}

impl AfterCommand {
    /// Returns what the sandbox has refused to a command, from what it printed, and what is told of
    /// what no person can lift. `surely` if it has failed; else only what is quoted counts.
    pub(crate) fn refused(
        &self,
        printed: &str,
        surely: bool,
        context: &ToolContext,
    ) -> (Option<SandboxRefusal>, Vec<String>) {
        let Some(by) = &self.confined else {
            return (None, Vec::new());
        };
        let (workspace, files) = (&*context.workspace, &*context.files);
        let found = Refusals::in_output(printed, &by.directory, &by.plan, surely);
        let mut notes = Vec::new();
        let mut tell = |verb: &str, path: &Path, why: &str| {
            let path = path.display();
            notes.push(format!(
                "(the sandbox keeps {path} from being {verb}: {why})"
            ));
        };
        let is_closed = |path: &Path| {
            let is_inside = workspace.reach().any(|root| path.starts_with(root));
            !is_inside && by.closed.iter().any(|closed| path.starts_with(closed))
        };
        let mut write = BTreeSet::new();
        for path in &found.write {
            match to_be_opened(path, &by.plan, workspace) {
                Some(opened) if by.opened.contains(&opened) => {}
                Some(opened) if is_closed(&opened) || files.denies_editing(&opened, workspace) => {
                    tell("written", path, "nobody can allow that");
                }
                Some(opened) => drop(write.insert(opened)),
                None => tell("written", path, "it would have to run outside"),
            }
        }
        let mut read = Vec::new();
        for path in found.read {
            if is_closed(&path) || files.denies_reading(&path, workspace) {
                tell("read", &path, "nobody can allow that");
            } else if !by.opened.contains(&path) {
                read.push(path);
            }
        }
        let refusal = SandboxRefusal {
            write: write.into_iter().collect(),
            read,
            // About hosts that the proxy was asked for, a person has decided.
            network: found.network && self.proxy.as_ref().is_none_or(|it| it.notes().is_empty()),
        };
        let refusal = Some(refusal).filter(|it| *it != SandboxRefusal::default());
        (refusal, notes)
    }

    /// Moves away what must not stay, and returns what the model is told about that and about hosts
    /// that were not reached.
    pub(crate) fn check(&self) -> Vec<String> {
        let findings = self.watch.as_ref().map(|it| it.after(&self.quarantine));
        let found = findings.iter().flatten().map(told);
        found
            .chain(self.proxy.iter().flat_map(Proxy::notes))
            .collect()
    }

    /// Has a proxy serve the command until this is dropped.
    pub(crate) fn served_by(&mut self, proxy: Proxy) {
        self.proxy = Some(proxy);
    }
}

/// Returns what must be writable for a path to be written, without links: itself, what is kept
/// around it, or the directory that it would be made in. None if that would open far more than was
/// meant.
fn to_be_opened(path: &Path, plan: &Plan, workspace: &Workspace) -> Option<PathBuf> {
    let existing = path
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok())?;
    let resolved = existing.canonicalize().ok()?;
    let rest = path.strip_prefix(existing).ok()?;
    let path = match rest.as_os_str().is_empty() {
        true => resolved.clone(),
        false => resolved.join(rest),
    };
    if let Some(kept) = plan.kept_at(&path) {
        let exists = rest.as_os_str().is_empty();
        return Some(if exists { path } else { kept.to_owned() });
    }
    if workspace.reach().any(|root| path.starts_with(root)) {
        return Some(path);
    }
    let kept = workspace.reach().chain(workspace.home.as_deref());
    let of_kernel = ["/proc", "/sys", "/dev"];
    let is_wide = resolved.parent().is_none()
        || of_kernel.iter().any(|it| resolved.starts_with(it))
        || kept.into_iter().any(|it| it.starts_with(&resolved));
    // What git runs is in there, too.
    let is_git = resolved.ends_with(".git") || resolved.join("hooks").is_dir();
    (!is_wide && !is_git).then_some(resolved)
}

fn told(finding: &Finding) -> String {
    let path = finding.path.display();
    let why = "other programs run what is in such a file";
    match &finding.moved_to {
        Some(moved) => format!(
            "({path} was made by the command and moved to {}: {why}. Ask for it to be run outside \
             the sandbox if it is needed.)",
            moved.display()
        ),
        None => format!("({path} was made by the command and could not be moved away: {why})"),
    }
}

impl Sandbox {
    /// Returns the sandbox. What the machine gives is found out with the first command.
    pub fn new(config: SandboxConfig) -> Self {
        Self(Arc::new(SandboxState {
            config,
            surveys: SurveyCache::default(),
            shell: OnceLock::new(),
        }))
    }

    /// Returns what the machine gives. It is tried once in the life of a process.
    pub fn probe(&self) -> &'static Probe {
        static PROBE: OnceLock<Probe> = OnceLock::new();
        let launcher = || Launcher::at(&self.0.config.launcher);
        PROBE.get_or_init(|| Linux::new(launcher()).probe())
    }

    /// Returns true if commands need not be asked about, since it holds them.
    pub(crate) fn holds(&self) -> bool {
        !self.0.config.asks && self.probe().tier().has_mounts()
    }

    /// Returns the proxy through which hosts are reached.
    pub(crate) fn upstream(&self) -> Option<Arc<Upstream>> {
        self.0.config.upstream.clone()
    }

    /// Returns true if no command may run outside.
    pub(crate) fn is_never_left(&self) -> bool {
        self.0.config.never_outside
    }

    /// Prepares a command. Returns none if it runs outside, since there is no sandbox here and
    /// somebody has agreed to it.
    pub(crate) fn prepare(
        &self,
        request: &CommandRequest<'_>,
    ) -> Result<Option<ConfinedCommand>, SandboxError> {
        let config = &self.0.config;
        let probe = self.probe();
        let tier = probe.tier();
        if config.required && !tier.has_mounts() {
            return Err(SandboxError::Required(probe.missing.join("; ")));
        }
        // Tier B cannot let a command have the network and keep it from sockets of other programs.
        let is_beyond = tier == Tier::B && request.bounds.network == NetworkAccess::All;
        if (tier == Tier::C || is_beyond) && !request.is_held {
            return Ok(None);
        }
        let spill = &request.workspace.spill;
        let temporary = make_private(spill, TEMPORARY).map_err(SandboxError::Temporary)?;
        let (bounds, nested) = self.bounds(request, tier)?;
        let mut surroundings = Surroundings::look(&bounds, probe.support, &temporary, &nested);
        // Where a program has further names, those in the path are hidden with it.
        let programs = request.files.ruled_paths(request.workspace);
        let programs = self.files_of(&[programs.denied_programs, programs.asked_programs].concat());
        let twins = &mut surroundings.unfound_twins;
        twins.retain(|twin| !programs.contains(twin));
        if bounds.access(&request.workspace.cwd) == FileAccess::Write {
            let kept = make_private(spill, CACHES).map_err(SandboxError::Temporary)?;
            let caches = config.caches.iter().enumerate();
            let copies = caches.map(|(at, path)| (path.clone(), kept.join(at.to_string())));
            surroundings.copies = copies.collect();
        }
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
            Watch::before(&directories, &surroundings.repositories, &names)
        });
        let after = AfterCommand {
            watch,
            quarantine: spill.join(QUARANTINE),
            confined: Some(ConfinedBy {
                plan: plan.clone(),
                directory: request.workspace.cwd.clone(),
                opened: request.opened.to_vec(),
                closed: self.closed(request),
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

    /// Returns what the command may touch, with what is on the disk, and the checkouts beneath.
    fn bounds(
        &self,
        request: &CommandRequest<'_>,
        tier: Tier,
    ) -> Result<(Confinement, Vec<PathBuf>), SandboxError> {
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
            return Ok((bounds, Vec::new()));
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
        let ruled = request.files.ruled_paths(workspace);
        let access = |path: &Path| request.files.access(path, workspace, request.unasked);
        let survey = self
            .0
            .surveys
            .of(&bounds, &ruled, request.unasked, access)?;
        bounds.hide.extend(self.files_of(&ruled.denied_programs));
        if request.unasked {
            bounds.hide.extend(self.files_of(&ruled.asked_programs));
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
        let mut repositories = survey.repositories;
        repositories.extend(self.repository_above(workspace, &mut bounds));
        Ok((bounds, repositories))
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

    /// Returns the paths that stay closed whatever a person says.
    fn closed(&self, request: &CommandRequest<'_>) -> Vec<PathBuf> {
        let ruled = request.files.ruled_paths(request.workspace);
        let programs = self.files_of(&ruled.denied_programs);
        let hidden = self.0.config.hide.iter().cloned();
        hidden.chain(programs).collect()
    }

    /// Returns where programs are, without links: not that of the shell that runs every command,
    /// and not one that is many programs.
    fn files_of(&self, programs: &[String]) -> Vec<PathBuf> {
        if programs.is_empty() {
            return Vec::new();
        }
        let mut environment = self.0.config.environment.iter();
        let path = environment.find(|(name, _)| name == "PATH");
        let directories = path.map(|(_, path)| std::env::split_paths(path));
        let directories: Vec<PathBuf> = directories.into_iter().flatten().collect();
        let names = programs.iter().filter(|name| *name != self.shell());
        let found = names.flat_map(|name| directories.iter().map(move |it| it.join(name)));
        let mut files: Vec<PathBuf> = found
            .filter_map(|path| path.canonicalize().ok())
            .filter(|path| path.is_file())
            .filter(|path| !MANY_PROGRAMS.iter().any(|many| path.ends_with(many)))
            .collect();
        files.extend(other_names(&files, &directories));
        files.sort();
        files.dedup();
        files
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
        environment.push((CALL_MARK.into(), request.marker.into()));
        environment.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        Job {
            program: self.shell().into(),
            arguments: vec!["-c".into(), request.command.into()],
            directory: workspace.cwd.clone(),
            environment,
        }
    }

    /// Returns bash, or sh where there is no bash.
    fn shell(&self) -> &'static str {
        self.0.shell.get_or_init(|| {
            let mut environment = self.0.config.environment.iter();
            let path = environment.find(|(name, _)| name == "PATH");
            let has_bash = path.is_some_and(|(_, path)| {
                std::env::split_paths(path).any(|directory| directory.join("bash").is_file())
            });
            if has_bash { "bash" } else { "sh" }
        })
    }
}

/// Returns further names in these directories of files that have several.
fn other_names(files: &[PathBuf], directories: &[PathBuf]) -> Vec<PathBuf> {
    let several = files.iter().filter_map(|file| file.metadata().ok());
    let several: Vec<_> = several
        .filter(|found| found.nlink() > 1)
        .map(|found| (found.dev(), found.ino()))
        .collect();
    if several.is_empty() {
        return Vec::new();
    }
    let real = directories.iter().filter_map(|it| it.canonicalize().ok());
    let entries = real.flat_map(|it| std::fs::read_dir(it).into_iter().flatten().flatten());
    let same = entries.filter(|entry| {
        let found = entry.metadata();
        found.is_ok_and(|found| several.contains(&(found.dev(), found.ino())))
    });
    same.map(|entry| entry.path()).collect()
}

/// Makes a directory in the spill that nobody else can read, and returns it without links.
fn make_private(spill: &Path, name: &str) -> io::Result<PathBuf> {
    let path = spill.join(name);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&path)?;
    path.canonicalize()
}
