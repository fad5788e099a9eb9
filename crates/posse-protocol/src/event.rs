//! What front ends see. Whatever an event says has happened is durable, but for [`Delta`]s, which
//! show a reply while it arrives, and for what only viewers are told.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Activity, AgentId, Cost, Detail, IdleReport, Listing, MailUpdate, Message, Misses, Name,
    PermissionMode, Question, QuestionId, QueuedPrompt, RawJson, RequestUpdate, RunUpdate,
    StopReason, TaskUpdate, Usage,
};

/// Something that happened to an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The agent.
    pub agent: AgentId,
    /// What happened.
    pub kind: EventKind,
}

/// What can happen to an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A run has begun.
    Started,
    /// An entry is in the transcript.
    Entry(Box<Entry>),
    /// A reply is arriving.
    Delta(Delta),
    /// An attempt to call the model failed; what its deltas showed is void. Another follows.
    Retry(Retry),
    /// A person is asked about a tool call.
    ApprovalRequested(Box<Question>),
    /// A question needs no answer any more.
    ApprovalWithdrawn {
        /// The question.
        question: QuestionId,
    },
    /// A tool is running.
    CallStarted {
        /// The call.
        call: String,
        /// The tool's name.
        tool: String,
        /// What it does, in a line for people.
        title: String,
    },
    /// A tool has answered; its result follows in an entry.
    CallDone {
        /// The call.
        call: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// A call was denied without asking anybody.
    Denied(Denial),
    /// The mode changed.
    Mode(PermissionMode),
    /// The agent has this model and effort from its next request on.
    Model(Box<ModelUpdate>),
    /// The history is being replaced by a summary; an entry brings it.
    Compacting {
        /// Whether posse does it by itself, since the context is nearly full.
        auto: bool,
        /// How large the prompt was, in tokens.
        tokens: u64,
    },
    /// Something happened to a sub-agent or a background command.
    Run(Box<RunUpdate>),
    /// Something happened to a member of a team: the event is about it.
    Member(Box<MemberUpdate>),
    /// A person's note is in a memory file.
    Noted {
        /// The file.
        file: String,
        /// The note, as it is there.
        line: String,
    },
    /// Names that were asked for.
    Listed(Box<Listing>),
    /// A question on the side is answered, or could not be.
    Aside(Box<Aside>),
    /// A hook of the user runs, or has run.
    Hook(Box<HookUpdate>),
    /// Something that was told came too late, or names nothing: an answer to a call that is gone for one.
    Warning(String),
    /// The run has ended.
    Ended(Box<RunEnd>),
    /// What went on when the last run ended is over, and begins no other: nothing goes on any more.
    AllIdle,
    /// The agent does something else than before. Only viewers are told.
    State(Activity),
    /// What the agent has used has changed. Only viewers are told.
    Spending(Box<SpendingUpdate>),
    /// Prompts have begun or ceased to wait, or were changed: these wait now, the next one first.
    /// Only viewers are told.
    Queue(Vec<QueuedPrompt>),
    /// A task of the session is new or has changed; the event is about the main agent. Only viewers
    /// are told.
    Task(Box<TaskUpdate>),
    /// The agent was sent a message. Only viewers are told.
    Mail(Box<MailUpdate>),
    /// The agent is asked for approval, or the request waits no more. Only viewers are told.
    Request(Box<RequestUpdate>),
    /// A tool has printed something. Only viewers are told.
    Output {
        /// The call.
        call: String,
        /// What it printed.
        text: String,
        /// Number of bytes that were printed before it and are not shown.
        skipped: u64,
    },
}

impl EventKind {
    /// Returns true for what is told only to those who watch.
    pub fn is_for_viewers(&self) -> bool {
        matches!(
            self,
            Self::State(_)
                | Self::Spending(_)
                | Self::Queue(_)
                | Self::Task(_)
                | Self::Mail(_)
                | Self::Request(_)
                | Self::Output { .. }
        )
    }

    /// Returns true if a viewer that wants this detail sees it.
    pub fn is_in(&self, detail: Detail) -> bool {
        let is_content = matches!(self, Self::Entry(_) | Self::Delta(_) | Self::Output { .. });
        detail == Detail::All || !is_content
    }
}

