//! Events, on the wire.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::content::WireMessage;
use super::ending::{WireDenial, WireFault, WireRunEnd};
use super::hook::WireHook;
use super::run::{WireRun, WireRunChange};
use super::spending::{WireCost, WireMissed, WireSpent, WireUsage};
use super::tagged::read;
use super::team::WireMemberChange;
use super::watch::{self, WireActivity, WireQueuedPrompt, WireSpending};
use crate::{
    AgentId, Aside, Delta, Display, Entry, EntryKind, Event, EventKind, ListKind, ListedName,
    Listing, MailId, MailKind, MailUpdate, MemberUpdate, ModelUpdate, Name, PermissionMode,
    Question, QuestionId, QuestionKind, RawJson, ReplyFacts, RequestKind, RequestUpdate, Retry,
    RunUpdate, SandboxRefusal, StopReason, Suggestion, TaskId, TaskStatus, TaskUpdate, WaitReason,
};

/// Something that happened to an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(super) struct WireEvent {
    /// The agent.
    pub(super) agent: AgentId,
    /// When the event was sent, in milliseconds of Unix time.
    pub(super) at_ms: i64,
    #[serde(flatten)]
    pub(super) kind: WireEventKind,
}

impl<'de> Deserialize<'de> for WireEvent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            agent: AgentId,
            at_ms: i64,
        }
        let text = <&RawValue>::deserialize(from)?;
        let Head { agent, at_ms } = read(text).map_err(serde::de::Error::custom)?;
        let kind = read(text).map_err(serde::de::Error::custom)?;
        Ok(Self { agent, at_ms, kind })
    }
}

impl WireEvent {
    /// Returns the event for the wire.
    pub(super) fn new(event: Event, at_ms: i64) -> Self {
        Self {
            agent: event.agent,
            at_ms,
            kind: event.kind.into(),
        }
    }
}

impl From<WireEvent> for Event {
    fn from(event: WireEvent) -> Self {
        Self {
            agent: event.agent,
            kind: event.kind.into(),
        }
    }
}

