//! What an agent does next. Pure: an input and the state in, a decision out. Nothing here waits,
//! reads a clock, or touches the outside; the actor does that, after the decision's commit is durable.

mod acting;
mod compact;
mod decision;
mod mate;
mod queue;
mod run;
#[cfg(test)]
mod tests;

use crate::history::restore::unanswered;
use crate::prompt;
use std::collections::HashMap;
use std::sync::Arc;

use posse_protocol::{
    ContentBlock, EntryKind, EventKind, Fault, FaultClass, Limit, Mail, Message, Missed, Outcome,
    PermissionMode, RawJson, ReplyFacts, Role, StopReason, Usage,
};

use crate::agent::step::acting::Acting;
pub(crate) use crate::agent::step::acting::failure;
use crate::agent::step::compact::Compaction;
pub(crate) use crate::agent::step::decision::{
    Answered, Closing, Commit, Consequence, Decision, Delegated, Draft, Effect, Ended, Input,
    Resting, Squeeze,
};
pub(crate) use crate::agent::step::queue::PROMPTS;
use crate::agent::step::queue::Queue;
pub(crate) use crate::agent::step::run::Run;
use crate::definition::output_schema::Contract;
pub(crate) use crate::live::setup::{Asker, Limits};
use posse_permission::{Policy, Standing};
use posse_port::model::{ApiErrorKind, Failure, ModelError, Reply};
use posse_port::store::{AgentState, CallKey, CallOutcome, Charge, OpenCall, TakenMail};
use posse_port::tool::{Intent, ToolError};

/// What an agent is allowed, and by whom.
#[derive(Clone)]
pub(crate) struct Rights {
    pub(crate) standing: Standing,
    pub(crate) asker: Asker,
    /// What a person calls the agent that asks; none for the main one.
    pub(crate) name: Option<String>,
    pub(crate) limits: Limits,
}

/// Which kind of life it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// A root: told things by a person, run by run. If it `joins`, words that come while it works are
    /// shown at the next tool boundary.
    Root { joins: bool },
    /// A sub-agent: it has one run, and ends with it.
    Sub,
    /// A teammate: told things by mail and by a person, run by run; between them it looks for work. `then` is the
    /// mode that it has once its plan is approved, if not its lead's.
    Mate { then: Option<PermissionMode> },
}

enum State {
    Idle,
    Calling {
        cancelled: bool,
    },
    Acting(Acting),
    /// The run has ended, if no mail waits.
    Ending(Outcome),
    /// The model has ended its turn; what the agent has started goes on.
    Waiting,
    /// An agent follows the skill that a person has called; the model is not called.
    Delegating,
    /// It looks which tasks it has and could take. `open`: at the end of a run.
    Looking {
        open: bool,
    },
}

/// One agent's state, as far as decisions need it.
pub(crate) struct Machine {
    state: State,
    rights: Rights,
    life: Life,
    queue: Queue,
    run: Run,
    /// Mail that answers of the present calls show.
    took: Vec<u64>,
    /// What posse itself has to tell the model with the next entry.
    notices: Vec<String>,
    /// Types of agents and skills that the model does not know yet: their fingerprint, and what it is told.
    offer: Option<(u64, String)>,
    /// How the history is compacted, and when.
    compaction: Compaction,
    /// What its answer must fit.
    contract: Option<Contract>,
    /// How many runs it has started that are not over.
    live: usize,
    /// Whether mail alone may begin a run.
    awake: bool,
    /// Whether a skill is being made ready, whose run comes before any other.
    preparing: bool,
    left_mail: bool,
    /// Whether it has, or may have, tasks that it is doing.
    owning: bool,
    /// Whether it ends for good with the run.
    leaving: bool,
    /// Whether its process ends, and it goes on another time.
    suspended: bool,
    /// Whether its history begins with another's.
    inherits: bool,
    /// The number of the agent's next own entry.
    next_seq: u64,
    /// Whether the last entry waits for a reply.
    unanswered: bool,
}

