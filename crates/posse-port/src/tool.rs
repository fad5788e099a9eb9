//! The definition of a tool. One place defines a tool: its name, its typed input, its intent, and
//! its execution. A tool fails only in the two ways of [`ToolError`].

mod live_output;
mod subject;
mod typed;
mod workspace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_protocol::{
    Display, PermissionMode, RawJson, RunStatus, SandboxRefusal, ToolContent, ToolSpec,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::BoxFuture;
use crate::clock::Clock;
use crate::confinement::{FileAccess, Where};
use crate::store::{CallKey, CallOutcome, Op, OpResult};
pub use live_output::{LiveOutput, OutputViewers};
pub use subject::{CommandDisk, LeadKind, PathLead, Subject};
pub use typed::{TypedTool, typed};
pub use typed::{read, schema};
pub use workspace::{AgentMemory, Elsewhere, KnownFiles, VARIABLES, Workspace, WorktreeMap};

/// What a tool says that does not look for files.
const NO_FILES: &str = "this tool does not look for files";

/// Files that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Their paths in the working directory; the most recently changed ones come first.
    pub paths: Vec<String>,
    /// How many more there are.
    pub left_out: u64,
}

/// A tool, as the agent sees it.
pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &str;

    /// Describes the tool to the model. Its bytes never change while posse runs.
    fn spec(&self) -> ToolSpec;

    /// Returns what a call with this input would do. Has no effects; may look at the file system to
    /// resolve a path.
    fn intent(&self, input: &RawJson, workspace: &Workspace) -> Result<Intent, ToolError>;

    /// Returns what a person should see before they allow the call: the change that it would make.
    /// Made only if someone is asked. May read files, and must be short in time and text.
    fn preview(&self, input: &RawJson, workspace: &Workspace) -> Option<Display> {
        let _ = (input, workspace);
        None
    }

    /// Runs the call. Must end soon after `context.cancel`: the caller waits one second only.
    fn run(
        &self,
        input: RawJson,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Finds files for a person, by a part of their paths in the working directory. The context has
    /// the subject of a call with the tool's default input.
    fn find_files(
        &self,
        part: String,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<FoundFiles, ToolError>> {
        drop((part, context));
        Box::pin(std::future::ready(Err(ToolError::Tell(NO_FILES.into()))))
    }

    /// Formats, for the model, the results of the operations that a call requested.
    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        operated_plainly(results)
    }

    /// Ends anything that a call of a dead process left running. `marker` is the call's
    /// [`ToolContext::marker`].
    fn abandon(&self, marker: String) -> BoxFuture<'static, ()> {
        drop(marker);
        Box::pin(std::future::ready(()))
    }
}

/// The default text for the results of operations.
fn operated_plainly(results: &[OpResult]) -> Result<ToolOutput, ToolError> {
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    match refused.map(ToString::to_string).collect::<Vec<_>>() {
        refused if refused.is_empty() => Ok(ToolOutput::text("done")),
        refused => Err(ToolError::Tell(refused.join("; "))),
    }
}

/// What a call would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// True if it changes nothing outside. Other calls are recorded before they begin.
    pub read_only: bool,
    /// True if it may run concurrently with its neighbours.
    pub beside_others: bool,
    /// What permission rules are checked against.
    pub subject: Subject,
    /// True if it only waits for other agents and runs: a waiting agent holds no run slot.
    pub waits: bool,
    /// A line for people, for example `Read src/main.rs`.
    pub title: String,
}

/// Decides which files may be read and changed. Paths are absolute and resolved.
pub trait FileGuard: Send + Sync {
    /// Returns true if a rule denies reading this path.
    fn denies_reading(&self, path: &Path, workspace: &Workspace) -> bool;

    /// Returns true if a person would have to be asked before this path is read.
    fn asks_reading(&self, path: &Path, workspace: &Workspace) -> bool;

    /// Returns true if a rule denies editing this path, or reading it.
    fn denies_editing(&self, path: &Path, workspace: &Workspace) -> bool;

    /// Returns what a command may do with a file if it may change everything around it: rules can
    /// deny more, and what is protected stays. `unasked` if no person has agreed to the command.
    fn access(&self, path: &Path, workspace: &Workspace, unasked: bool) -> FileAccess;

    /// Returns the paths that rules say something about, so that [`FileGuard::access`] can be asked.
    fn ruled_paths(&self, workspace: &Workspace) -> RuledPaths;
}