tagged! {
    /// What happened to an agent. Except for `delta` and `output`, it is already saved.
    #[schemars(rename = "EventKind")]
    enum WireEventKind {
        /// A run has begun.
        Started {}
        /// An entry was added to the transcript.
        Entry {
            /// Its number in the transcript, from 0.
            seq: u64,
            /// What it is.
            kind: EntryKind,
            /// The message.
            message: WireMessage,
            /// What is known of a reply beside its message.
            #[serde(skip_serializing_if = "Option::is_none")]
            reply: Option<WireReply>,
        }
        /// A reply is arriving.
        Delta {
            /// A piece of it.
            delta: WireDelta,
        }
        /// A model call failed and will be made again. Discard the deltas of the failed one.
        Retry {
            /// The number of the failed attempt, from 1.
            attempt: u32,
            /// Milliseconds until the next attempt.
            wait_ms: u64,
            /// Why it failed.
            fault: WireFault,
        }
        /// A person is asked about a tool call.
        ApprovalRequested {
            /// The question, by which it is answered.
            question: QuestionId,
            /// What it wants to know.
            kind: QuestionKind,
            /// The call.
            call: String,
            /// The tool.
            tool: String,
            /// Its input, as the model wrote it.
            input: RawJson,
            /// Why approval is required.
            why: String,
            /// The name or path of the agent that asks; absent for the main agent.
            #[serde(skip_serializing_if = "Option::is_none")]
            from: Option<String>,
            /// When it counts as denied, in milliseconds of Unix time; absent if it waits as long as it takes.
            #[serde(skip_serializing_if = "Option::is_none")]
            until_ms: Option<i64>,
            /// Rules that an answer may accept, so that such calls are not asked about again: each is enough,
            /// from narrow to wide.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            suggestions: Vec<Suggestion>,
            /// The change that the call would make.
            #[serde(skip_serializing_if = "Option::is_none")]
            shown: Option<Display>,
            /// What the sandbox has refused to the command, which has ended: if it is allowed, the command
            /// runs again with that.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            refused: Option<SandboxRefusal>,
        }
        /// An `approval_requested` needs no answer any more: it was answered elsewhere, or its call has ended.
        ApprovalWithdrawn {
            /// The question.
            question: QuestionId,
        }
        /// A tool is running.
        CallStarted {
            /// The call.
            call: String,
            /// The tool.
            tool: String,
            /// What it does, in a line for people.
            title: String,
        }
        /// A tool has finished. The result follows in an `entry`.
        CallDone {
            /// The call.
            call: String,
            /// True if the tool failed.
            is_error: bool,
        }
        /// A call was denied without asking.
        Denied {
            /// The denied call.
            denial: WireDenial,
        }
        /// The permission mode has changed.
        Mode {
            /// The new mode.
            mode: PermissionMode,
        }
        /// The agent has this model and effort from its next request on.
        Model {
            /// The model.
            model: String,
            /// The effort; absent for the model's own.
            #[serde(skip_serializing_if = "Option::is_none")]
            effort: Option<String>,
            /// The number of tokens that the next request has to read anew at most, because no cache has
            /// them for it.
            reread_tokens: u64,
            /// What that costs; absent if the price is unknown.
            #[serde(skip_serializing_if = "Option::is_none")]
            cost_usd: Option<WireCost>,
        }
        /// A summary is replacing the history. It follows in an `entry`.
        Compacting {
            /// True if posse began it, because the context is nearly full.
            auto: bool,
            /// The size of the prompt, in tokens.
            tokens: u64,
        }
        /// Something happened to a sub-agent or background command.
        Run {
            /// The run.
            run: WireRun,
            /// What happened.
            change: WireRunChange,
        }
        /// Something happened to the agent as a member of a team.
        Member {
            /// The team.
            team: Name,
            /// The member's name.
            name: Name,
            /// The member's color: a name, or `#rrggbb`.
            color: String,
            /// What happened.
            change: WireMemberChange,
        }
        /// A note was added to a memory file.
        Noted {
            /// The file.
            file: String,
            /// The note, as it is there.
            line: String,
        }
        /// Names that were asked for.
        Listed {
            /// What is listed.
            what: ListKind,
            /// The part of the name that was asked for.
            part: String,
            /// The names that have it.
            names: Vec<ListedName>,
            /// The number of names that have it and are not listed.
            left_out: u64,
        }
        /// A question on the side is answered with `answer`, or could not be because of `error`.
        Aside {
            /// The question.
            question: String,
            /// The answer.
            #[serde(skip_serializing_if = "Option::is_none")]
            answer: Option<String>,
            /// Why there is no answer.
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<String>,
            /// What it used, by model.
            spent: Vec<WireSpent>,
        }
        /// A hook of the user runs, or has run if it has an `end`.
        Hook {
            /// The hook.
            hook: Box<WireHook>,
        }
        /// A command had no effect, e.g. because it came too late.
        Warning {
            /// The reason.
            message: String,
        }
        /// The run has ended.
        Ended {
            /// How it ended, and what it took.
            end: Box<WireRunEnd>,
        }
        /// No background work is left, and no other run begins.
        AllIdle {}
        /// The agent does something else than before.
        State {
            /// What it is doing.
            state: WireActivity,
            /// What it waits for, if it is `waiting`.
            #[serde(skip_serializing_if = "Option::is_none")]
            why: Option<WaitReason>,
        }
        /// What the agent has used has changed.
        Spending {
            /// What it has used so far.
            spending: Box<WireSpending>,
        }
        /// Prompts have begun or ceased to wait, or were changed.
        Queue {
            /// Those that wait now, the next one first.
            prompts: Vec<WireQueuedPrompt>,
        }
        /// A task of the session is new or has changed. The event is about the main agent.
        Task {
            /// The team whose list has it; absent for the session's own list.
            #[serde(skip_serializing_if = "Option::is_none")]
            team: Option<Name>,
            /// Its number in the list.
            id: TaskId,
            /// What is to be done, in a line.
            subject: String,
            /// How far it is.
            status: TaskStatus,
            /// Who does it, or is to do it.
            #[serde(skip_serializing_if = "Option::is_none")]
            owner: Option<String>,
            /// What must be done before it and is not.
            waits_for: Vec<TaskId>,
        }
        /// The agent was sent a message.
        Mail {
            /// Its id.
            id: MailId,
            /// Its number in the agent's inbox.
            number: u64,
            /// Who sent it.
            from: String,
            /// What it is.
            kind: MailKind,
            /// In a few words.
            summary: String,
            /// The text; JSON, if the kind is another one than `text`.
            body: String,
        }
        /// The agent is asked for approval, or the request waits no more.
        Request {
            /// Its id, by which it is answered.
            id: MailId,
            /// What is requested.
            kind: RequestKind,
            /// Who requests it.
            from: String,
            /// The reason, or the plan.
            text: String,
            /// False once it was answered or withdrawn.
            is_open: bool,
        }
        /// A tool has printed something. Its result follows in an `entry`.
        Output {
            /// The call.
            call: String,
            /// What it printed.
            text: String,
            /// The number of bytes that were printed before it and are not shown.
            skipped: u64,
        }
    }
}

