//! Inputs of the machine, and its decisions.

use std::path::PathBuf;
use std::sync::Arc;

use posse_permission::Consent;
use posse_port::model::{Failure, Reply};
use posse_port::store::{
    AgentState, CallChange, CallChangeKind, CallKey, CallOutcome, Charge, Op, Operation,
    QuestionChange, RunChange, TakenMail,
};
use posse_port::tool::{Intent, Subject, ToolError};
use posse_protocol::{
    ContentBlock, EntryKind, EventKind, GivenAnswer, Mail, Message, Missed, Outcome,
    PermissionMode, Question, QuestionId, RawJson, ReplyFacts, SandboxRefusal, Task, ToolContent,
};
use uuid::Uuid;

use crate::agent::step::models::NewModel;
use crate::agent::step::{HookRequest, RanFacts, Run};
use crate::hook::Merged;

/// Something that an agent must react to.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person's prompt.
    Prompt(Vec<ContentBlock>),
    /// A person's first prompt, with the operations that create the team for it.
    Team {
        words: Vec<ContentBlock>,
        ops: Vec<Op>,
    },
    /// There may be a task for it.
    Look,
    /// The tasks that it works on, and the one that it has claimed.
    Found {
        open: Vec<Task>,
        claimed: Option<Box<Task>>,
    },
    /// A person called a skill that a sub-agent follows; the content of the entry about it.
    Delegate(Vec<ContentBlock>),
    /// That sub-agent is done.
    Delegated(Box<Delegated>),
    /// A requested run could not begin.
    NotBegun(Outcome),
    /// Something that a person did, which the model sees with the next prompt.
    Shown(String),
    /// Mail that waits.
    Mail(Vec<Mail>),
    /// Continue without a new prompt.
    Continue,
    /// The model replied. `intents` are what its tool calls mean to do, in order. `capped` is true
    /// if a budget lowered the cap on the reply.
    Reply {
        reply: Box<Reply>,
        charges: Vec<Charge>,
        intents: Vec<Result<Intent, ToolError>>,
        capped: bool,
        missed: Option<Missed>,
    },
    /// A budget forbids the call or another attempt at it; the reason is for people.
    Refused { why: String, charges: Vec<Charge> },
    /// A summary was made that replaces the history.
    Compacted {
        content: Vec<ContentBlock>,
        facts: Option<ReplyFacts>,
        charges: Vec<Charge>,
    },
    /// The model replied without a usable summary.
    NotCompacted { why: String, charges: Vec<Charge> },
    /// A person asks for a compaction.
    Compact { keep: Option<String> },
    /// The model call failed.
    Failed {
        failure: Box<Failure>,
        charges: Vec<Charge>,
    },
    /// A question is answered. `intent` is that of the input that replaces the model's.
    Answer {
        question: QuestionId,
        given: GivenAnswer,
        intent: Option<Result<Intent, ToolError>>,
    },
    /// The run goes on whose questions a dead process has left.
    Left,
    /// A tool call has ended; the result is none if it panicked or was aborted.
    CallDone {
        key: CallKey,
        result: Option<Result<Answered, ToolError>>,
    },
    /// Hooks have run. `intent` is that of the input that replaces a call's.
    Hooked {
        run: u64,
        said: Box<Merged>,
        intent: Option<Result<Intent, ToolError>>,
    },
    /// The step that ends the run unless mail waits is committed.
    Settled { mail_waits: bool },
    /// Everything that it started may be over.
    Settle,
    /// Stop the run.
    Interrupt,
    /// Change the permission mode.
    SetMode(PermissionMode),
    /// Change the model.
    SetModel(NewModel),
    /// Nobody can send commands or answers any more.
    Unattended,
}

/// Result of a sub-agent that followed a skill.
#[derive(Debug)]
pub(crate) struct Delegated {
    pub(crate) outcome: Outcome,
    /// Its answer.
    pub(crate) text: String,
    /// Text for the model.
    pub(crate) told: String,
}

/// Output of a tool, as far as decisions need it.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) content: Vec<ToolContent>,
    pub(crate) then: Consequence,
    pub(crate) ran: RanFacts,
}

/// What follows from a tool's output; see [`FollowUp`](posse_port::tool::FollowUp).
#[derive(Debug, Default)]
pub(crate) enum Consequence {
    /// Nothing follows.
    #[default]
    Nothing,
    /// Operations are committed; the result is known afterwards.
    Operations(Vec<Op>),
    /// The output shows this mail, which counts as read with the results entry.
    MailShown(Vec<u64>),
    /// The permission mode changes.
    Mode(PermissionMode),
    /// Another tool is run first, which means to do this.
    ToolFirst {
        tool: String,
        input: RawJson,
        intent: Result<Intent, ToolError>,
    },
    /// A command continues in the background.
    Began {
        id: Uuid,
        description: String,
        output: PathBuf,
    },
    /// The sandbox has refused this to the command, which has ended.
    Refused {
        refusal: SandboxRefusal,
        failed: bool,
    },
}

/// What to do about an input: first the commit, then the effects.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    /// What is stored, in one transaction.
    pub(crate) commit: Commit,
    /// What is done once that is durable, in order.
    pub(crate) after: Vec<Effect>,
}