impl Machine {
    pub(crate) fn new(rights: Rights, life: Life, next_seq: u64, unanswered: bool) -> Self {
        Self {
            state: State::Idle,
            rights,
            life,
            queue: Queue::default(),
            run: Run::default(),
            took: Vec::new(),
            notices: Vec::new(),
            offer: None,
            compaction: Compaction::default(),
            contract: None,
            live: 0,
            awake: true,
            preparing: false,
            left_mail: false,
            owning: false,
            leaving: false,
            suspended: false,
            inherits: false,
            next_seq,
            unanswered,
        }
    }

    /// Whether its history begins with another's.
    pub(crate) fn inherits(&mut self, inherits: bool) {
        self.inherits = inherits;
    }

    /// Its answer must fit this.
    pub(crate) fn bind(&mut self, contract: Option<Contract>) {
        self.contract = contract;
    }

    /// Posse itself has something to tell the model; it is shown with the next entry.
    pub(crate) fn tell(&mut self, notice: String) {
        self.notices.push(notice);
    }

    /// The model does not know these types of agents and skills yet; none if it knows all there is.
    pub(crate) fn offer(&mut self, offer: Option<(u64, String)>) {
        self.offer = offer;
    }

    /// The rules that hold now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.rights.standing.policy()
    }

    /// What skills have granted is over with the run.
    pub(crate) fn withdraw(&self) {
        self.rights.standing.withdraw();
    }

    /// Whether mail begins a run.
    pub(crate) fn is_awake(&self) -> bool {
        self.awake
    }

    /// Whether mail that it has looked at waits on, because its run ended first.
    pub(crate) fn left_mail(&self) -> bool {
        self.left_mail
    }

    /// Mail begins no run before a person has said something.
    pub(crate) fn fall_asleep(&mut self) {
        self.awake = false;
    }

    /// Whether a skill is being made ready that a person has called: until it is, no other run begins.
    pub(crate) fn set_preparing(&mut self, preparing: bool) {
        self.preparing = preparing;
    }

    /// Whether nothing is under way and no words wait.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && !self.queue.has_prompts() && !self.begins_by_mail()
    }

    /// Whether the run, or the end of it, waits for what the agent has started or for a person.
    pub(crate) fn waits(&self) -> bool {
        match &self.state {
            State::Waiting | State::Delegating => true,
            State::Acting(acting) => acting.waits(),
            State::Idle | State::Calling { .. } | State::Ending(_) | State::Looking { .. } => false,
        }
    }

    /// How many runs it has started that are not over.
    pub(crate) fn set_live(&mut self, live: usize) {
        // Whoever starts something wants to hear of its end.
        self.awake |= live > self.live;
        self.live = live;
    }

    /// What waited for the run before it, if its turn has come.
    pub(crate) fn next(&mut self) -> Option<Input> {
        if self.preparing || !matches!(self.state, State::Idle) {
            return None;
        }
        if let Some(Squeeze { keep, .. }) = self.compaction.due() {
            // It was wanted while the run before was ending.
            return Some(Input::Compact { keep });
        }
        let prompt = self.queue.next_prompt().map(Input::Prompt);
        prompt.or_else(|| self.begins_by_mail().then(|| Input::Mail(Vec::new())))
    }

    /// Whether mail that waits is reason enough for a run.
    fn begins_by_mail(&self) -> bool {
        self.awake && !self.preparing && self.queue.has_mail()
    }

    /// Nothing new will be begun.
    pub(crate) fn forget_waiting(&mut self) {
        self.queue.clear();
        self.awake = false;
    }

    /// What the run has come to so far.
    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// What the run that goes on has come to, when it cannot go on.
    pub(crate) fn take_run(&mut self) -> Run {
        std::mem::take(&mut self.run)
    }

    /// Whether there is something to go on with.
    pub(crate) fn unfinished(&self) -> bool {
        self.unanswered || self.queue.has_mail() || self.live > 0
    }

    /// The tool of a call that is open.
    pub(crate) fn tool(&self, key: CallKey) -> Option<&str> {
        match &self.state {
            State::Acting(acting) => acting.tool(key),
            _ => None,
        }
    }

    /// The model's id of a call that is open.
    pub(crate) fn call_id(&self, key: CallKey) -> Option<&str> {
        match &self.state {
            State::Acting(acting) => acting.call_id(key),
            _ => None,
        }
    }

    /// The model's ids of all calls of the reply whose calls are open.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = String> {
        let acting = match &self.state {
            State::Acting(acting) => Some(acting),
            _ => None,
        };
        acting.into_iter().flat_map(Acting::call_ids)
    }

    /// Whether tools run that wait for other agents.
    pub(crate) fn awaits_others(&self) -> bool {
        matches!(&self.state, State::Acting(acting) if acting.awaits_others())
    }

    /// The tool of a call that a person is being asked about.
    pub(crate) fn asked_tool(&self, call: &str) -> Option<&str> {
        match &self.state {
            State::Acting(acting) => acting.asked_tool(call),
            _ => None,
        }
    }

    /// Settles the calls that a dead process left open. Those that may have begun are never run again;
    /// of some it is `known` what came of them. A sub-agent that had ended its turn waits on.
    pub(crate) fn recover(
        &mut self,
        open: Vec<OpenCall>,
        mut known: HashMap<CallKey, CallOutcome>,
        state: AgentState,
    ) -> Decision {
        let mut decision = Decision::default();
        if !open.is_empty() {
            let result = |call: OpenCall| {
                let outcome = known.remove(&call.key);
                acting::recovered(call, outcome)
            };
            let results = open.into_iter().map(result).collect();
            self.add(
                &mut decision,
                EntryKind::Results,
                Message {
                    role: Role::User,
                    content: results,
                },
                None,
            );
        }
        match self.life {
            Life::Root { .. } => decision.commit.state = Some(AgentState::Idle),
            Life::Sub if state == AgentState::Waiting && !self.unanswered => {
                self.state = State::Waiting
            }
            // Its reply was kept, and what it would have done then was not.
            Life::Mate { .. } if state.is_open() && !self.unanswered => self.state = State::Waiting,
            Life::Sub | Life::Mate { .. } => {}
        }
        decision
    }

    /// Decides on an input.
    pub(crate) fn step(&mut self, input: Input) -> Decision {
        let mut decision = Decision::default();
        match input {
            Input::Prompt(blocks) if matches!(self.state, State::Idle) => {
                self.begin(&mut decision, blocks)
            }
            Input::Team { words, ops } => self.raise(&mut decision, words, ops),
            Input::Look => self.look_again(&mut decision),
            Input::Found { open, claimed } => self.found(&mut decision, &open, claimed),
            Input::Prompt(blocks) => {
                if !self.queue.prompt(blocks) {
                    let message = format!("{PROMPTS} prompts wait already; this one was not taken");
                    let fault = Fault {
                        class: FaultClass::Busy,
                        status: None,
                        message,
                    };
                    decision.after.push(Effect::Refuse(Outcome::Failed(fault)));
                }
            }
            Input::Delegate(words) => self.delegate(&mut decision, words),
            Input::Delegated(delegated) => self.delegated(&mut decision, *delegated),
            Input::NotBegun(outcome) => decision.after.push(Effect::Refuse(outcome)),
            Input::Mail(mail) => self.mail(&mut decision, mail),
            Input::Continue if matches!(self.state, State::Idle) => {
                self.awake = true;
                if self.unanswered || self.queue.has_mail() {
                    self.begin(&mut decision, Vec::new());
                } else if let Life::Mate { .. } = self.life {
                    decision.commit.state = Some(AgentState::Idle);
                } else {
                    let (outcome, run) = (Outcome::Completed, Run::default());
                    decision
                        .after
                        .push(Effect::End(Box::new(Ended { outcome, run })));
                }
            }
            Input::Continue => {}
            Input::Reply {
                reply,
                charges,
                intents,
                capped,
                missed,
            } => {
                self.reply(&mut decision, (*reply, missed), charges, intents, capped);
            }
            Input::Compact { keep } => self.compact(&mut decision, keep),
            Input::Compacted {
                content,
                facts,
                charges,
            } => {
                self.compacted(&mut decision, content, facts, charges);
            }
            Input::NotCompacted { why, charges } => self.not_compacted(&mut decision, why, charges),
            Input::Refused { why, charges } => self.refused(&mut decision, why, charges),
            Input::Settled { mail_waits } => self.settled(&mut decision, mail_waits),
            Input::Settle => {
                if matches!(self.state, State::Waiting) {
                    self.finish(&mut decision);
                }
            }
            Input::Failed { failure, charges } => self.failed(&mut decision, *failure, charges),
            Input::Answer {
                call,
                answer,
                intent,
            } => self.answer(&mut decision, &call, answer, intent),
            Input::CallDone { key, result } => self.call_done(&mut decision, key, result),
            Input::Interrupt => {
                self.calm();
                self.interrupt(&mut decision);
            }
            Input::Unattended => self.unattended(&mut decision),
            Input::SetMode(mode) => {
                self.rights.standing.set_mode(mode);
                decision.commit.mode = Some(mode);
                decision.after.push(Effect::Emit(EventKind::Mode(mode)));
            }
        }
        decision
    }

    /// Begins a run, with new words, with mail, or without either.
    fn begin(&mut self, decision: &mut Decision, words: Vec<ContentBlock>) {
        self.awake = true;
        self.run = Run::default();
        decision.after.push(Effect::Begin);
        self.go_on(decision, words);
        self.compaction.begun(decision.commit.entries.last());
    }

    /// Begins a run in which another agent follows a skill.
    fn delegate(&mut self, decision: &mut Decision, content: Vec<ContentBlock>) {
        if !matches!(self.state, State::Idle) {
            let message =
                "another run has begun before the skill was ready; call it again".to_owned();
            let fault = Fault {
                class: FaultClass::Busy,
                status: None,
                message,
            };
            return decision.after.push(Effect::Refuse(Outcome::Failed(fault)));
        }
        self.awake = true;
        self.run = Run::default();
        decision.after.push(Effect::Begin);
        let key = CallKey {
            seq: self.next_seq,
            ordinal: 0,
        };
        self.add(
            decision,
            EntryKind::Prompt,
            Message {
                role: Role::User,
                content,
            },
            None,
        );
        self.state = State::Delegating;
        decision.commit.state = Some(AgentState::Waiting);
        decision.after.push(Effect::Delegate(key));
    }

    /// That agent is done: what it said is the run's result, and the model hears of it with the next words.
    fn delegated(&mut self, decision: &mut Decision, delegated: Delegated) {
        if !matches!(self.state, State::Delegating) {
            return;
        }
        let Delegated {
            outcome,
            text,
            told,
        } = delegated;
        // It asks the model for nothing, also when somebody goes on with the session later.
        let (usage, stop) = (Usage::default(), Some(StopReason::EndTurn));
        let facts = ReplyFacts {
            id: String::new(),
            model: String::new(),
            stop,
            usage,
            missed: None,
        };
        self.add(
            decision,
            EntryKind::Prompt,
            Message::user(told),
            Some(facts),
        );
        self.run.text = text;
        self.end(decision, outcome);
    }

    /// The next turn, with new words and whatever mail waits.
    fn go_on(&mut self, decision: &mut Decision, mut content: Vec<ContentBlock>) {
        content.extend(self.show_news(decision));
        if !content.is_empty() {
            self.add(
                decision,
                EntryKind::Prompt,
                Message {
                    role: Role::User,
                    content,
                },
                None,
            );
        }
        self.call_model(decision);
    }

    /// What the next entry shows besides: posse's own words, and mail, which is taken by the step that
    /// brings that entry.
    fn show_news(&mut self, decision: &mut Decision) -> Vec<ContentBlock> {
        let mail = self.queue.next_mail();
        self.heed_plan(decision, &mail);
        let entry = self.next_seq;
        decision
            .commit
            .mail
            .extend(mail.iter().map(|mail| TakenMail {
                number: mail.number,
                entry,
            }));
        let mut notices = std::mem::take(&mut self.notices);
        if let Some((fingerprint, text)) = self.offer.take() {
            decision.commit.types = Some(fingerprint);
            notices.push(text);
        }
        notices
            .into_iter()
            .map(ContentBlock::text)
            .chain(prompt::arrivals(&mail))
            .collect()
    }

    fn mail(&mut self, decision: &mut Decision, mut mail: Vec<Mail>) {
        // What the answer of a call shows waits in the store until all calls are answered.
        mail.retain(|mail| !self.took.contains(&mail.number));
        let interrupts = self.heed_signals(&mail);
        self.queue.post(mail);
        if interrupts {
            return self.hush(decision);
        }
        if !self.queue.has_mail() {
            return;
        }
        match self.state {
            State::Idle if self.begins_by_mail() => self.begin(decision, Vec::new()),
            State::Waiting => self.go_on(decision, Vec::new()),
            _ => {}
        }
    }

    /// The next model call, unless a limit forbids it. The one place where calls are made from.
    fn call_model(&mut self, decision: &mut Decision) {
        if self
            .rights
            .limits
            .turns
            .is_some_and(|most| self.run.turns >= most)
        {
            return self.end(decision, Outcome::Partial(Limit::Turns));
        }
        self.run.turns += 1;
        self.state = State::Calling { cancelled: false };
        decision.commit.state = Some(AgentState::Running);
        decision.after.push(
            self.compaction
                .due()
                .map_or(Effect::CallModel, Effect::Compact),
        );
    }

    /// A budget forbids the call: a root's run has come to its limit, a sub-agent waits for more.
    fn refused(&mut self, decision: &mut Decision, message: String, charges: Vec<Charge>) {
        let State::Calling { cancelled } = self.state else {
            return;
        };
        if charges.is_empty() {
            self.run.turns = self.run.turns.saturating_sub(1);
        }
        self.run.charge(&charges);
        decision.commit.charges = charges;
        let outcome = match self.life {
            _ if cancelled => Outcome::Interrupted,
            Life::Root { .. } => Outcome::Partial(Limit::Budget),
            Life::Sub | Life::Mate { .. } => Outcome::Paused(Fault {
                class: FaultClass::Budget,
                status: None,
                message,
            }),
        };
        self.end(decision, outcome);
    }

    fn reply(
        &mut self,
        decision: &mut Decision,
        (reply, missed): (Reply, Option<Missed>),
        charges: Vec<Charge>,
        intents: Vec<Result<Intent, ToolError>>,
        capped: bool,
    ) {
        let State::Calling { cancelled } = self.state else {
            return;
        };
        if reply.stop != StopReason::ContextFull {
            self.compaction.answered();
        }
        self.run.charge(&charges);
        decision.commit.charges = charges;
        self.run.heard(&reply.content, Some(&reply.stop));
        let seq = self.next_seq;
        let facts = ReplyFacts {
            id: reply.id,
            model: reply.model,
            stop: Some(reply.stop.clone()),
            usage: reply.usage,
            missed,
        };
        self.run.miss(facts.missed.as_ref());
        let acting = Acting::new(seq, &reply.content, intents);
        self.add(
            decision,
            EntryKind::Reply,
            Message::assistant(reply.content),
            Some(facts),
        );
        if acting.is_empty() {
            return match reply.stop {
                _ if cancelled => self.end(decision, Outcome::Interrupted),
                StopReason::PauseTurn => self.call_model(decision),
                StopReason::MaxTokens if capped => {
                    self.end(decision, Outcome::Partial(Limit::Budget))
                }
                StopReason::MaxTokens => self.end(decision, Outcome::Partial(Limit::Output)),
                StopReason::ContextFull => self.overfull(decision),
                StopReason::Refusal => self.end(decision, Outcome::Refused),
                StopReason::EndTurn
                | StopReason::StopSequence
                | StopReason::ToolUse
                | StopReason::Other(_) => self.finish(decision),
            };
        }
        self.run.tool_uses += acting.len();
        decision.commit.calls.extend(acting.asked());
        self.state = State::Acting(acting);
        if cancelled {
            self.interrupt(decision);
        } else {
            self.advance(decision);
        }
    }

    fn failed(&mut self, decision: &mut Decision, failure: Failure, charges: Vec<Charge>) {
        let State::Calling { cancelled } = self.state else {
            return;
        };
        self.run.charge(&charges);
        let model = charges
            .last()
            .map(|charge| charge.model.clone())
            .unwrap_or_default();
        decision.commit.charges = charges;
        if let ModelError::Api(error) = &failure.error
            && error.kind == ApiErrorKind::ContextFull
        {
            if cancelled {
                return self.end(decision, Outcome::Interrupted);
            }
            return self.overfull(decision);
        }
        if !matches!(failure.error, ModelError::Cancelled) {
            let fault = Fault::from(&failure.error);
            let passes = failure.error.retryable();
            let outcome = if passes {
                Outcome::Paused(fault)
            } else {
                Outcome::Failed(fault)
            };
            return self.end(decision, outcome);
        }
        // What was said was said; half a tool call never was, and thoughts alone say nothing.
        let said = |block: &ContentBlock| {
            !matches!(
                block,
                ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. }
            )
        };
        // One whose process ends says it again, and all of it.
        if !self.suspended && failure.finished.iter().any(said) {
            self.run.heard(&failure.finished, None);
            let usage = failure.spent.last().copied().unwrap_or_default();
            let facts = ReplyFacts {
                id: String::new(),
                model,
                stop: None,
                usage,
                missed: None,
            };
            let acting = Acting::new(self.next_seq, &failure.finished, Vec::new());
            self.add(
                decision,
                EntryKind::Reply,
                Message::assistant(failure.finished),
                Some(facts),
            );
            if !acting.is_empty() {
                let results = acting.not_run();
                self.add(
                    decision,
                    EntryKind::Results,
                    Message {
                        role: Role::User,
                        content: results,
                    },
                    None,
                );
            }
        }
        self.end(decision, Outcome::Interrupted);
    }

    fn interrupt(&mut self, decision: &mut Decision) {
        match &mut self.state {
            State::Idle if self.leaving => self.end(decision, Outcome::Completed),
            State::Idle | State::Ending(_) | State::Looking { .. } => {}
            State::Waiting => self.end(decision, Outcome::Interrupted),
            State::Delegating => decision.after.push(Effect::AbortDelegate),
            State::Calling { cancelled } => {
                *cancelled = true;
                decision.after.push(Effect::AbortModel);
            }
            State::Acting(_) => self.stop_acting(decision, Outcome::Interrupted),
        }
    }

    /// The model has ended its turn by itself. Mail that has come meanwhile is answered first, unless a
    /// person's words wait: those come before it, in a run that shows both. And a sub-agent is not done
    /// while what it has started goes on.
    fn finish(&mut self, decision: &mut Decision) {
        if self.begins_by_mail() && !self.queue.has_prompts() {
            return self.go_on(decision, Vec::new());
        }
        if self.must_look() {
            return self.look(decision);
        }
        self.conclude(decision);
    }

    /// The turn is over, and nothing is left to be done in it.
    fn conclude(&mut self, decision: &mut Decision) {
        match self.life {
            Life::Root { .. } => self.end(decision, Outcome::Completed),
            Life::Mate { .. } if self.leaving => self.end(decision, Outcome::Completed),
            Life::Mate { .. } if self.live == 0 => self.rest(decision),
            Life::Sub | Life::Mate { .. } if self.live > 0 => {
                self.state = State::Waiting;
                decision.commit.state = Some(AgentState::Waiting);
            }
            Life::Sub | Life::Mate { .. } => match self.checked() {
                Ok(value) => {
                    self.run.value = value;
                    self.state = State::Ending(Outcome::Completed);
                    decision.commit.closing = Some(Closing {
                        outcome: Outcome::Completed,
                        unless_mail: true,
                    });
                }
                Err(Wrong::Repairable(words)) => {
                    self.run.repaired = true;
                    self.go_on(decision, vec![ContentBlock::text(words)]);
                }
                Err(Wrong::Again(wrong)) => {
                    let message = format!("its answer does not fit the output schema: {wrong}");
                    let fault = Fault {
                        class: FaultClass::Answer,
                        status: None,
                        message,
                    };
                    self.end(decision, Outcome::Failed(fault));
                }
            },
        }
    }

    /// The answer as a value, if it must be one.
    fn checked(&self) -> Result<Option<RawJson>, Wrong> {
        let Some(contract) = &self.contract else {
            return Ok(None);
        };
        if self.run.turns == 0 {
            // It had answered when posse was ended, and what it said is not known here.
            let again = "posse was started anew before it could be handed on";
            return Err(Wrong::Repairable(contract.repair(again)));
        }
        match contract.check(&self.run.text) {
            Ok(value) => Ok(Some(value)),
            Err(wrong) if self.run.repaired => Err(Wrong::Again(wrong)),
            Err(wrong) => Err(Wrong::Repairable(contract.repair(&wrong))),
        }
    }

    fn settled(&mut self, decision: &mut Decision, mail_waits: bool) {
        let State::Ending(outcome) = &self.state else {
            return;
        };
        let outcome = outcome.clone();
        if mail_waits {
            // What it answered is not its answer any more.
            (self.run.value, self.run.repaired) = (None, false);
            self.state = State::Waiting;
            if self.is_hushed() {
                return self.end(decision, Outcome::Interrupted);
            }
            return self.mail(decision, Vec::new());
        }
        self.state = State::Idle;
        let run = std::mem::take(&mut self.run);
        decision
            .after
            .push(Effect::End(Box::new(Ended { outcome, run })));
    }

    /// Ends the run.
    fn end(&mut self, decision: &mut Decision, outcome: Outcome) {
        self.state = State::Idle;
        self.compaction.over(self.unanswered);
        match self.life {
            Life::Root { .. } => {
                let paused = matches!(outcome, Outcome::Paused(_));
                decision.commit.state = Some(if paused {
                    AgentState::Paused
                } else {
                    AgentState::Idle
                });
            }
            Life::Mate { .. } if !self.leaving => self.rest_after(decision, &outcome),
            Life::Sub | Life::Mate { .. } => {
                decision.commit.closing = Some(Closing {
                    outcome: outcome.clone(),
                    unless_mail: false,
                });
                // Whatever comes of the mail comes of another run.
                self.left_mail = self.queue.has_mail();
                self.queue.clear();
            }
        }
        let run = std::mem::take(&mut self.run);
        decision
            .after
            .push(Effect::End(Box::new(Ended { outcome, run })));
    }

    fn add(
        &mut self,
        decision: &mut Decision,
        kind: EntryKind,
        message: Message,
        reply: Option<ReplyFacts>,
    ) {
        self.next_seq += 1;
        self.unanswered = unanswered(kind, reply.as_ref());
        let message = Arc::new(message);
        self.compaction.added(kind, &message);
        decision.commit.entries.push(Draft {
            kind,
            message,
            reply,
        });
    }
}

/// An answer that does not fit.
enum Wrong {
    /// It is asked for once more, with these words.
    Repairable(String),
    /// It was asked for once more already.
    Again(String),
}
