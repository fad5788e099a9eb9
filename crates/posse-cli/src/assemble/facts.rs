//! What a front end can say of a session before it begins.

use std::path::PathBuf;

use posse_protocol::{AgentId, PermissionMode};

/// What a front end can say of a session before anything has happened in it.
#[derive(Clone, Debug)]
pub(crate) struct SessionFacts {
    /// The session, which is its root agent.
    pub(crate) session: AgentId,
    /// The command that goes on with it, without its words.
    pub(crate) again: String,
    /// The model's name.
    pub(crate) model: String,
    /// Where the agent works.
    pub(crate) cwd: PathBuf,
    /// The names of its tools.
    pub(crate) tools: Vec<String>,
    /// The types of agents that it can start.
    pub(crate) agents: Vec<String>,
    /// The skills that its model can load.
    pub(crate) skills: Vec<String>,
    /// The commands that a person can call.
    pub(crate) commands: Vec<String>,
    /// The mode it starts in.
    pub(crate) mode: PermissionMode,
    /// Where the key comes from; none if there is none.
    pub(crate) key_source: Option<&'static str>,
    /// How often a model call is tried again.
    pub(crate) retries: u32,
}
