//! What is left to do after the model has ended its turn, before the run ends.

use posse_port::store::AgentState;
use posse_protocol::{ContentBlock, Fault, FaultClass, Outcome, RawJson};

use crate::agent::step::machine::Departure;
use crate::agent::step::{
    Closing, Decision, Effect, Ended, Life, Machine, Resting, State, hooking, mail, turn,
};

/// Handles the end of the model's turn. Mail that has come is answered first, unless a person's
/// prompt waits: that comes first, in a run that shows both. A sub-agent is not done while what it
/// has started continues.
pub(super) fn finish(machine: &mut Machine, decision: &mut Decision) {
    if machine.begins_by_mail() && !machine.queue.has_prompts() {
        return turn::next_turn(machine, decision, Vec::new());
    }
    if must_check_tasks(machine) {
        return check_tasks(machine, decision);
    }
    conclude(machine, decision);
}

/// Ends the run, or waits, once nothing is left to do in it and no hook holds it back.
pub(super) fn conclude(machine: &mut Machine, decision: &mut Decision) {
    let waits = machine.live > 0 && !machine.is_root();
    if machine.is_leaving() || waits || !hooking::at_end(machine, decision) {
        end_turn(machine, decision);
    }
}

/// Ends the run, or waits.
pub(super) fn end_turn(machine: &mut Machine, decision: &mut Decision) {
    match machine.life {
        Life::Root { .. } if machine.output_schema.is_none() => {
            turn::end_run(machine, decision, Outcome::Completed)
        }
        Life::Teammate { .. } if machine.is_leaving() => {
            turn::end_run(machine, decision, Outcome::Completed)
        }
        Life::Teammate { .. } if machine.live == 0 => go_idle(machine, decision),
        Life::Sub | Life::Teammate { .. } if machine.live > 0 => {
            machine.state = State::Waiting;
            decision.commit.state = Some(AgentState::Waiting);
        }
        Life::Root { .. } | Life::Sub | Life::Teammate { .. } => match check_answer(machine) {
            Ok(value) if machine.is_root() => {
                machine.run.value = value;
                turn::end_run(machine, decision, Outcome::Completed);
            }
            Ok(value) => {
                machine.run.value = value;
                machine.state = State::Ending(Outcome::Completed);
                decision.commit.closing = Some(Closing {
                    outcome: Outcome::Completed,
                    run: machine.run.clone(),
                    // The store decides in the same transaction whether mail waits, so none falls
                    // between.
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

/// Returns the answer as a value, if there is an output schema.
fn check_answer(machine: &Machine) -> Result<Option<RawJson>, Wrong> {
    let Some(output_schema) = &machine.output_schema else {
        return Ok(None);
    };
    if machine.run.turns == 0 {
        // It had answered when posse ended, and a resumed run does not know the text of its answer.
        let again = "posse restarted before it could be passed on";
        return Err(Wrong::Repairable(output_schema.repair(again)));
    }
    match output_schema.check(&machine.run.text) {
        Ok(value) => Ok(Some(value)),
        Err(wrong) if machine.run.repaired => Err(Wrong::Again(wrong)),
        Err(wrong) => Err(Wrong::Repairable(output_schema.repair(&wrong))),
    }
}

/// Handles the result of a step that ends the run unless mail waits.
pub(super) fn on_settled(machine: &mut Machine, decision: &mut Decision, mail_waits: bool) {
    let State::Ending(outcome) = &machine.state else {
        return;
    };
    let outcome = outcome.clone();
    if mail_waits {
        // The run continues with the mail, so its answer was not the last one.
        (machine.run.value, machine.run.repaired) = (None, false);
        machine.state = State::Waiting;
        if machine.is_teammate() && !machine.is_awake() {
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

/// Returns true if it must look for tasks before its turn is over: a teammate always, others if
/// they may have some.
fn must_check_tasks(machine: &Machine) -> bool {
    machine.departure != Departure::Leaving
        && (machine.is_teammate() && machine.live == 0 || machine.owning && !machine.run.reminded)
}

/// Asks for the agent's tasks. A teammate that was interrupted claims none.
fn check_tasks(machine: &mut Machine, decision: &mut Decision) {
    machine.state = State::Looking { open: true };
    decision.after.push(Effect::Look {
        claim: machine.is_teammate() && machine.is_awake(),
    });
}

/// Makes a teammate idle unless mail has come. Prompts that wait are answered first.
fn go_idle(machine: &mut Machine, decision: &mut Decision) {
    let words = machine.queue.joining(true);
    if !words.is_empty() {
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

/// An answer that does not match the output schema.
enum Wrong {
    /// The model is asked once more, with this text.
    Repairable(String),
    /// The model was asked once more already.
    Again(String),
}