/// Decides which hosts a command may be connected to. Hosts are names in small letters, or
/// addresses.
pub trait HostGate: Send + Sync {
    /// Waits until rules or a person decide about a host. Fails with the reason if it is not to be
    /// reached.
    fn admit<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<(), HostRefused>>;

    /// Returns true if rules allow it; nobody is asked.
    fn allows(&self, host: &str, port: u16) -> bool;
}

/// A host is not to be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct HostRefused {
    /// Why.
    pub why: String,
}

/// Lets commands connect to nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoHosts;

impl HostGate for NoHosts {
    fn admit<'a>(&'a self, _host: &'a str, _port: u16) -> BoxFuture<'a, Result<(), HostRefused>> {
        let why = "it may reach no host".to_owned();
        Box::pin(std::future::ready(Err(HostRefused { why })))
    }

    fn allows(&self, _host: &str, _port: u16) -> bool {
        false
    }
}

/// Where the files are that rules keep from commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuledPaths {
    /// Paths without wildcards, whether or not they exist.
    pub named: Vec<PathBuf>,
    /// Directories beneath which others may match.
    pub beneath: Vec<PathBuf>,
    /// The rules themselves: if they are the same, so are the files.
    pub rules: Vec<String>,
    /// Programs of which rules deny every call.
    pub denied_programs: Vec<String>,
    /// Programs of which rules ask about every call.
    pub asked_programs: Vec<String>,
}

/// Context of a call.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub key: CallKey,
    /// The model's id of it.
    pub call: String,
    /// Unique to this call, for ever: processes that it starts carry it, so that they can be found
    /// again.
    pub marker: String,
    /// The subject that was permitted: nothing else may be touched, even if the input now resolves
    /// differently.
    pub subject: Subject,
    /// The directories the call may work in.
    pub workspace: Arc<Workspace>,
    /// The files whose content the agent knows.
    pub seen: KnownFiles,
    /// Permissions of files, for tools that discover paths only while they run.
    pub files: Arc<dyn FileGuard>,
    /// Permissions of hosts, for commands that connect to some while they run.
    pub hosts: Arc<dyn HostGate>,
    /// Where commands of the call run.
    pub place: Where,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Outcome of the tool that this call requested first; see [`FollowUp::ToolFirst`].
    pub first: Option<CallOutcome>,
    /// Where it shows what it prints while it runs.
    pub output: LiveOutput,
    /// True if a hook reads [`ToolOutput::answer`], which is not made otherwise.
    pub wants_answer: bool,
    /// Cancelled when the call must end.
    pub cancel: CancellationToken,
}

/// The result of a tool.
#[derive(Debug)]
pub struct ToolOutput {
    /// The content for the model.
    pub content: Vec<ToolContent>,
    /// The result as an object for hooks, with the names of fields that their scripts rely on. Only
    /// if it was wanted, and the tool has one.
    pub answer: Option<serde_json::Value>,
    /// Follow-up, committed in the transaction that stores the result.
    pub then: FollowUp,
}

impl ToolOutput {
    /// Creates an output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ToolContent::text(text)],
            answer: None,
            then: FollowUp::Nothing,
        }
    }

    /// Adds the object for hooks if it is wanted.
    pub fn with_answer(
        self,
        context: &ToolContext,
        answer: impl FnOnce() -> serde_json::Value,
    ) -> Self {
        Self {
            answer: context.wants_answer.then(answer),
            ..self
        }
    }
}

/// Follow-up of a tool's result.
#[derive(Default)]
pub enum FollowUp {
    /// None.
    #[default]
    Nothing,
    /// Operations on mail, tasks and teams. [`Tool::operated`] formats their results, which replace
    /// the content.
    Operations(Vec<Op>),
    /// The result shows mail of the agent's inbox, by these numbers; it is not shown again.
    MailShown(Vec<u64>),
    /// The agent's permission mode changes with the result.
    Mode(PermissionMode),
    /// A run continues in the background.
    Runs(Box<NewRun>),
    /// Another tool must run first, as if the model had called it: permission rules apply. Then
    /// this one runs again, with its outcome in [`ToolContext::first`]. The content is dropped.
    ToolFirst {
        /// The other tool.
        tool: String,
        /// Its input.
        input: RawJson,
    },
    /// The sandbox has refused something to the command, which has ended with this content. A
    /// person may allow it, and then the tool runs again.
    Refused {
        /// What it was refused.
        refusal: SandboxRefusal,
        /// True if the command has failed; false if that cannot be told, since its parts have
        /// exit codes of their own.
        failed: bool,
    },
}

