//! What the command line asks for, before anything is opened.

use std::path::PathBuf;

use posse_port::model::Effort;
use posse_protocol::{Name, PermissionMode};
use posse_runtime::live::setup::{Approver, Limits};

use super::provider::ProviderArgs;
use crate::config::settings::agents::AgentFlags;
use crate::config::settings::teams::Backend;
use crate::config::store::StoreArgs;
use crate::definitions::InlineAgents;

/// Which session goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// The one of this directory that was used last.
    Newest,
    /// The one whose id begins so.
    Id(String),
}

/// What the command line asks for.
pub(crate) struct RunConfig {
    pub(crate) which: Option<SessionChoice>,
    pub(crate) fork: bool,
    /// The team that the agent leads.
    pub(crate) team: Option<Name>,
    /// What a new lead is.
    pub(crate) lead: Option<LeadConfig>,
    pub(crate) provider: ProviderArgs,
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) add_dir: Vec<PathBuf>,
    pub(crate) limits: Limits,
    pub(crate) agents: AgentFlags,
    /// `--agents`.
    pub(crate) given: InlineAgents,
    pub(crate) system_prompt: Option<String>,
    pub(crate) append_system_prompt: Option<String>,
    pub(crate) approver: Approver,
    /// `--team-backend`.
    pub(crate) backend: Option<Backend>,
    /// Whether it only hosts members that others have started.
    pub(crate) is_host: bool,
    pub(crate) store: StoreArgs,
    /// Whether all is told.
    pub(crate) verbose: bool,
}

/// What the file of a team says about its lead.
pub(crate) struct LeadConfig {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<Effort>,
    /// The mode that it has unless a flag says another.
    pub(crate) mode: Option<PermissionMode>,
    /// The mode that it has at most: whoever wrote the repository says so, who may only tighten.
    pub(crate) strictest: Option<PermissionMode>,
    /// More for its system prompt.
    pub(crate) prompt: Vec<String>,
}