/// The model and the effort of an agent, and what the change costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUpdate {
    /// The model.
    pub model: String,
    /// The effort; none for the model's own.
    pub effort: Option<String>,
    /// How many tokens the next request has to read anew at most, since no cache has them for it.
    pub reread_tokens: u64,
    /// What reading them anew costs; none when the model's price is not known.
    pub cost: Option<Cost>,
}

/// A question on the side, and its answer. Nothing of it is in the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Aside {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
    /// What it used; also if it failed.
    pub spent: Vec<Spent>,
}

/// A hook that runs, or has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookUpdate {
    /// This run of it.
    pub id: Uuid,
    /// The event that it is for.
    pub event: String,
    /// What of the event: the tool for one; empty if there is nothing.
    pub about: String,
    /// What it is, in a line for people.
    pub title: String,
    /// The tool call that it is about.
    pub call: Option<String>,
    /// How it has ended; none while it runs.
    pub end: Option<HookEnd>,
}

/// How a hook has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookEnd {
    /// What it printed, or the beginning of it.
    pub output: String,
    /// Its errors, or the beginning of them.
    pub errors: String,
    /// Its exit code.
    pub code: Option<i32>,
    /// Why it has not answered as it should.
    pub failure: Option<String>,
}

/// Something that happened to a member of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberUpdate {
    /// The team.
    pub team: Name,
    /// What it is called there.
    pub name: Name,
    /// The colour it is shown in.
    pub color: String,
    /// What happened.
    pub what: MemberChange,
}

/// What can happen to a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// It belongs to the team from now on.
    Joined {
        /// Its type.
        agent_type: String,
        /// Its model.
        model: String,
        /// What runs it: `in-process`, `tmux`, …
        backend: String,
    },
    /// It works.
    Running,
    /// It has nothing to do.
    Idle(Box<IdleReport>),
    /// It lives in this process from now on, since the one that had it is gone.
    TakenOver,
    /// It has ended, and left the team.
    Left,
}

/// An entry of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number, from 0.
    pub seq: u64,
    /// What it is.
    pub kind: EntryKind,
    /// What it says.
    pub message: Arc<Message>,
    /// About a reply: who said it and what it took.
    pub reply: Option<ReplyFacts>,
}

/// What an entry of a transcript is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Somebody's words to the agent.
    Prompt,
    /// What the model said.
    Reply,
    /// What the tools of a reply answered.
    Results,
    /// A summary that stands for all before it: from here on the model is sent nothing older.
    Compaction,
    /// The agent has another model or effort from here on. What the entry says is for people: nothing of
    /// it is sent.
    Model,
}

/// What is known of a reply beside its words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyFacts {
    /// The provider's id of it.
    pub id: String,
    /// The model that really answered.
    pub model: String,
    /// Why it stopped; none if it was cut off.
    pub stop: Option<StopReason>,
    /// What it used.
    pub usage: Usage,
    /// What of its prompt was in the provider's cache once, and was not found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
}

/// A beginning of a prompt that was sent before and had to be read anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// How much of it.
    pub tokens: u64,
    /// Why: `expired` if nobody used it for longer than the cache keeps it, else what the provider says
    /// (`tools_changed` for one), or `unknown`.
    pub why: String,
}

/// A piece of a reply that is arriving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// The reply begins.
    Started {
        /// The model that answers.
        model: String,
    },
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A tool call begins.
    ToolUse {
        /// The call.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a tool's input.
    ToolInput(String),
    /// A block is finished.
    BlockDone,
}

impl Delta {
    /// Adds the text of the next piece. Returns false if that is of another kind.
    pub fn join(&mut self, next: &Self) -> bool {
        match (self, next) {
            (Self::Text(text), Self::Text(more))
            | (Self::Thinking(text), Self::Thinking(more))
            | (Self::ToolInput(text), Self::ToolInput(more)) => {
                text.push_str(more);
                true
            }
            _ => false,
        }
    }
}

/// A failed attempt that is followed by another.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Milliseconds until the next one.
    pub wait_ms: u64,
    /// Why.
    pub fault: Fault,
}