tagged! {
    /// A piece of a reply.
    #[schemars(rename = "Delta")]
    enum WireDelta {
        /// The reply begins.
        Started {
            /// The model that answers.
            model: String,
        }
        /// More text.
        Text {
            /// The text.
            text: String,
        }
        /// More thinking.
        Thinking {
            /// The text.
            text: String,
        }
        /// A tool call begins.
        ToolUse {
            /// The id of the call.
            id: String,
            /// The tool.
            name: String,
        }
        /// More of the input of a tool call.
        ToolInput {
            /// A piece of the JSON text.
            text: String,
        }
        /// A block is complete.
        BlockDone {}
    }
}

/// What is known of a reply beside its message.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reply")]
pub(super) struct WireReply {
    /// The provider's id.
    id: String,
    /// The model that really answered.
    model: String,
    /// Why it stopped; absent if it was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
    /// What it used.
    usage: WireUsage,
    /// Tokens of its prompt that were cached once and had to be read again.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<WireMissed>,
}

impl From<ReplyFacts> for WireReply {
    fn from(reply: ReplyFacts) -> Self {
        Self {
            id: reply.id,
            model: reply.model,
            stop: reply.stop,
            usage: reply.usage.into(),
            missed: reply.missed.map(Into::into),
        }
    }
}

impl From<WireReply> for ReplyFacts {
    fn from(reply: WireReply) -> Self {
        Self {
            id: reply.id,
            model: reply.model,
            stop: reply.stop,
            usage: reply.usage.into(),
            missed: reply.missed.map(Into::into),
        }
    }
}

