//! What a tool is. One place defines a tool: its name, its typed input, what it means to do, and the
//! doing. Nothing escapes a tool but the two fates of [`ToolError`].

mod typed;
mod workspace;

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{RawJson, ToolContent, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::permission::Policy;
use crate::port::BoxFuture;
use crate::port::clock::Clock;
pub use typed::{TypedTool, typed};
pub use workspace::{Seen, Workspace};

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
    fn run(&self, input: RawJson, context: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Ends what a call of a dead process has left running, if there is anything. `marker` is what
    /// [`ToolContext::marker`] was.
    fn abandon(&self, marker: String) -> BoxFuture<'static, ()> {
        drop(marker);
        Box::pin(std::future::ready(()))
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
}

/// What a call is given.
#[derive(Clone)]
pub struct ToolContext {
    /// Unique to this call, for ever: what it starts carries it, so that it can be found again.
    pub marker: String,
    /// What was judged: nothing else may be touched, whatever the input means by now.
    pub subject: Subject,
    /// The directories it may work in.
    pub workspace: Arc<Workspace>,
    /// The files whose content the agent knows.
    pub seen: Seen,
    /// The rules, for tools that find what they touch only while they run.
    pub policy: Arc<Policy>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model is told.
    pub content: Vec<ToolContent>,
}

impl ToolOutput {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ToolContent::text(text)] }
    }
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

    /// How the model is told of them, in an order that never changes.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.0.iter().map(|tool| tool.spec()).collect()
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|tool| tool.name()).collect()
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
