//! What the command line asks for, before anything is opened.

use std::path::{Path, PathBuf};

use posse_port::model::{Effort, Thinking};
use posse_protocol::{AgentId, Name, PermissionMode, TeamPlan};
use posse_runtime::hook::Preparation;
use posse_runtime::live::setup::{Approver, Limits};
use posse_runtime::session::branch::CopiedHistory;

use super::profile_args::ProfileArgs;
use super::program_hooks::ProgramHooks;
use super::provider::ProviderArgs;
use crate::config::search_paths::{SearchPaths, SettingSources};
use crate::config::settings::agents::AgentFlags;
use crate::config::settings::teams::Backend;
use crate::config::store::StoreArgs;
use crate::config::unsupported::WithoutGuards;
use crate::definitions::InlineAgents;
use crate::definitions::servers::ServerFlags;

/// The session to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// The one of this directory that was used last.
    Newest,
    /// The one whose id begins with this.
    Id(String),
}

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessPurpose {
    /// It runs a job, and ends.
    Job,
    /// It only hosts members that others have started.
    Host,
    /// A person sits in front and talks.
    Conversation,
}

/// What the command line asks for.
pub(crate) struct RunConfig {
    /// The session to continue; `None` for a new one.
    pub(crate) which: Option<SessionChoice>,
    /// Continue in a copy that begins with this much of that session.
    pub(crate) fork: Option<CopiedHistory>,
    /// The team that the agent leads.
    pub(crate) team: Option<Name>,
    /// The configuration of a new lead.
    pub(crate) lead: Option<LeadConfig>,
    pub(crate) provider: ProviderArgs,
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) flags: SessionFlags,
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
    /// What the process is for.
    pub(crate) purpose: ProcessPurpose,
    pub(crate) store: StoreArgs,
    /// Print details, too.
    pub(crate) verbose: bool,
}

/// Flags about the settings and the model of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionFlags {
    /// The word of `--permission-mode`, if it is another program's.
    pub(crate) foreign_mode: Option<&'static str>,
    /// `--tools`: the only tools that agents may use.
    pub(crate) tools: Option<Vec<String>>,
    /// `--settings`: JSON, or the path of a file.
    pub(crate) settings: Option<String>,
    pub(crate) sources: SettingSources,
    /// MCP servers of the command line.
    pub(crate) servers: ServerFlags,
    pub(crate) profile: ProfileArgs,
    /// What to do if hooks that guard calls do not run.
    pub(crate) without_guards: WithoutGuards,
    /// The ID of a new session, if it is given.
    pub(crate) session_id: Option<AgentId>,
    /// `--trust`: all of the workspace counts, in this run.
    pub(crate) trusts: bool,
    /// What Setup hooks prepare the workspace for: `--init`, `--maintenance`.
    pub(crate) prepares: Option<Preparation>,
    /// Hooks of the program that drives posse.
    pub(crate) program_hooks: Option<ProgramHooks>,
}

impl RunConfig {
    /// Returns where settings, instructions and definitions of an agent in `cwd` are looked for.
    pub(crate) fn search_paths(&self, cwd: &Path) -> SearchPaths {
        SearchPaths::at(cwd)
            .limited_to(self.flags.sources)
            .trusting_all_if(self.flags.trusts)
    }

    /// Returns what flags ask for and posse does otherwise or not at all, a line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut lines = self.flags.profile.unsupported();
        if let Some(word) = self.flags.foreign_mode {
            lines.push(format!(
                "--permission-mode {word} is not a mode of posse; it counts as `default`"
            ));
        }
        let resumed = self.which.is_some();
        let fixed = [
            ("--effort", self.flags.profile.effort.is_some()),
            (
                "--thinking",
                self.flags.profile.thinking() != Thinking::Default,
            ),
        ];
        for (flag, _) in fixed.iter().filter(|(_, given)| resumed && *given) {
            lines.push(format!(
                "{flag} is for new sessions: this one continues as it was started"
            ));
        }
        lines
    }
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
    /// What its file declares.
    pub(crate) plan: TeamPlan,
}