impl Decision {
    /// Changes the mode. It applies to the agent and all below it once the change is durable.
    pub(super) fn set_mode(&mut self, mode: PermissionMode) {
        self.commit.mode = Some(mode);
        self.after
            .extend([Effect::SetMode(mode), Effect::Emit(EventKind::Mode(mode))]);
    }

    /// Returns true if it ends a run.
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

    /// Adds a later decision, so that both are one step.
    pub(crate) fn add(&mut self, more: Self) {
        let Commit {
            entries,
            calls,
            charges,
            mail,
            operations,
            runs,
            questions,
            state,
            closing,
            resting,
            mode,
            types,
        } = more.commit;
        if entries.iter().any(|entry| entry.kind == EntryKind::Results) {
            // The results entry has the outcomes, which need not be stored twice.
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
        self.commit.questions.extend(questions);
        self.commit.state = state.or(self.commit.state);
        self.commit.closing = closing.or(self.commit.closing.take());
        self.commit.resting = resting.or(self.commit.resting.take());
        self.commit.mode = mode.or(self.commit.mode);
        self.commit.types = types.or(self.commit.types);
        self.after.extend(more.after);
    }
}

/// A step before it is encoded.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Commit {
    /// New entries of the history.
    pub(crate) entries: Vec<Draft>,
    /// Changes of tool calls.
    pub(crate) calls: Vec<CallChange>,
    /// Costs of model calls.
    pub(crate) charges: Vec<Charge>,
    /// Mail that the entries show.
    pub(crate) mail: Vec<TakenMail>,
    /// Operations on mail, teams and tasks.
    pub(crate) operations: Vec<Operation>,
    /// Changes of background commands.
    pub(crate) runs: Vec<RunChange>,
    /// Questions to a person that are asked or closed.
    pub(crate) questions: Vec<QuestionChange>,
    /// New state of the agent.
    pub(crate) state: Option<AgentState>,
    /// Set if it ends the run.
    pub(crate) closing: Option<Closing>,
    /// Set if it makes a teammate idle.
    pub(crate) resting: Option<Resting>,
    /// New permission mode.
    pub(crate) mode: Option<PermissionMode>,
    /// Fingerprint of the agent types and skills that the entries tell of.
    pub(crate) types: Option<u64>,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Closing {
    pub(crate) outcome: Outcome,
    /// Sums of the run.
    pub(crate) run: Run,
    /// True if it ends only if no mail waits; [`Input::Settled`] tells whether it did.
    pub(crate) unless_mail: bool,
}

/// How a teammate becomes idle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resting {
    pub(crate) outcome: Outcome,
    /// True if it becomes idle only if no mail waits; [`Input::Settled`] tells whether it did.
    pub(crate) unless_mail: bool,
    /// Its last answer.
    pub(crate) text: String,
}

impl Commit {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An entry before it is encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    pub(crate) kind: EntryKind,
    pub(crate) message: Arc<Message>,
    pub(crate) reply: Option<ReplyFacts>,
}

/// Something to do once the commit is durable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Call the model with the whole history.
    CallModel,
    /// Find the agent's tasks; if it has none and `claim` is set, claim one.
    Look { claim: bool },
    /// Start the members of the team that was created.
    Raise,
    /// Ask the model for a summary of the history instead.
    Compact(CompactionRequest),
    /// End the call.
    AbortModel,
    /// Run a tool.
    Run(ToolRun),
    /// Run hooks.
    Hook(Box<HookRequest>),
    /// End all hooks that run.
    AbortHooks,
    /// Move what a call has begun to the background.
    StartRun(Uuid),
    /// Start the agent that follows a skill.
    Delegate(CallKey),
    /// Stop it.
    AbortDelegate,
    /// End all tools that run.
    AbortCalls,
    /// Apply the new mode.
    SetMode(PermissionMode),
    /// Ask these questions again that a dead process asked first, as far as they are not answered.
    AskAgain(Vec<Question>),
    /// Tell the front ends.
    Emit(EventKind),
    /// The run begins; its time is taken from here.
    Begin,
    /// Tell the front ends that the run has ended, with what it took.
    End(Box<Ended>),
    /// Report a run that never began; a run in progress is not affected.
    Refuse(Outcome),
}

/// How to compact a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactionRequest {
    /// What a person wants to be kept above all.
    pub(crate) keep: Option<String>,
    /// True if posse does it on its own.
    pub(crate) auto: bool,
    /// True if the history is too large for the model: its last part is left out.
    pub(crate) overfull: bool,
}

/// A tool that is to be run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolRun {
    /// Position of the call.
    pub(crate) key: CallKey,
    /// The model's id of the call.
    pub(crate) call: String,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Its input.
    pub(crate) input: RawJson,
    /// What permission rules were asked about.
    pub(crate) subject: Subject,
    /// Who has agreed to it.
    pub(crate) consent: Consent,
    /// Outcome of the tool that was run first, if one was.
    pub(crate) first: Option<CallOutcome>,
}

/// A run that ended, without its times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) run: Run,
}
