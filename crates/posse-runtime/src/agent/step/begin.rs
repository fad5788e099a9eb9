//! The first prompt of a session with a declared team.

use posse_port::store::Op;
use posse_protocol::{ContentBlock, Fault, FaultClass, Outcome};

use crate::agent::step::{Decision, Effect, Machine, State, turn};

/// Begins the first run, with the team that is created for it in the same step.
pub(super) fn on_team(
    machine: &mut Machine,
    decision: &mut Decision,
    words: Vec<ContentBlock>,
    ops: Vec<Op>,
) {
    if !matches!(machine.state, State::Idle) || machine.next_seq > 0 {
        let message = "a declared team starts with the first prompt of a session".to_owned();
        let fault = Fault {
            class: FaultClass::Busy,
            status: None,
            message,
        };
        return decision.after.push(Effect::Refuse(Outcome::Failed(fault)));
    }
    turn::begin(machine, decision, words);
    let operation = |op| posse_port::store::Operation { call: None, op };
    decision
        .commit
        .operations
        .extend(ops.into_iter().map(operation));
    decision.after.push(Effect::Raise);
}
