//! What comes in and what is decided about it.

use std::path::PathBuf;
use std::sync::Arc;

use posse_port::model::{Failure, Reply};
use posse_port::store::{
    AgentState, CallChange, CallChangeKind, CallKey, CallOutcome, Charge, Op, Operation, RunChange,
    TakenMail,
};
use posse_port::tool::{Intent, Subject, ToolError};
use posse_protocol::{
    Answer, ContentBlock, EntryKind, EventKind, Mail, Message, Missed, Outcome, PermissionMode,
    RawJson, ReplyFacts, Task, ToolContent,
};
use uuid::Uuid;

use crate::agent::step::Run;

/// Something that an agent must react to.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person's words.
    Prompt(Vec<ContentBlock>),
    /// A person's words to an agent that leads a team which is made for them, and what makes it.
    Team {
        words: Vec<ContentBlock>,
        ops: Vec<Op>,
    },
    /// There may be a task for it.
    Look,
    /// The tasks that it is doing, and the one that it has taken.
    Found {
        open: Vec<Task>,
        claimed: Option<Box<Task>>,
    },
    /// A person has called a skill that another agent follows; what the entry says of it.
    Delegate(Vec<ContentBlock>),
    /// That agent is done.
    Delegated(Box<Delegated>),
    /// A run that was asked for could not begin.
    NotBegun(Outcome),
    /// Mail that waits.
    Mail(Vec<Mail>),
    /// Go on without new words.
    Continue,
    /// The model answered. `intents` are what its tool calls mean to do, in their order. `capped`: it
    /// could say less than usual, because a budget holds no more.
    Reply {
        reply: Box<Reply>,
        charges: Vec<Charge>,
        intents: Vec<Result<Intent, ToolError>>,
        capped: bool,
        missed: Option<Missed>,
    },
    /// A budget forbids the call that was to be made, or another attempt at it; why, for people.
    Refused { why: String, charges: Vec<Charge> },
    /// A summary was made, which takes the place of the history.
    Compacted {
        content: Vec<ContentBlock>,
        facts: Option<ReplyFacts>,
        charges: Vec<Charge>,
    },
    /// No summary came about, though the model answered.
    NotCompacted { why: String, charges: Vec<Charge> },
    /// A person wants a summary in place of the history.
    Compact { keep: Option<String> },
    /// The model did not answer.
    Failed {
        failure: Box<Failure>,
        charges: Vec<Charge>,
    },
    /// A person answered. `intent` is that of the input they put in place of the model's.
    Answer {
        call: String,
        answer: Answer,
        intent: Option<Result<Intent, ToolError>>,
    },
    /// A tool has ended; none if it panicked or had to be given up.
    CallDone {
        key: CallKey,
        result: Option<Result<Answered, ToolError>>,
    },
    /// The step that was to end the run unless mail waits is committed.
    Settled { mail_waits: bool },
    /// What it has started may all be over.
    Settle,
    /// Stop the run.
    Interrupt,
    /// Another mode.
    SetMode(PermissionMode),
    /// Nobody can tell or answer anything any more.
    Unattended,
}

/// What came of an agent that has followed a skill.
#[derive(Debug)]
pub(crate) struct Delegated {
    pub(crate) outcome: Outcome,
    /// What it said.
    pub(crate) text: String,
    /// What the model is told of it.
    pub(crate) told: String,
}

/// What a tool answered, as far as decisions need it.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) content: Vec<ToolContent>,
    pub(crate) then: Consequence,
}

/// What an answer has for a consequence; see [`FollowUp`](posse_port::tool::Then).
#[derive(Debug, Default)]
pub(crate) enum Consequence {
    #[default]
    Nothing,
    Operations(Vec<Op>),
    MailShown(Vec<u64>),
    /// Another tool is to be used first, which means to do this.
    ToolFirst {
        tool: String,
        input: RawJson,
        intent: Result<Intent, ToolError>,
    },
    Began {
        id: Uuid,
        description: String,
        output: PathBuf,
    },
}

/// What is to be done about an input: first the commit, then the effects.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) commit: Commit,
    pub(crate) after: Vec<Effect>,
}

impl Decision {
    /// Changes the mode. It holds for the agent and all below it once the change is durable.
    pub(super) fn set_mode(&mut self, mode: PermissionMode) {
        self.commit.mode = Some(mode);
        self.after
            .extend([Effect::SetMode(mode), Effect::Emit(EventKind::Mode(mode))]);
    }

