//! The events that hooks can be for.

use std::fmt;
use std::time::Duration;

/// Something that happens, at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// A process begins to work on a session, or its history was replaced by a summary.
    SessionStart,
    /// A process has ended its work on a session.
    SessionEnd,
    /// posse was asked to prepare a workspace: `--init`, `--maintenance`.
    Setup,
    /// A person's prompt, before anything of it is stored.
    UserPromptSubmit,
    /// A command that a person has typed, before it becomes a prompt.
    UserPromptExpansion,
    /// A tool call, before it begins.
    PreToolUse,
    /// A person is about to be asked about a call.
    PermissionRequest,
    /// A call was denied without asking anybody.
    PermissionDenied,
    /// A call has succeeded.
    PostToolUse,
    /// A call has failed.
    PostToolUseFailure,
    /// All calls of a reply have ended.
    PostToolBatch,
    /// A main agent is about to end its turn.
    Stop,
    /// A fault has ended a run.
    StopFailure,
    /// A sub-agent is about to be started.
    SubagentStart,
    /// A sub-agent is about to end its turn.
    SubagentStop,
    /// A teammate is about to become idle.
    TeammateIdle,
    /// A task is about to be created.
    TaskCreated,
    /// A task is about to be completed.
    TaskCompleted,
    /// A history is about to be replaced by a summary.
    PreCompact,
    /// A history was replaced by a summary.
    PostCompact,
    /// A person is told something.
    Notification,
    /// A text of the main agent is about to be shown.
    MessageDisplay,
    /// A server is about to ask a person.
    Elicitation,
    /// A person has answered a server.
    ElicitationResult,
    /// A file of settings has changed.
    ConfigChange,
    /// A memory file was read.
    InstructionsLoaded,
    /// The working directory has changed.
    CwdChanged,
    /// A file that is watched has changed.
    FileChanged,
    /// A directory was added to the workspace.
    DirectoryAdded,
    /// Another model is about to be used.
    PreModelSwitch,
    /// Another model is used.
    PostModelSwitch,
    /// A worktree is to be made.
    WorktreeCreate,
    /// A worktree is to be removed.
    WorktreeRemove,
}

/// What exit code 2, or a block, does at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Veto {
    /// What was about to happen does not happen.
    Prevents,
    /// What has happened stays, and the model reads the reason.
    TellsModel,
    /// A person reads the reason.
    TellsPerson,
    /// Nothing.
    Ignored,
}