impl std::fmt::Debug for FollowUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Operations(ops) => f.debug_tuple("Operations").field(ops).finish(),
            Self::MailShown(numbers) => f.debug_tuple("MailShown").field(numbers).finish(),
            Self::Mode(mode) => f.debug_tuple("Mode").field(mode).finish(),
            Self::Runs(run) => f.debug_tuple("Runs").field(&run.id).finish(),
            Self::ToolFirst { tool, .. } => f.debug_tuple("ToolFirst").field(tool).finish(),
            Self::Refused { refusal, .. } => f.debug_tuple("Refused").field(refusal).finish(),
        }
    }
}

/// A background run that a call has started.
pub struct NewRun {
    /// Its id, for stopping it and in notifications.
    pub id: Uuid,
    /// Description for people.
    pub description: String,
    /// The file its output goes to.
    pub output: PathBuf,
    /// Completes once the run has ended and nothing of it is left. The token tells it to end.
    pub work: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, RunReport> + Send>,
}

/// How a background run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// The status.
    pub status: RunStatus,
    /// The same in one line, for example `exit code 1`.
    pub summary: String,
    /// The end of its output.
    pub result: String,
}

/// The two ways in which a tool fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The model is told and can try something else.
    #[error("{0}")]
    Tell(String),
    /// The run must stop.
    #[error("{0}")]
    Stop(String),
}

/// The tools of an agent, by name.
#[derive(Clone, Default)]
pub struct Toolbox {
    /// Those that its model is told of from the beginning.
    known: Vec<Arc<dyn Tool>>,
    /// Others, which its model comes to know.
    more: Option<Arc<dyn MoreTools>>,
}

/// Tools that come and go while an agent lives.
pub trait MoreTools: Send + Sync {
    /// Returns the tool of this name, as it is now.
    fn get(&self, name: &str) -> Option<Arc<dyn Tool>>;
}

impl Toolbox {
    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let known = self.known.iter().find(|tool| tool.name() == name);
        let more = || self.more.as_ref()?.get(name);
        known.cloned().or_else(more)
    }

    /// Returns the intent of a call of one of the tools.
    pub fn intent(
        &self,
        tool: &str,
        input: &RawJson,
        workspace: &Workspace,
    ) -> Result<Intent, ToolError> {
        match self.get(tool) {
            Some(tool) => {
                // Model input must not end the agent, even if it makes a tool panic.
                let look = AssertUnwindSafe(|| tool.intent(input, workspace));
                let crashed = |_| {
                    Err(ToolError::Tell(
                        "the tool panicked while reading this input".into(),
                    ))
                };
                catch_unwind(look).unwrap_or_else(crashed)
            }
            None => {
                let names = self.names().join(", ");
                Err(ToolError::Tell(format!(
                    "there is no tool {tool}; there are {names}"
                )))
            }
        }
    }

    /// Returns what a person should see before they allow a call of one of the tools.
    pub fn preview(&self, tool: &str, input: &RawJson, workspace: &Workspace) -> Option<Display> {
        let tool = self.get(tool)?;
        // As for an intent: neither the model's input nor a file may end the agent.
        let look = AssertUnwindSafe(|| tool.preview(input, workspace));
        catch_unwind(look).ok().flatten()
    }

    /// Descriptions for the model from the beginning, in a fixed order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.known.iter().map(|tool| tool.spec()).collect()
    }

    /// Names of those that the model is told of from the beginning, in order.
    pub fn names(&self) -> Vec<&str> {
        self.known.iter().map(|tool| tool.name()).collect()
    }

    /// Those that the model is told of from the beginning, in order.
    pub fn all(&self) -> &[Arc<dyn Tool>] {
        &self.known
    }

    /// Appends tools.
    pub fn extend(&mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.known.extend(tools);
    }

    /// Adds tools that come and go.
    pub fn set_more(&mut self, more: Arc<dyn MoreTools>) {
        self.more = Some(more);
    }

    /// Keeps only the tools that `keep` accepts, among those that the model is told of from the
    /// beginning.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.known.retain(|tool| keep(tool.name()));
    }
}

impl FromIterator<Arc<dyn Tool>> for Toolbox {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self {
            known: tools.into_iter().collect(),
            more: None,
        }
    }
}