    /// Returns true if a run ends by it.
    pub(crate) fn ends_run(&self) -> bool {
        self.after
            .iter()
            .any(|effect| matches!(effect, Effect::End(_)))
    }

    /// Returns true if the model is to be called.
    pub(crate) fn calls_model(&self) -> bool {
        self.after
            .iter()
            .any(|effect| matches!(effect, Effect::CallModel | Effect::Compact(_)))
    }

    /// Adds what was decided right after it, so that both are one step.
    pub(crate) fn add(&mut self, more: Self) {
        let Commit {
            entries,
            calls,
            charges,
            mail,
            operations,
            runs,
            state,
            closing,
            resting,
            mode,
            types,
        } = more.commit;
        if entries.iter().any(|entry| entry.kind == EntryKind::Results) {
            // They tell what the calls came to, which need not be kept twice.
            self.commit
                .calls
                .retain(|call| !matches!(call.change, CallChangeKind::Done(_)));
        }
        self.commit.entries.extend(entries);
        self.commit.calls.extend(calls);
        self.commit.charges.extend(charges);
        self.commit.mail.extend(mail);
        self.commit.operations.extend(operations);
        self.commit.runs.extend(runs);
        self.commit.state = state.or(self.commit.state);
        self.commit.closing = closing.or(self.commit.closing.take());
        self.commit.resting = resting.or(self.commit.resting.take());
        self.commit.mode = mode.or(self.commit.mode);
        self.commit.types = types.or(self.commit.types);
        self.after.extend(more.after);
    }
}

/// A step in words; the actor spells it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Commit {
    pub(crate) entries: Vec<Draft>,
    pub(crate) calls: Vec<CallChange>,
    pub(crate) charges: Vec<Charge>,
    pub(crate) mail: Vec<TakenMail>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) runs: Vec<RunChange>,
    pub(crate) state: Option<AgentState>,
    /// That the run ends by it.
    pub(crate) closing: Option<Closing>,
    /// That a teammate becomes idle by it.
    pub(crate) resting: Option<Resting>,
    pub(crate) mode: Option<PermissionMode>,
    /// The types of agents and skills that the entries tell of, as a fingerprint.
    pub(crate) types: Option<u64>,
}

/// How a run is to end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Closing {
    pub(crate) outcome: Outcome,
    /// What it came to.
    pub(crate) run: Run,
    /// Only if no mail waits; then [`Input::Settled`] says what came of it.
    pub(crate) unless_mail: bool,
}

/// How a teammate becomes idle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resting {
    pub(crate) outcome: Outcome,
    /// Only if no mail waits; then [`Input::Settled`] says what came of it.
    pub(crate) unless_mail: bool,
    /// What it said last.
    pub(crate) text: String,
}

impl Commit {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An entry in words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    pub(crate) kind: EntryKind,
    pub(crate) message: Arc<Message>,
    pub(crate) reply: Option<ReplyFacts>,
}

/// Something to be done outside, once the commit is durable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Call the model with the whole history.
    CallModel,
    /// Look which tasks the agent is doing, and take one if it has none and `claim`.
    Look { claim: bool },
    /// Start the members of the team that was made.
    Raise,
    /// Ask the model for a summary of the history instead.
    Compact(CompactionRequest),
    /// End the call.
    AbortModel,
    /// Run a tool.
    Run(ToolRun),
    /// Let go on in the background what a call has begun.
    StartRun(Uuid),
    /// Start the agent that follows a skill.
    Delegate(CallKey),
    /// Stop it.
    AbortDelegate,
    /// End all tools that run.
    AbortCalls,
    /// Let the new mode hold.
    SetMode(PermissionMode),
    /// Tell the front ends.
    Emit(EventKind),
    /// The run begins; its time is taken from here.
    Begin,
    /// Tell the front ends that the run has ended, with what it took.
    End(Box<Ended>),
    /// Tell the front ends how a run ended that never began; one that goes on is not touched by it.
    Refuse(Outcome),
}

/// How a history is to be compacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactionRequest {
    /// What a person wants to be kept above all.
    pub(crate) keep: Option<String>,
    /// Whether posse does it by itself.
    pub(crate) auto: bool,
    /// Whether the model cannot take all of it any more: what came last is left out.
    pub(crate) overfull: bool,
}

/// A tool that is to be run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolRun {
    pub(crate) key: CallKey,
    /// The model's id of the call.
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) input: RawJson,
    pub(crate) subject: Subject,
    /// What the tool came to that had to be used first.
    pub(crate) first: Option<CallOutcome>,
}

/// A run that ended, but for its times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) run: Run,
}
