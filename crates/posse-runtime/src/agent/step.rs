//! What an agent does next. Pure: an input and the state in, a decision out. Nothing here waits,
//! reads a clock, or touches the outside; the actor does that, after the decision's commit is durable.

mod acting;
mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use posse_protocol::{
    Answer, ContentBlock, EntryKind, EventKind, Fault, FaultClass, Limit, Message, Outcome, PermissionMode,
    RawJson, ReplyFacts, Role, StopReason,
};

use self::acting::Acting;
use self::run::Run;
use super::{Asker, Limits};
use crate::permission::Policy;
use crate::port::model::{ApiErrorKind, Failure, ModelError, Reply};
use crate::port::store::{AgentState, CallChange, CallKey, Charge, OpenCall};
use crate::tool::{Intent, Subject, ToolError, ToolOutput, Workspace};

/// So many prompts may wait for the run before them.
const QUEUE: usize = 64;

/// Something that an agent must react to.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person's words.
    Prompt(Vec<ContentBlock>),
    /// Go on without new words.
    Continue,
    /// The model answered. `intents` are what its tool calls mean to do, in their order.
    Reply { reply: Box<Reply>, charges: Vec<Charge>, intents: Vec<Result<Intent, ToolError>> },
    /// The model did not answer.
    Failed { failure: Box<Failure>, charges: Vec<Charge> },
    /// A person answered. `intent` is that of the input they put in place of the model's.
    Answer { call: String, answer: Answer, intent: Option<Result<Intent, ToolError>> },
    /// A tool has ended; none if it panicked or had to be given up.
    CallDone { key: CallKey, result: Option<Result<ToolOutput, ToolError>> },
    /// Stop the run.
    Interrupt,
    /// Another mode.
    SetMode(PermissionMode),
    /// Nobody can tell or answer anything any more.
    Unattended,
}

/// What is to be done about an input: first the commit, then the effects.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decision {
    pub(crate) commit: Commit,
    pub(crate) after: Vec<Effect>,
}

/// A step in words; the actor spells it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Commit {
    pub(crate) entries: Vec<Draft>,
    pub(crate) calls: Vec<CallChange>,
    pub(crate) charges: Vec<Charge>,
    pub(crate) state: Option<AgentState>,
    pub(crate) mode: Option<PermissionMode>,
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
    /// End the call.
    AbortModel,
    /// Run a tool.
    Run { key: CallKey, tool: String, input: RawJson, subject: Subject },
    /// End all tools that run.
    AbortCalls,
    /// Tell the front ends.
    Emit(EventKind),
    /// The run begins; its time is taken from here.
    Begin,
    /// Tell the front ends that the run has ended, with what it took.
    End(Box<Ended>),
}

/// A run that ended, but for its times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) run: Run,
}

/// What an agent is allowed, and by whom.
#[derive(Clone)]
pub(crate) struct Rights {
    pub(crate) mode: PermissionMode,
    pub(crate) policy: Arc<Policy>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) asker: Asker,
    pub(crate) limits: Limits,
}

enum State {
    Idle,
    Calling { cancelled: bool },
    Acting(Acting),
}

/// One agent's state, as far as decisions need it.
pub(crate) struct Machine {
    state: State,
    rights: Rights,
    queue: VecDeque<Vec<ContentBlock>>,
    run: Run,
    /// The number of the agent's next own entry.
    next_seq: u64,
    /// Whether the last entry waits for a reply.
    unanswered: bool,
}

impl Machine {
    pub(crate) fn new(rights: Rights, next_seq: u64, unanswered: bool) -> Self {
        let (state, queue, run) = (State::Idle, VecDeque::new(), Run::default());
        Self { state, rights, queue, run, next_seq, unanswered }
    }