/// A tool call that was denied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Denial {
    /// The tool's name.
    #[serde(rename = "tool_name")]
    pub tool: String,
    /// The call.
    #[serde(rename = "tool_use_id")]
    pub call: String,
    /// Its input.
    #[serde(rename = "tool_input")]
    pub input: RawJson,
    /// Why.
    #[serde(skip)]
    pub why: String,
}

/// How a run ended, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// How.
    pub outcome: Outcome,
    /// The text of the last reply.
    pub text: String,
    /// The same as a value, if the answer has a schema.
    pub value: Option<RawJson>,
    /// Why the last reply stopped.
    pub stop: Option<StopReason>,
    /// How many times the model was called.
    pub turns: u32,
    /// What the agent itself used, by model.
    pub spent: Vec<Spent>,
    /// What sub-agents of the session used since the last run ended, by model.
    pub below: Vec<Spent>,
    /// What the agent and sub-agents missed in the cache in that time.
    pub misses: Misses,
    /// How many background runs of the agent go on; the end of each begins another run.
    pub live: usize,
    /// How long the run took.
    pub duration_ms: u64,
    /// How long of it the model was waited for.
    pub api_ms: u64,
    /// The calls that were denied.
    pub denials: Vec<Denial>,
}

impl RunEnd {
    /// An end of which nothing else is known.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            text: String::new(),
            value: None,
            stop: None,
            turns: 0,
            spent: Vec::new(),
            below: Vec::new(),
            misses: Misses::default(),
            live: 0,
            duration_ms: 0,
            api_ms: 0,
            denials: Vec::new(),
        }
    }
}

/// What one model used and cost in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// The model.
    pub model: String,
    /// Tokens.
    pub usage: Usage,
    /// Money; none when the model's price is not known.
    pub cost: Option<Cost>,
}

/// What an agent has used so far, since this process runs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpendingUpdate {
    /// What the agent itself used, by model.
    pub own: Vec<Spent>,
    /// What it and all agents below it used, by model.
    pub subtree: Vec<Spent>,
    /// Money that the tightest budget above it has left; none if no budget limits money.
    pub left: Option<Cost>,
    /// Size of its last prompt with the reply, in tokens.
    pub context_tokens: u64,
    /// Size of the model's context window, in tokens, if known.
    pub context_window: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The model ended its turn by itself.
    Completed,
    /// A limit stopped it; what there is is in the transcript.
    Partial(Limit),
    /// The model declined.
    Refused,
    /// Somebody stopped it.
    Interrupted,
    /// A fault that may pass stopped it; it can be continued.
    Paused(Fault),
    /// It cannot go on.
    Failed(Fault),
}

/// A limit that stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The number of turns.
    #[serde(rename = "max_turns")]
    Turns,
    /// The money.
    Budget,
    /// The length of a reply.
    #[serde(rename = "max_output")]
    Output,
    /// The size of the conversation.
    #[serde(rename = "context_full")]
    Context,
    /// The number of times that a call may fail in the same way.
    Repetition,
    /// Its team has tasks that nobody has completed.
    #[serde(rename = "open_tasks")]
    Tasks,
    /// What a hook of the user lets happen.
    Hook,
}

/// What went wrong, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The class.
    pub class: FaultClass,
    /// The HTTP status, if the model API gave one.
    pub status: Option<u16>,
    /// What happened.
    pub message: String,
}

/// Classes of faults, so that a front end can say what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// Nothing answers where the model should be.
    Unreachable,
    /// The connection broke, stalled or carried garbage.
    Connection,
    /// The model API refused the key.
    Authentication,
    /// The account cannot pay.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model or place.
    NotFound,
    /// The request is wrong.
    InvalidRequest,
    /// The request is too large.
    TooLarge,
    /// The provider wants to be left alone for a while.
    Busy,
    /// The provider failed.
    Provider,
    /// The store failed: a full disk for one.
    Store,
    /// Another process has taken the agent over.
    Fenced,
    /// A budget holds no more.
    Budget,
    /// A tool found that the run must not go on.
    Tool,
    /// The agent repeats what fails.
    Repetition,
    /// A hook of the user has refused, or waits for a decision.
    Hook,
    /// The answer has not the shape that was asked for.
    Answer,
    /// posse itself failed.
    Internal,
}
