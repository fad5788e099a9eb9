//! Decides what an agent does next. Pure: an input and the state in, a decision out. Nothing here
//! waits, reads a clock, or touches the outside; the actor does that, after the commit is durable.
//!
//! Because a decision is a value, every order of inputs can be tested without a store or a model.
//! One file for each kind of transition; `machine.rs` has the state.

mod asking;
mod begin;
mod compact;
mod compaction;
mod decision;
mod finish;
mod hooked;
mod hooking;
mod hooks;
mod interrupt;
mod machine;
mod mail;
pub(crate) mod model;
mod models;
mod open_calls;
mod plan;
pub(crate) mod prompts;
mod queue;
mod repetition;
mod reply;
mod run;
mod skill;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;
mod turn;

use posse_protocol::{EntryKind, Fault, FaultClass, Message, Outcome, Role};

pub(crate) use crate::agent::step::decision::{
    Answered, Closing, Commit, CompactionRequest, Consequence, Decision, Delegated, Draft, Effect,
    Ended, Input, Resting, ToolRun,
};
pub(crate) use crate::agent::step::hooks::{AgentHooks, HookRequest, RanFacts};
use crate::agent::step::machine::Attention;
pub(crate) use crate::agent::step::machine::{Authority, Life, Machine, place, suggestions};
pub(crate) use crate::agent::step::models::NewModel;
pub(crate) use crate::agent::step::open_calls::{AskedCall, LeftCall, OpenCalls, failure};
pub(crate) use crate::agent::step::queue::{PROMPTS, queued};
pub(crate) use crate::agent::step::run::Run;
use crate::hook::HookEvent;
use crate::live::setup::Approver;
use posse_port::store::AgentState;

/// What an agent is doing.
pub(crate) enum State {
    /// Nothing.
    Idle,
    Calling {
        cancelled: bool,
    },
    /// Tool calls of the last reply are open.
    Acting(OpenCalls),
    /// Hooks look at the end of its turn.
    Hooked {
        run: u64,
        event: HookEvent,
    },
    /// The run ends if no mail waits; the commit decides.
    Ending(Outcome),
    /// The model has ended its turn; what the agent started continues.
    Waiting,
    /// A sub-agent follows the skill that a person called; the model is not called.
    Delegating,
    /// It looks for its tasks. `open` is true at the end of a run.
    Looking {
        open: bool,
    },
}

impl Machine {
    /// Decides about an input.
    pub(crate) fn step(&mut self, input: Input) -> Decision {
        let mut decision = Decision::default();
        match input {
            // It is shown with the results of the calls that a dead process asked about: one run for both.
            Input::Prompt(blocks) if !self.left.is_empty() => {
                self.queue.prompt(blocks);
                tools::on_left(self, &mut decision);
            }
            Input::Continue if !self.left.is_empty() => tools::on_left(self, &mut decision),
            Input::Prompt(blocks) if matches!(self.state, State::Idle) => {
                turn::begin(self, &mut decision, blocks)
            }
            Input::Team { words, ops } => begin::on_team(self, &mut decision, words, ops),
            Input::Look => tasks::on_tasks_ready(self, &mut decision),
            Input::Found { open, claimed } => {
                tasks::on_tasks_found(self, &mut decision, &open, claimed)
            }
            Input::Prompt(blocks) => {
                if !self.queue.prompt(blocks) {
                    let message = format!(
                        "{PROMPTS} prompts are already waiting; this one was not \
                                           accepted"
                    );
                    let fault = Fault {
                        class: FaultClass::Busy,
                        status: None,
                        message,
                    };
                    decision.after.push(Effect::Refuse(Outcome::Failed(fault)));
                }
            }
            Input::Delegate(words) => skill::on_delegate(self, &mut decision, words),
            Input::Delegated(delegated) => skill::on_delegated(self, &mut decision, *delegated),
            Input::NotBegun(outcome) => decision.after.push(Effect::Refuse(outcome)),
            Input::Shown(text) => turn::show(self, &mut decision, text),
            Input::Mail(mail) => mail::on_mail(self, &mut decision, mail),
            Input::Continue if matches!(self.state, State::Idle) => {
                self.attention = Attention::Awake;
                if self.unanswered || self.queue.has_mail() {
                    turn::begin(self, &mut decision, Vec::new());
                } else if let Life::Teammate { .. } = self.life {
                    decision.commit.state = Some(AgentState::Idle);
                } else {
                    let (outcome, run) = (Outcome::Completed, Run::default());
                    decision
                        .after
                        .push(Effect::End(Box::new(Ended { outcome, run })));
                }
            }
            // A run in progress continues anyway.
            Input::Continue => {}
            Input::Reply {
                reply,
                charges,
                intents,
                capped,
                missed,
            } => {
                reply::on_reply(
                    self,
                    &mut decision,
                    (*reply, missed),
                    charges,
                    intents,
                    capped,
                );
            }
            Input::Compact { keep } => compact::on_compact(self, &mut decision, keep),
            Input::Compacted {
                content,
                facts,
                charges,
            } => {
                compact::on_compacted(self, &mut decision, content, facts, charges);
            }
            Input::NotCompacted { why, charges } => {
                compact::on_not_compacted(self, &mut decision, why, charges)
            }
            Input::Refused { why, charges } => reply::on_refused(self, &mut decision, why, charges),
            Input::Settled { mail_waits } => finish::on_settled(self, &mut decision, mail_waits),
            Input::Settle => {
                if matches!(self.state, State::Waiting) {
                    finish::finish(self, &mut decision);
                }
            }
            Input::Failed { failure, charges } => {
                reply::on_failure(self, &mut decision, *failure, charges)
            }
            Input::Answer {
                question,
                given,
                intent,
            } => tools::on_answer(self, &mut decision, question, given, intent),
            Input::Left => tools::on_left(self, &mut decision),
            Input::CallDone { key, result } => {
                tools::on_call_done(self, &mut decision, key, result)
            }
            Input::Hooked { run, said, intent } => {
                hooked::on_hooked(self, &mut decision, run, *said, intent)
            }
            Input::Interrupt => {
                self.settle_down();
                interrupt::interrupt(self, &mut decision);
            }
            // What is open is denied by the actor, unless somebody has answered it first.
            Input::Unattended => {
                if self.rights.approver == Approver::FrontEnd {
                    self.rights.approver = Approver::Nobody;
                }
            }
            Input::SetMode(mode) => plan::on_set_mode(self, &mut decision, mode),
            Input::SetModel(wanted) => model::on_set_model(self, &mut decision, wanted),
        }
        decision
    }

    /// Settles the calls that a dead process left open. Calls that may have begun are never run
    /// again. If a question about a call waits, the run goes on with it. A sub-agent that had ended
    /// its turn continues to wait.
    pub(crate) fn recover(&mut self, open: Vec<LeftCall>, state: AgentState) -> Decision {
        let mut decision = Decision::default();
        let asked = open.iter().filter_map(|left| left.asked.as_ref());
        self.left = asked.map(|left| left.question.clone()).collect();
        if !self.left.is_empty() {
            self.state = State::Acting(OpenCalls::left(open));
            return decision;
        }
        if !open.is_empty() {
            let result = |left: LeftCall| {
                let id = left.call.id.clone();
                open_calls::result(id, &left.outcome())
            };
            let results = open.into_iter().map(result).collect();
            turn::add_entry(
                self,
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
            // Its reply was stored, and what it would have done next was not.
            Life::Teammate { .. } if state.is_open() && !self.unanswered => {
                self.state = State::Waiting
            }
            Life::Sub | Life::Teammate { .. } => {}
        }
        decision
    }
}