impl From<EventKind> for WireEventKind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Started => Self::Started {},
            EventKind::Entry(entry) => Self::Entry {
                seq: entry.seq,
                kind: entry.kind,
                message: Arc::unwrap_or_clone(entry.message).into(),
                reply: entry.reply.map(Into::into),
            },
            EventKind::Delta(delta) => Self::Delta {
                delta: delta.into(),
            },
            EventKind::Retry(retry) => Self::Retry {
                attempt: retry.attempt,
                wait_ms: retry.wait_ms,
                fault: retry.fault.into(),
            },
            EventKind::ApprovalRequested(question) => Self::ApprovalRequested {
                question: question.id,
                kind: question.kind,
                call: question.call,
                tool: question.tool,
                input: question.input,
                why: question.why,
                from: question.from,
                until_ms: question.until_ms,
                suggestions: question.suggestions,
                shown: question.shown,
                refused: question.refused,
            },
            EventKind::ApprovalWithdrawn { question } => Self::ApprovalWithdrawn { question },
            EventKind::CallStarted { call, tool, title } => Self::CallStarted { call, tool, title },
            EventKind::CallDone { call, is_error } => Self::CallDone { call, is_error },
            EventKind::Denied(denial) => Self::Denied {
                denial: denial.into(),
            },
            EventKind::Mode(mode) => Self::Mode { mode },
            EventKind::Model(update) => Self::Model {
                model: update.model,
                effort: update.effort,
                reread_tokens: update.reread_tokens,
                cost_usd: update.cost.map(WireCost),
            },
            EventKind::Compacting { auto, tokens } => Self::Compacting { auto, tokens },
            EventKind::Run(update) => Self::Run {
                run: update.run.into(),
                change: update.what.into(),
            },
            EventKind::Member(update) => Self::Member {
                team: update.team,
                name: update.name,
                color: update.color,
                change: update.what.into(),
            },
            EventKind::Noted { file, line } => Self::Noted { file, line },
            EventKind::Listed(listing) => Self::Listed {
                what: listing.what,
                part: listing.part,
                names: listing.names,
                left_out: listing.left_out,
            },
            EventKind::Aside(aside) => Self::Aside {
                question: aside.question,
                answer: aside.answer,
                error: aside.error,
                spent: aside.spent.into_iter().map(Into::into).collect(),
            },
            EventKind::Hook(hook) => Self::Hook {
                hook: Box::new((*hook).into()),
            },
            EventKind::Warning(message) => Self::Warning { message },
            EventKind::Ended(end) => Self::Ended {
                end: Box::new((*end).into()),
            },
            EventKind::AllIdle => Self::AllIdle {},
            EventKind::State(activity) => {
                let (state, why) = watch::fields(activity);
                Self::State { state, why }
            }
            EventKind::Spending(update) => Self::Spending {
                spending: Box::new((*update).into()),
            },
            EventKind::Queue(prompts) => Self::Queue {
                prompts: prompts.into_iter().map(Into::into).collect(),
            },
            EventKind::Task(update) => {
                let TaskUpdate {
                    team,
                    id,
                    subject,
                    status,
                    owner,
                    waits_for,
                } = *update;
                Self::Task {
                    team,
                    id,
                    subject,
                    status,
                    owner,
                    waits_for,
                }
            }
            EventKind::Mail(update) => {
                let MailUpdate {
                    id,
                    number,
                    from,
                    kind,
                    summary,
                    body,
                } = *update;
                Self::Mail {
                    id,
                    number,
                    from,
                    kind,
                    summary,
                    body,
                }
            }
            EventKind::Request(update) => {
                let RequestUpdate {
                    id,
                    kind,
                    from,
                    text,
                    is_open,
                } = *update;
                Self::Request {
                    id,
                    kind,
                    from,
                    text,
                    is_open,
                }
            }
            EventKind::Output {
                call,
                text,
                skipped,
            } => Self::Output {
                call,
                text,
                skipped,
            },
        }
    }
}

