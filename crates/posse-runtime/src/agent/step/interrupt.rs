//! Interrupting what is in progress.

use posse_protocol::Outcome;

use crate::agent::step::{Decision, Effect, Machine, State, tools, turn};

/// Stops what is in progress. The run ends when it has stopped.
pub(super) fn interrupt(machine: &mut Machine, decision: &mut Decision) {
    let leaving = machine.is_leaving();
    match &mut machine.state {
        State::Idle if leaving => turn::end_run(machine, decision, Outcome::Completed),
        // What is being committed or looked up ends by itself, and the result is handled then.
        State::Idle | State::Ending(_) | State::Looking { .. } => {}
        State::Hooked { .. } => {
            decision.after.push(Effect::AbortHooks);
            turn::end_run(machine, decision, Outcome::Interrupted);
        }
        State::Waiting => turn::end_run(machine, decision, Outcome::Interrupted),
        State::Delegating => decision.after.push(Effect::AbortDelegate),
        State::Calling { cancelled } => {
            *cancelled = true;
            decision.after.push(Effect::AbortModel);
        }
        State::Acting(_) => tools::stop(machine, decision, Outcome::Interrupted),
    }
}
