//! The model has ended its turn: what is left to be done before the run ends.

use posse_port::store::AgentState;
use posse_protocol::{ContentBlock, Fault, FaultClass, Outcome, RawJson};

use crate::agent::step::machine::Departure;
use crate::agent::step::{
    Closing, Decision, Effect, Ended, Life, Machine, Resting, State, mail, turn,
};

/// The model has ended its turn by itself. Mail that has come meanwhile is answered first, unless a
/// person's words wait: those come before it, in a run that shows both. And a sub-agent is not done
/// while what it has started goes on.
pub(super) fn finish(machine: &mut Machine, decision: &mut Decision) {
    if machine.begins_by_mail() && !machine.queue.has_prompts() {
        return turn::next_turn(machine, decision, Vec::new());
    }
    if must_check_tasks(machine) {
        return check_tasks(machine, decision);
    }
    conclude(machine, decision);
}

/// The turn is over, and nothing is left to be done in it.
pub(super) fn conclude(machine: &mut Machine, decision: &mut Decision) {
    match machine.life {
        Life::Root { .. } => turn::end_run(machine, decision, Outcome::Completed),
        Life::Teammate { .. } if machine.is_leaving() => {
            turn::end_run(machine, decision, Outcome::Completed)
        }
        Life::Teammate { .. } if machine.live == 0 => go_idle(machine, decision),
        Life::Sub | Life::Teammate { .. } if machine.live > 0 => {
            machine.state = State::Waiting;
            decision.commit.state = Some(AgentState::Waiting);
        }
        Life::Sub | Life::Teammate { .. } => match check_answer(machine) {
            Ok(value) => {
                machine.run.value = value;
                machine.state = State::Ending(Outcome::Completed);
                decision.commit.closing = Some(Closing {
                    outcome: Outcome::Completed,
                    run: machine.run.clone(),
                    unless_mail: true,
                });
            }
            Err(Wrong::Repairable(words)) => {
                machine.run.repaired = true;
                turn::next_turn(machine, decision, vec![ContentBlock::text(words)]);
            }
            Err(Wrong::Again(wrong)) => {
                let message = format!("its answer does not match the output schema: {wrong}");
                let fault = Fault {
                    class: FaultClass::Answer,
                    status: None,
                    message,
                };
                turn::end_run(machine, decision, Outcome::Failed(fault));
            }
        },
    }
}

/// The answer as a value, if it must be one.
fn check_answer(machine: &Machine) -> Result<Option<RawJson>, Wrong> {
    let Some(output_schema) = &machine.output_schema else {
        return Ok(None);
    };
    if machine.run.turns == 0 {
        // It had answered when posse was ended, and what it said is not known here.
        let again = "posse restarted before it could be passed on";
        return Err(Wrong::Repairable(output_schema.repair(again)));
    }
    match output_schema.check(&machine.run.text) {
        Ok(value) => Ok(Some(value)),
        Err(wrong) if machine.run.repaired => Err(Wrong::Again(wrong)),
        Err(wrong) => Err(Wrong::Repairable(output_schema.repair(&wrong))),
    }
}

pub(super) fn on_settled(machine: &mut Machine, decision: &mut Decision, mail_waits: bool) {
    let State::Ending(outcome) = &machine.state else {
        return;
    };
    let outcome = outcome.clone();
    if mail_waits {
        // What it answered is not its answer any more.
        (machine.run.value, machine.run.repaired) = (None, false);
        machine.state = State::Waiting;
        if machine.is_muted() {
            return turn::end_run(machine, decision, Outcome::Interrupted);
        }
        return mail::on_mail(machine, decision, Vec::new());
    }
    machine.state = State::Idle;
    let run = std::mem::take(&mut machine.run);
    decision
        .after
        .push(Effect::End(Box::new(Ended { outcome, run })));
}

/// Whether it must look for tasks before its turn is over: a teammate always, others if they may have some.
fn must_check_tasks(machine: &Machine) -> bool {
    machine.departure != Departure::Leaving
        && (machine.is_teammate() && machine.live == 0 || machine.owning && !machine.run.reminded)
}

fn check_tasks(machine: &mut Machine, decision: &mut Decision) {
    machine.state = State::Looking { open: true };
    decision.after.push(Effect::Look {
        claim: machine.is_teammate() && machine.is_awake(),
    });
}

/// A teammate has nothing to do: it becomes idle, unless mail has come.
fn go_idle(machine: &mut Machine, decision: &mut Decision) {
    if machine.queue.has_prompts() {
        let words = machine.queue.all_prompts();
        return turn::next_turn(machine, decision, words);
    }
    machine.state = State::Ending(Outcome::Completed);
    let text = machine.run.text.clone();
    decision.commit.resting = Some(Resting {
        outcome: Outcome::Completed,
        unless_mail: true,
        text,
    });
}

/// An answer that does not fit.
enum Wrong {
    /// It is asked for once more, with these words.
    Repairable(String),
    /// It was asked for once more already.
    Again(String),
}
