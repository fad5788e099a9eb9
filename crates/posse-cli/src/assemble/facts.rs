//! What a front end can tell about a session before it begins.

use std::path::PathBuf;

use posse_protocol::{AgentId, PermissionMode};
use posse_runtime::live::servers::ServerWatch;

use crate::config::unsupported::MissingGuard;

/// What a front end can tell about a session before anything has happened in it.
#[derive(Clone, Debug)]
pub(crate) struct SessionFacts {
    /// The session, which is its root agent.
    pub(crate) session: AgentId,
    /// The command that continues it, without a prompt.
    pub(crate) again: String,
    /// The model's name.
    pub(crate) model: String,
    /// Its context window, in tokens, if known.
    pub(crate) window: Option<u64>,
    /// Where the agent works.
    pub(crate) cwd: PathBuf,
    /// The names of its tools.
    pub(crate) tools: Vec<String>,
    /// The agent types that it can start.
    pub(crate) agents: Vec<String>,
    /// The skills that its model can load.
    pub(crate) skills: Vec<String>,
    /// The commands that a person can call.
    pub(crate) commands: Vec<String>,
    /// bypassPermissions is switched off by settings.
    pub(crate) bypass_disabled: bool,
    /// Its MCP servers.
    pub(crate) servers: ServerWatch,
    /// The mode it starts in.
    pub(crate) mode: PermissionMode,
    /// The variable that the key comes from; `None` if there is no key.
    pub(crate) key_source: Option<&'static str>,
    /// Number of times a failed model call is retried.
    pub(crate) retries: u32,
    /// Hooks that would have guarded calls, and do not run.
    pub(crate) missing_guards: Vec<MissingGuard>,
}
