//! Runs of sub-agents and background commands, on the wire.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    AgentId, AgentPlace, Name, Notification, PermissionMode, RawJson, RunChange, RunFacts, RunKind,
    RunStatus, RunUsage, WorktreeEnd,
};

/// What is known of a run from its start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub(super) struct WireRun {
    /// The id of the agent or command.
    task: Uuid,
    /// What runs.
    kind: RunKind,
    /// The type of the agent; empty for a command.
    agent_type: String,
    /// The registered name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Name>,
    /// What it does, for people.
    description: String,
    /// The call that started it; empty if a message did.
    call: String,
    /// The agent that started it.
    starter: AgentId,
    /// Its depth in the tree of agents; 1 if the main agent started it.
    depth: u32,
    /// The file with its output.
    output_file: String,
    /// Where and how the agent works; absent for a command, and if only its end is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<WireAgentPlace>,
}

/// Where and how an agent works when it begins.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AgentPlace")]
pub(super) struct WireAgentPlace {
    /// Its path in the tree of agents.
    path: String,
    /// The name of its model.
    model: String,
    /// Its permission mode.
    mode: PermissionMode,
    /// Its working directory, which is in its worktree if it has one.
    cwd: String,
    /// The branch of its own worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

impl From<AgentPlace> for WireAgentPlace {
    fn from(place: AgentPlace) -> Self {
        Self {
            path: place.path,
            model: place.model,
            mode: place.mode,
            cwd: text(place.cwd),
            branch: place.branch,
        }
    }
}

impl From<WireAgentPlace> for AgentPlace {
    fn from(place: WireAgentPlace) -> Self {
        Self {
            path: place.path,
            model: place.model,
            mode: place.mode,
            cwd: place.cwd.into(),
            branch: place.branch,
        }
    }
}

impl From<RunFacts> for WireRun {
    fn from(run: RunFacts) -> Self {
        Self {
            task: run.task,
            kind: run.kind,
            agent_type: run.agent_type,
            name: run.name,
            description: run.description,
            call: run.call,
            starter: run.starter,
            depth: run.depth,
            output_file: text(run.output_file),
            place: run.place.map(|place| (*place).into()),
        }
    }
}

impl From<WireRun> for RunFacts {
    fn from(run: WireRun) -> Self {
        Self {
            task: run.task,
            kind: run.kind,
            agent_type: run.agent_type,
            name: run.name,
            description: run.description,
            call: run.call,
            starter: run.starter,
            depth: run.depth,
            output_file: run.output_file.into(),
            place: run.place.map(|place| Box::new(place.into())),
        }
    }
}

/// Returns a path as text. Bytes that are not UTF-8 are replaced: it is for showing.
fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

tagged! {
    /// What happened to a run.
    #[schemars(rename = "RunChange")]
    enum WireRunChange {
        /// It has begun.
        Started {
            /// What it was told.
            prompt: String,
            /// True if nobody waits for it.
            background: bool,
        }
        /// It continues.
        Progress {
            /// What it has used so far.
            usage: WireRunUsage,
            /// The tool that it used last.
            #[serde(skip_serializing_if = "Option::is_none")]
            last_tool: Option<String>,
            /// What it is doing, in a line.
            summary: String,
        }
        /// It continues in the background: nobody waits for it any more.
        Detached {}
        /// It is over.
        Ended {
            /// How it ended.
            notification: Box<WireNotification>,
        }
    }
}

impl From<RunChange> for WireRunChange {
    fn from(change: RunChange) -> Self {
        match change {
            RunChange::Started { prompt, background } => Self::Started { prompt, background },
            RunChange::Progress {
                usage,
                last_tool,
                summary,
            } => Self::Progress {
                usage: usage.into(),
                last_tool,
                summary,
            },
            RunChange::Detached => Self::Detached {},
            RunChange::Ended(end) => Self::Ended {
                notification: Box::new((*end).into()),
            },
        }
    }
}

impl From<WireRunChange> for RunChange {
    fn from(change: WireRunChange) -> Self {
        match change {
            WireRunChange::Started { prompt, background } => Self::Started { prompt, background },
            WireRunChange::Progress {
                usage,
                last_tool,
                summary,
            } => Self::Progress {
                usage: usage.into(),
                last_tool,
                summary,
            },
            WireRunChange::Detached {} => Self::Detached,
            WireRunChange::Ended { notification } => Self::Ended(Box::new((*notification).into())),
        }
    }
}

/// What a run has used.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunUsage")]
pub(super) struct WireRunUsage {
    /// All tokens, in and out.
    total_tokens: u64,
    /// The number of tool calls.
    tool_uses: u32,
    /// How long it took.
    duration_ms: u64,
}

both_ways!(
    RunUsage,
    WireRunUsage {
        total_tokens,
        tool_uses,
        duration_ms
    }
);

/// The end of a run, as its starter is told.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Notification")]
pub(super) struct WireNotification {
    /// The id of the agent or command.
    task: Uuid,
    /// The id of this run: an agent that is revived has another.
    run: Uuid,
    /// The call that started it; empty if a message did.
    call: String,
    /// What ran.
    kind: RunKind,
    /// What it does, for people.
    description: String,
    /// The file with its output.
    output_file: String,
    /// How it ended.
    status: RunStatus,
    /// The same in a line.
    summary: String,
    /// Its result, or what there is of it.
    result: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What it used.
    usage: WireRunUsage,
    /// The model that really answered; empty for a command.
    model: String,
    /// The answer as a value, if it has a schema.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    value: Option<RawJson>,
    /// The worktree that it worked in, if it had its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<WireWorktree>,
}

/// Reads a value that is there; `null` is one.
pub(super) fn present<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(from).map(Some)
}

impl From<Notification> for WireNotification {
    fn from(end: Notification) -> Self {
        Self {
            task: end.task,
            run: end.run,
            call: end.call,
            kind: end.kind,
            description: end.description,
            output_file: text(end.output_file),
            status: end.status,
            summary: end.summary,
            result: end.result,
            error: end.error,
            usage: end.usage.into(),
            model: end.model,
            value: end.value,
            worktree: end.worktree.map(Into::into),
        }
    }
}

impl From<WireNotification> for Notification {
    fn from(end: WireNotification) -> Self {
        Self {
            task: end.task,
            run: end.run,
            call: end.call,
            kind: end.kind,
            description: end.description,
            output_file: end.output_file.into(),
            status: end.status,
            summary: end.summary,
            result: end.result,
            error: end.error,
            usage: end.usage.into(),
            model: end.model,
            value: end.value,
            worktree: end.worktree.map(Into::into),
        }
    }
}

/// What became of a worktree when its agent's run ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Worktree")]
pub(super) struct WireWorktree {
    /// Its directory.
    path: String,
    /// Its branch.
    branch: String,
    /// The commit that it was made from.
    base: String,
    /// Work that exists only there, for which it is kept; absent if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

impl From<WorktreeEnd> for WireWorktree {
    fn from(end: WorktreeEnd) -> Self {
        Self {
            path: text(end.path),
            branch: end.branch,
            base: end.base,
            kept: end.kept,
        }
    }
}

impl From<WireWorktree> for WorktreeEnd {
    fn from(end: WireWorktree) -> Self {
        Self {
            path: end.path.into(),
            branch: end.branch,
            base: end.base,
            kept: end.kept,
        }
    }
}
