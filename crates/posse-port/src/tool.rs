//! What a tool is. One place defines a tool: its name, its typed input, what it means to do, and the
//! doing. Nothing escapes a tool but the two fates of [`ToolError`].

mod typed;
mod workspace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_protocol::{RawJson, RunStatus, ToolContent, ToolSpec};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::BoxFuture;
use crate::clock::Clock;
use crate::store::{CallKey, CallOutcome, Op, OpResult};
pub use typed::{TypedTool, typed};
pub use typed::{read, schema};
pub use workspace::{AgentMemory, Elsewhere, KnownFiles, Workspace, WorktreeMap};

/// A tool, as the agent sees it.
pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &str;

    /// How the model is told of it. Its bytes never change while posse runs.
    fn spec(&self) -> ToolSpec;

    /// What a call with this input means to do. Does nothing; may look at the file system, to know
    /// what a path really names.
    fn intent(&self, input: &RawJson, workspace: &Workspace) -> Result<Intent, ToolError>;

    /// Does it. Must end soon after `context.cancel`; whoever waits does so for a second only.
    fn run(
        &self,
        input: RawJson,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// What the model is told of what came of the operations that a call had for a consequence.
    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        operated_plainly(results)
    }

    /// Ends what a call of a dead process has left running, if there is anything. `marker` is what
    /// [`ToolContext::marker`] was.
    fn abandon(&self, marker: String) -> BoxFuture<'static, ()> {
        drop(marker);
        Box::pin(std::future::ready(()))
    }
}

/// What is told of operations by a tool that has no words of its own for them.
fn operated_plainly(results: &[OpResult]) -> Result<ToolOutput, ToolError> {
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    match refused.map(ToString::to_string).collect::<Vec<_>>() {
        refused if refused.is_empty() => Ok(ToolOutput::text("done")),
        refused => Err(ToolError::Tell(refused.join("; "))),
    }
}

/// What a call means to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Whether it changes nothing outside. What does is recorded before it begins.
    pub read_only: bool,
    /// Whether it may run beside its neighbours.
    pub beside_others: bool,
    /// What rules are asked about.
    pub subject: Subject,
    /// Whether it only waits for other agents and runs: who waits takes no place from those who work.
    pub waits: bool,
    /// A line for people, `Read src/main.rs` for one.
    pub title: String,
}

/// What a call touches, in the terms of permission rules. Paths are absolute and without `.` or `..`;
/// where links lead elsewhere, both what was named and what it leads to are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing that a rule could be about.
    Nothing,
    /// Reads these.
    Reads(Vec<PathBuf>),
    /// Changes these.
    Edits(Vec<PathBuf>),
    /// Runs a shell command.
    Runs(String),
    /// Fetches from a host.
    Fetches {
        /// The host's name.
        host: String,
    },
    /// Starts an agent.
    Starts {
        /// The agent's type.
        agent: String,
    },
    /// Follows a skill.
    Follows {
        /// The skill's name.
        skill: String,
    },
}

/// Says which files may be read. Paths are absolute and resolved.
pub trait ReadGuard: Send + Sync {
    /// Returns true if a rule denies reading this path.
    fn denies_reading(&self, path: &Path, workspace: &Workspace) -> bool;

    /// Returns true if a person would have to be asked before this path is read.
    fn asks_reading(&self, path: &Path, workspace: &Workspace) -> bool;
}

/// What a call is given.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub key: CallKey,
    /// The model's id of it.
    pub call: String,
    /// Unique to this call, for ever: what it starts carries it, so that it can be found again.
    pub marker: String,
    /// What was judged: nothing else may be touched, whatever the input means by now.
    pub subject: Subject,
    /// The directories it may work in.
    pub workspace: Arc<Workspace>,
    /// The files whose content the agent knows.
    pub seen: KnownFiles,
    /// What may be read, for tools that find what they touch only while they run.
    pub reads: Arc<dyn ReadGuard>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What came of the tool that this one wanted to be used first; see [`FollowUp::ToolFirst`].
    pub first: Option<CallOutcome>,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
}

/// What a tool answers.
#[derive(Debug)]
pub struct ToolOutput {
    /// What the model is told.
    pub content: Vec<ToolContent>,
    /// What else is to be done, in the transaction that keeps the answer.
    pub then: FollowUp,
}

impl ToolOutput {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ToolContent::text(text)],
            then: FollowUp::Nothing,
        }
    }
}

/// What a tool's answer has for a consequence.
#[derive(Default)]
pub enum FollowUp {
    /// None.
    #[default]
    Nothing,
    /// Operations on mail, tasks and teams. What came of them is told by [`Tool::operated`] in place of
    /// the content.
    Operations(Vec<Op>),
    /// The answer shows mail of the agent's inbox, by these numbers: it is not shown again.
    MailShown(Vec<u64>),
    /// Something goes on in the background.
    Runs(Box<NewRun>),
    /// Another tool is to be used first, as if the model had called it: rules are asked about it. Then this one
    /// runs again, with what came of it in [`ToolContext::first`]. The content is dropped.
    ToolFirst {
        /// The other tool.
        tool: String,
        /// Its input.
        input: RawJson,
    },
}

impl std::fmt::Debug for FollowUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Operations(ops) => f.debug_tuple("Operations").field(ops).finish(),
            Self::MailShown(numbers) => f.debug_tuple("MailShown").field(numbers).finish(),
            Self::Runs(run) => f.debug_tuple("Runs").field(&run.id).finish(),
            Self::ToolFirst { tool, .. } => f.debug_tuple("ToolFirst").field(tool).finish(),
        }
    }
}

/// Something that a call has started and that goes on.
pub struct NewRun {
    /// Its id, by which it is stopped and told of.
    pub id: Uuid,
    /// What it does, for people.
    pub description: String,
    /// Where its output goes.
    pub output: PathBuf,
    /// Ends when it has, and nothing of it is left. The token tells it to end.
    pub work: Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, RunReport> + Send>,
}

/// How something ended that went on in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// How.
    pub status: RunStatus,
    /// The same in a line: `exit code 1` for one.
    pub summary: String,
    /// The end of what it printed.
    pub result: String,
}

/// The two ways in which a tool fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The model is told and may try something else.
    #[error("{0}")]
    Tell(String),
    /// The run must not go on.
    #[error("{0}")]
    Stop(String),
}

/// The tools of an agent, by name.
#[derive(Clone, Default)]
pub struct Toolbox(Vec<Arc<dyn Tool>>);

impl Toolbox {
    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.name() == name)
    }

    /// What a call of one of them means to do.
    pub fn intent(
        &self,
        tool: &str,
        input: &RawJson,
        workspace: &Workspace,
    ) -> Result<Intent, ToolError> {
        match self.get(tool) {
            Some(tool) => {
                // Input of a model must not end the agent, even if it makes a tool panic.
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

    /// How the model is told of them, in an order that never changes.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.0.iter().map(|tool| tool.spec()).collect()
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|tool| tool.name()).collect()
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Arc<dyn Tool>] {
        &self.0
    }

    /// More of them, after the others.
    pub fn extend(&mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.0.extend(tools);
    }

    /// Only those that `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|tool| keep(tool.name()));
    }
}

impl FromIterator<Arc<dyn Tool>> for Toolbox {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self(tools.into_iter().collect())
    }
}
