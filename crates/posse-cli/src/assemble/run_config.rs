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

/// The session to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// The one of this directory that was used last.
    Newest,
    /// The one whose id begins with this.
    Id(String),
}

/// What the command line asks for.
pub(crate) struct RunConfig {
    /// The session to continue; `None` for a new one.
    pub(crate) which: Option<SessionChoice>,
    /// Continue in a copy of that session.
    pub(crate) fork: bool,
    /// The team that the agent leads.
    pub(crate) team: Option<Name>,
    /// The configuration of a new lead.
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
    /// Who answers when a tool call needs approval.
    pub(crate) approver: Approver,
    /// `--team-backend`.
    pub(crate) backend: Option<Backend>,
    /// The process only hosts members that others have started.
    pub(crate) is_host: bool,
    pub(crate) store: StoreArgs,
    /// Print details, too.
    pub(crate) verbose: bool,
}

/// What a team's file says about its lead.
pub(crate) struct LeadConfig {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<Effort>,
    /// The mode, unless a flag names another.
    pub(crate) mode: Option<PermissionMode>,
    /// The most permissive mode allowed: the file belongs to the repository, which may only
    /// tighten.
    pub(crate) strictest: Option<PermissionMode>,
    /// Additions to its system prompt.
    pub(crate) prompt: Vec<String>,
}