    /// Whether nothing is under way and nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && self.queue.is_empty()
    }

    /// The words that waited for the run before them, if their turn has come.
    pub(crate) fn next(&mut self) -> Option<Input> {
        matches!(self.state, State::Idle).then(|| self.queue.pop_front()).flatten().map(Input::Prompt)
    }

    /// Nothing new will be begun.
    pub(crate) fn forget_waiting(&mut self) {
        self.queue.clear();
    }

    /// What the run that goes on has come to, when it cannot go on.
    pub(crate) fn take_run(&mut self) -> Run {
        std::mem::take(&mut self.run)
    }

    /// Whether there is something to go on with.
    pub(crate) fn unfinished(&self) -> bool {
        self.unanswered
    }

    /// The tool of a call that a person is being asked about.
    pub(crate) fn asked_tool(&self, call: &str) -> Option<&str> {
        match &self.state {
            State::Acting(acting) => acting.asked_tool(call),
            _ => None,
        }
    }

    /// Settles the calls that a dead process left open. Those that may have begun are never run again.
    pub(crate) fn recover(&mut self, open: Vec<OpenCall>) -> Decision {
        let mut decision = Decision::default();
        if !open.is_empty() {
            let results = open.into_iter().map(acting::recovered).collect();
            self.add(&mut decision, EntryKind::Results, Message { role: Role::User, content: results }, None);
        }
        decision.commit.state = Some(AgentState::Idle);
        decision
    }

    /// Decides on an input.
    pub(crate) fn step(&mut self, input: Input) -> Decision {
        let mut decision = Decision::default();
        match input {
            Input::Prompt(blocks) if matches!(self.state, State::Idle) => {
                self.begin(&mut decision, Some(blocks))
            }
            Input::Prompt(blocks) if self.queue.len() < QUEUE => self.queue.push_back(blocks),
            Input::Prompt(_) => {
                let message = format!("{QUEUE} prompts wait already; this one was not taken");
                let fault = Fault { class: FaultClass::Busy, status: None, message };
                let (outcome, run) = (Outcome::Failed(fault), Run::default());
                decision.after.push(Effect::End(Box::new(Ended { outcome, run })));
            }
            Input::Continue if matches!(self.state, State::Idle) => {
                if self.unanswered {
                    self.begin(&mut decision, None);
                } else {
                    let (outcome, run) = (Outcome::Completed, Run::default());
                    decision.after.push(Effect::End(Box::new(Ended { outcome, run })));
                }
            }
            Input::Continue => {}
            Input::Reply { reply, charges, intents } => self.reply(&mut decision, *reply, charges, intents),
            Input::Failed { failure, charges } => self.failed(&mut decision, *failure, charges),
            Input::Answer { call, answer, intent } => self.answer(&mut decision, &call, answer, intent),
            Input::CallDone { key, result } => self.call_done(&mut decision, key, result),
            Input::Interrupt => self.interrupt(&mut decision),
            Input::Unattended => self.unattended(&mut decision),
            Input::SetMode(mode) => {
                self.rights.mode = mode;
                decision.commit.mode = Some(mode);
                decision.after.push(Effect::Emit(EventKind::Mode(mode)));
            }
        }
        decision
    }

    /// Begins a run, with new words or without.
    fn begin(&mut self, decision: &mut Decision, words: Option<Vec<ContentBlock>>) {
        self.run = Run::default();
        decision.after.push(Effect::Begin);
        if let Some(content) = words {
            self.add(decision, EntryKind::Prompt, Message { role: Role::User, content }, None);
        }
        self.call_model(decision);
    }

    /// The next model call, unless a limit forbids it. The one place where calls are admitted.
    fn call_model(&mut self, decision: &mut Decision) {
        let Limits { turns, budget, .. } = self.rights.limits;
        if turns.is_some_and(|most| self.run.turns >= most) {
            return self.end(decision, Outcome::Partial(Limit::Turns));
        }
        // What has no price may cost anything.
        if budget.is_some_and(|most| self.run.cost().is_none_or(|spent| spent >= most)) {
            return self.end(decision, Outcome::Partial(Limit::Budget));
        }
        self.run.turns += 1;
        self.state = State::Calling { cancelled: false };
        decision.commit.state = Some(AgentState::Running);
        decision.after.push(Effect::CallModel);
    }

    fn reply(
        &mut self,
        decision: &mut Decision,
        reply: Reply,
        charges: Vec<Charge>,
        intents: Vec<Result<Intent, ToolError>>,
    ) {
        let State::Calling { cancelled } = self.state else { return };
        self.run.charge(&charges);
        decision.commit.charges = charges;
        self.run.heard(&reply.content, Some(&reply.stop));
        let seq = self.next_seq;
        let facts = ReplyFacts {
            id: reply.id,
            model: reply.model,
            stop: Some(reply.stop.clone()),
            usage: reply.usage,
        };
        let acting = Acting::new(seq, &reply.content, intents);
        self.add(decision, EntryKind::Reply, Message::assistant(reply.content), Some(facts));
        if acting.is_empty() {
            return match reply.stop {
                _ if cancelled => self.end(decision, Outcome::Interrupted),
                StopReason::PauseTurn => self.call_model(decision),
                StopReason::MaxTokens => self.end(decision, Outcome::Partial(Limit::Output)),
                StopReason::ContextFull => self.end(decision, Outcome::Partial(Limit::Context)),
                StopReason::Refusal => self.end(decision, Outcome::Refused),
                StopReason::EndTurn
                | StopReason::StopSequence
                | StopReason::ToolUse
                | StopReason::Other(_) => {
                    self.end(decision, Outcome::Completed);
                }
            };
        }
        decision.commit.calls.extend(acting.asked());
        self.state = State::Acting(acting);
        if cancelled {
            self.interrupt(decision);
        } else {
            self.advance(decision);
        }
    }

    fn failed(&mut self, decision: &mut Decision, failure: Failure, charges: Vec<Charge>) {
        if !matches!(self.state, State::Calling { .. }) {
            return;
        }
        self.run.charge(&charges);
        let model = charges.last().map(|charge| charge.model.clone()).unwrap_or_default();
        decision.commit.charges = charges;
        if let ModelError::Api(error) = &failure.error
            && error.kind == ApiErrorKind::ContextFull
        {
            return self.end(decision, Outcome::Partial(Limit::Context));
        }
        if !matches!(failure.error, ModelError::Cancelled) {
            let fault = Fault::from(&failure.error);
            let passes = failure.error.retryable();
            let outcome = if passes { Outcome::Paused(fault) } else { Outcome::Failed(fault) };
            return self.end(decision, outcome);
        }
        // What was said was said; half a tool call never was, and thoughts alone say nothing.
        let said = |block: &ContentBlock| {
            !matches!(block, ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. })
        };
        if failure.finished.iter().any(said) {
            self.run.heard(&failure.finished, None);
            let usage = failure.spent.last().copied().unwrap_or_default();
            let facts = ReplyFacts { id: String::new(), model, stop: None, usage };
            let acting = Acting::new(self.next_seq, &failure.finished, Vec::new());
            self.add(decision, EntryKind::Reply, Message::assistant(failure.finished), Some(facts));
            if !acting.is_empty() {
                let results = acting.not_run();
                self.add(decision, EntryKind::Results, Message { role: Role::User, content: results }, None);
            }
        }
        self.end(decision, Outcome::Interrupted);
    }

    fn interrupt(&mut self, decision: &mut Decision) {
        match &mut self.state {
            State::Idle => {}
            State::Calling { cancelled } => {
                *cancelled = true;
                decision.after.push(Effect::AbortModel);
            }
            State::Acting(_) => self.stop_acting(decision, Outcome::Interrupted),
        }
    }

    /// Ends the run.
    fn end(&mut self, decision: &mut Decision, outcome: Outcome) {
        self.state = State::Idle;
        decision.commit.state = Some(match &outcome {
            Outcome::Paused(_) => AgentState::Paused,
            _ => AgentState::Idle,
        });
        let run = std::mem::take(&mut self.run);
        decision.after.push(Effect::End(Box::new(Ended { outcome, run })));
    }

    fn add(&mut self, decision: &mut Decision, kind: EntryKind, message: Message, reply: Option<ReplyFacts>) {
        self.next_seq += 1;
        self.unanswered = unanswered(kind, reply.as_ref());
        decision.commit.entries.push(Draft { kind, message: Arc::new(message), reply });
    }
}

/// Whether a transcript that ends with this entry waits for a reply.
pub(crate) fn unanswered(last: EntryKind, reply: Option<&ReplyFacts>) -> bool {
    let paused = |facts: &ReplyFacts| facts.stop == Some(StopReason::PauseTurn);
    last != EntryKind::Reply || reply.is_some_and(paused)
}

#[cfg(test)]
mod tests;