impl From<WireEventKind> for EventKind {
    fn from(kind: WireEventKind) -> Self {
        match kind {
            WireEventKind::Started {} => Self::Started,
            WireEventKind::Entry {
                seq,
                kind,
                message,
                reply,
            } => Self::Entry(Box::new(Entry {
                seq,
                kind,
                message: Arc::new(message.into()),
                reply: reply.map(Into::into),
            })),
            WireEventKind::Delta { delta } => Self::Delta(delta.into()),
            WireEventKind::Retry {
                attempt,
                wait_ms,
                fault,
            } => Self::Retry(Retry {
                attempt,
                wait_ms,
                fault: fault.into(),
            }),
            WireEventKind::ApprovalRequested {
                question,
                kind,
                call,
                tool,
                input,
                why,
                from,
                until_ms,
                suggestions,
                shown,
                refused,
            } => Self::ApprovalRequested(Box::new(Question {
                id: question,
                kind,
                call,
                tool,
                input,
                why,
                from,
                until_ms,
                suggestions,
                shown,
                refused,
            })),
            WireEventKind::ApprovalWithdrawn { question } => Self::ApprovalWithdrawn { question },
            WireEventKind::CallStarted { call, tool, title } => {
                Self::CallStarted { call, tool, title }
            }
            WireEventKind::CallDone { call, is_error } => Self::CallDone { call, is_error },
            WireEventKind::Denied { denial } => Self::Denied(denial.into()),
            WireEventKind::Mode { mode } => Self::Mode(mode),
            WireEventKind::Model {
                model,
                effort,
                reread_tokens,
                cost_usd,
            } => Self::Model(Box::new(ModelUpdate {
                model,
                effort,
                reread_tokens,
                cost: cost_usd.map(|cost| cost.0),
            })),
            WireEventKind::Compacting { auto, tokens } => Self::Compacting { auto, tokens },
            WireEventKind::Run { run, change } => Self::Run(Box::new(RunUpdate {
                run: run.into(),
                what: change.into(),
            })),
            WireEventKind::Member {
                team,
                name,
                color,
                change,
            } => Self::Member(Box::new(MemberUpdate {
                team,
                name,
                color,
                what: change.into(),
            })),
            WireEventKind::Noted { file, line } => Self::Noted { file, line },
            WireEventKind::Listed {
                what,
                part,
                names,
                left_out,
            } => Self::Listed(Box::new(Listing {
                what,
                part,
                names,
                left_out,
            })),
            WireEventKind::Aside {
                question,
                answer,
                error,
                spent,
            } => Self::Aside(Box::new(Aside {
                question,
                answer,
                error,
                spent: spent.into_iter().map(Into::into).collect(),
            })),
            WireEventKind::Hook { hook } => Self::Hook(Box::new((*hook).into())),
            WireEventKind::Warning { message } => Self::Warning(message),
            WireEventKind::Ended { end } => Self::Ended(Box::new((*end).into())),
            WireEventKind::AllIdle {} => Self::AllIdle,
            WireEventKind::State { state, why } => Self::State(watch::activity(state, why)),
            WireEventKind::Spending { spending } => Self::Spending(Box::new((*spending).into())),
            WireEventKind::Queue { prompts } => {
                Self::Queue(prompts.into_iter().map(Into::into).collect())
            }
            WireEventKind::Task {
                team,
                id,
                subject,
                status,
                owner,
                waits_for,
            } => Self::Task(Box::new(TaskUpdate {
                team,
                id,
                subject,
                status,
                owner,
                waits_for,
            })),
            WireEventKind::Mail {
                id,
                number,
                from,
                kind,
                summary,
                body,
            } => Self::Mail(Box::new(MailUpdate {
                id,
                number,
                from,
                kind,
                summary,
                body,
            })),
            WireEventKind::Request {
                id,
                kind,
                from,
                text,
                is_open,
            } => Self::Request(Box::new(RequestUpdate {
                id,
                kind,
                from,
                text,
                is_open,
            })),
            WireEventKind::Output {
                call,
                text,
                skipped,
            } => Self::Output {
                call,
                text,
                skipped,
            },
        }
    }
}

impl From<Delta> for WireDelta {
    fn from(delta: Delta) -> Self {
        match delta {
            Delta::Started { model } => Self::Started { model },
            Delta::Text(text) => Self::Text { text },
            Delta::Thinking(text) => Self::Thinking { text },
            Delta::ToolUse { id, name } => Self::ToolUse { id, name },
            Delta::ToolInput(text) => Self::ToolInput { text },
            Delta::BlockDone => Self::BlockDone {},
        }
    }
}

impl From<WireDelta> for Delta {
    fn from(delta: WireDelta) -> Self {
        match delta {
            WireDelta::Started { model } => Self::Started { model },
            WireDelta::Text { text } => Self::Text(text),
            WireDelta::Thinking { text } => Self::Thinking(text),
            WireDelta::ToolUse { id, name } => Self::ToolUse { id, name },
            WireDelta::ToolInput { text } => Self::ToolInput(text),
            WireDelta::BlockDone {} => Self::BlockDone,
        }
    }
}
