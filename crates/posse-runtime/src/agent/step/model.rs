//! Another model: when the entry that brings it is made.
//!
//! The entry comes with the step before the next request, or at once if the agent rests. A
//! compaction leaves out everything before it, so the entry is made again behind it.

use crate::agent::step::{Decision, Machine, NewModel, State, turn};

/// Notes the model that entries of before have brought.
pub(crate) fn resume(machine: &mut Machine, model: NewModel) {
    machine.models.current = Some(model);
}

/// Takes back a change that has not come about.
pub(crate) fn forget(machine: &mut Machine) {
    machine.models.wanted = None;
}

/// Handles a wish: at once if the agent rests, otherwise before the next request. An agent that is
/// not stored yet waits for its first prompt.
pub(super) fn on_set_model(machine: &mut Machine, decision: &mut Decision, model: NewModel) {
    machine.models.wanted = Some(model);
    if matches!(machine.state, State::Idle) && machine.left.is_empty() {
        turn::add_model(machine, decision);
    }
}

/// Adds the entry about the model behind a compaction, so that it is known without what stands
/// before that.
pub(super) fn on_compacted(machine: &mut Machine, decision: &mut Decision) {
    machine.models.repeat();
    turn::add_model(machine, decision);
}