/// Which kinds of hooks an event can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    All,
    /// No model is asked.
    WithoutModel,
    /// Programs of this machine.
    Local,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 33] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::Setup,
        Self::UserPromptSubmit,
        Self::UserPromptExpansion,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PostToolBatch,
        Self::Stop,
        Self::StopFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::TeammateIdle,
        Self::TaskCreated,
        Self::TaskCompleted,
        Self::PreCompact,
        Self::PostCompact,
        Self::Notification,
        Self::MessageDisplay,
        Self::Elicitation,
        Self::ElicitationResult,
        Self::ConfigChange,
        Self::InstructionsLoaded,
        Self::CwdChanged,
        Self::FileChanged,
        Self::DirectoryAdded,
        Self::PreModelSwitch,
        Self::PostModelSwitch,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
    ];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Setup => "Setup",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::UserPromptExpansion => "UserPromptExpansion",
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PostToolBatch => "PostToolBatch",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::TeammateIdle => "TeammateIdle",
            Self::TaskCreated => "TaskCreated",
            Self::TaskCompleted => "TaskCompleted",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Notification => "Notification",
            Self::MessageDisplay => "MessageDisplay",
            Self::Elicitation => "Elicitation",
            Self::ElicitationResult => "ElicitationResult",
            Self::ConfigChange => "ConfigChange",
            Self::InstructionsLoaded => "InstructionsLoaded",
            Self::CwdChanged => "CwdChanged",
            Self::FileChanged => "FileChanged",
            Self::DirectoryAdded => "DirectoryAdded",
            Self::PreModelSwitch => "PreModelSwitch",
            Self::PostModelSwitch => "PostModelSwitch",
            Self::WorktreeCreate => "WorktreeCreate",
            Self::WorktreeRemove => "WorktreeRemove",
        }
    }

    /// Returns the event of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// Returns why posse never has this event; none if it does.
    pub fn never(self) -> Option<&'static str> {
        match self {
            Self::CwdChanged => Some("each command of an agent begins in the same directory"),
            Self::DirectoryAdded => Some("directories are added only when posse starts"),
            Self::PreModelSwitch | Self::PostModelSwitch => {
                Some("another model is chosen by people only")
            }
            _ => None,
        }
    }

    /// Returns what a matcher is compared with; none if a matcher means nothing.
    pub fn matched(self) -> Option<&'static str> {
        match self {
            Self::SessionStart | Self::ConfigChange | Self::DirectoryAdded => Some("source"),
            Self::SessionEnd => Some("reason"),
            Self::Setup | Self::PreCompact | Self::PostCompact => Some("trigger"),
            Self::UserPromptExpansion => Some("command_name"),
            Self::PreToolUse
            | Self::PermissionRequest
            | Self::PermissionDenied
            | Self::PostToolUse
            | Self::PostToolUseFailure => Some("tool_name"),
            Self::StopFailure => Some("error"),
            Self::SubagentStart | Self::SubagentStop => Some("agent_type"),
            Self::Notification => Some("notification_type"),
            Self::Elicitation | Self::ElicitationResult => Some("mcp_server_name"),
            Self::InstructionsLoaded => Some("load_reason"),
            Self::FileChanged => Some("file name"),
            Self::UserPromptSubmit
            | Self::PostToolBatch
            | Self::Stop
            | Self::TeammateIdle
            | Self::TaskCreated
            | Self::TaskCompleted
            | Self::MessageDisplay
            | Self::CwdChanged
            | Self::PreModelSwitch
            | Self::PostModelSwitch
            | Self::WorktreeCreate
            | Self::WorktreeRemove => None,
        }
    }

    /// Returns true if it is about one tool call.
    pub fn is_of_tool(self) -> bool {
        self.matched() == Some("tool_name")
    }

    /// Returns true if its hooks can hold an agent back at the end of its turn.
    pub(crate) fn is_end_of_turn(self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop | Self::TeammateIdle)
    }

    /// Returns true if its hooks can keep a call from running.
    pub fn guards(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    fn kinds(self) -> Kinds {
        match self {
            Self::SessionStart | Self::Setup => Kinds::Local,
            Self::UserPromptSubmit
            | Self::UserPromptExpansion
            | Self::PreToolUse
            | Self::PermissionRequest
            | Self::PermissionDenied
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::PostToolBatch
            | Self::SubagentStop
            | Self::Stop
            | Self::TeammateIdle
            | Self::TaskCreated
            | Self::TaskCompleted => Kinds::All,
            _ => Kinds::WithoutModel,
        }
    }

    /// Returns true if hooks that ask a model can be for it.
    pub(crate) fn takes_prompts(self) -> bool {
        self.kinds() == Kinds::All
    }

    /// Returns true if hooks that ask a server can be for it.
    pub(crate) fn takes_servers(self) -> bool {
        self.kinds() != Kinds::Local
    }

    /// Returns what exit code 2 does.
    pub(crate) fn veto(self) -> Veto {
        match self {
            Self::UserPromptSubmit
            | Self::UserPromptExpansion
            | Self::PreToolUse
            | Self::PostToolBatch
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::Stop
            | Self::TeammateIdle
            | Self::TaskCreated
            | Self::TaskCompleted
            | Self::PreCompact
            | Self::Elicitation
            | Self::ElicitationResult
            | Self::ConfigChange
            | Self::PreModelSwitch
            | Self::WorktreeCreate => Veto::Prevents,
            Self::PostToolUse | Self::PostToolUseFailure => Veto::TellsModel,
            Self::SessionStart
            | Self::SessionEnd
            | Self::Setup
            | Self::PostCompact
            | Self::CwdChanged
            | Self::FileChanged
            | Self::DirectoryAdded => Veto::TellsPerson,
            Self::PermissionRequest
            | Self::PermissionDenied
            | Self::StopFailure
            | Self::Notification
            | Self::MessageDisplay
            | Self::InstructionsLoaded
            | Self::PostModelSwitch
            | Self::WorktreeRemove => Veto::Ignored,
        }
    }

    /// Returns true if its input says in which permission mode the agent is.
    pub(crate) fn tells_mode(self) -> bool {
        self.tells_effort() || self == Self::UserPromptSubmit || self == Self::UserPromptExpansion
    }

    /// Returns true if its programs may set variables for later commands.
    pub(crate) fn sets_variables(self) -> bool {
        matches!(self, Self::SessionStart | Self::Setup | Self::FileChanged)
    }

    /// Returns the most time that its hooks may take, whatever they say; none if they may say.
    pub(crate) fn most(self) -> Option<Duration> {
        match self {
            // posse ends afterwards.
            Self::SessionEnd | Self::WorktreeRemove => Some(Duration::from_secs(60)),
            _ => None,
        }
    }

    /// Returns true if its input says with which effort the agent works.
    pub(crate) fn tells_effort(self) -> bool {
        self.is_of_tool()
            || matches!(
                self,
                Self::PostToolBatch | Self::Stop | Self::SubagentStop | Self::TeammateIdle
            )
    }

    /// Returns true if plain text that a hook prints is context for the model.
    pub(crate) fn reads_text(self) -> bool {
        matches!(
            self,
            Self::SessionStart | Self::UserPromptSubmit | Self::UserPromptExpansion
        )
    }

    /// Returns true if `onFailure: "block"` means nothing: what blocks there would go on for ever.
    pub(crate) fn ignores_failures(self) -> bool {
        matches!(
            self,
            Self::Stop | Self::SubagentStop | Self::TaskCompleted | Self::TeammateIdle
        )
    }

    /// Returns how long a hook may take that says nothing about it. `usual` is that of its kind.
    pub(super) fn limit(self, usual: Duration) -> Duration {
        match self {
            Self::UserPromptSubmit => usual.min(Duration::from_secs(30)),
            Self::MessageDisplay => usual.min(Duration::from_secs(10)),
            Self::SessionEnd => usual.min(Duration::from_millis(1500)),
            _ => usual,
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
