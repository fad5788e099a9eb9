//! Plan mode: how a main agent enters and leaves it, and what becomes of a plan that is handed in.
//! The plan of a teammate is mail to its lead; see `turn::apply_approval`.

use posse_port::store::{CallChange, CallChangeKind, CallOutcome, Op, Operation};
use posse_protocol::{Name, PermissionMode, RawJson, ToolContent};
use serde::Deserialize;

use crate::agent::step::machine::Authority;
use crate::agent::step::{Decision, Life, Machine, State};
use crate::prompt;

/// Returns true if the agent is in plan mode, its own or that of an agent above.
pub(super) fn is_on(rights: &Authority) -> bool {
    rights.rights.mode() == PermissionMode::Plan
}

/// Changes the mode because a person or a front end says so, and tells a main agent if plan mode
/// begins or ends.
pub(super) fn on_set_mode(machine: &mut Machine, decision: &mut Decision, mode: PermissionMode) {
    match (is_on(&machine.rights), mode == PermissionMode::Plan) {
        (false, true) if machine.is_root() => machine.tell(prompt::plan::begun()),
        (true, false) if machine.is_root() => machine.tell(prompt::plan::ended(mode)),
        _ => {}
    }
    remember(&mut machine.life, &machine.rights, mode);
    decision.set_mode(mode);
}

/// Changes the mode with the result of a call.
pub(super) fn change_mode(
    life: &mut Life,
    rights: &Authority,
    decision: &mut Decision,
    mode: PermissionMode,
) {
    remember(life, rights, mode);
    if mode.strictness() < rights.rights.mode().strictness() {
        // At once: the next call of the same reply is judged before the step is durable.
        rights.rights.set_mode(mode);
    }
    decision.set_mode(mode);
}

/// Remembers the mode of a main agent that enters plan mode.
fn remember(life: &mut Life, rights: &Authority, mode: PermissionMode) {
    if let Life::Root { then, .. } = life
        && mode == PermissionMode::Plan
        && !is_on(rights)
    {
        *then = rights.rights.mode();
    }
}

/// The input of a call that hands in a plan.
#[derive(Deserialize)]
struct Submitted {
    plan: String,
}

/// Returns the plan in an input.
pub(super) fn plan_in(input: &RawJson) -> Option<String> {
    let read = serde_json::from_str(input.get()).ok();
    read.map(|Submitted { plan }| plan)
}

/// Ends the call that handed in a plan which a person has approved, perhaps with another text. The
/// result, the mode and the note are one step with the end of the question: after a crash the plan is
/// approved with all of it, or not at all.
pub(super) fn approve(
    machine: &mut Machine,
    decision: &mut Decision,
    index: usize,
    edited: Option<String>,
    mode: Option<PermissionMode>,
) {
    let (life, State::Acting(acting)) = (machine.life, &mut machine.state) else {
        return;
    };
    let call = &mut acting.calls[index];
    let submitted = plan_in(&call.input).unwrap_or_default();
    let edited = edited.filter(|plan| *plan != submitted);
    let mode = match life {
        Life::Root { then, .. } => Some(chosen(mode, then)),
        // It answers with its plan, and its type decides what it may do.
        Life::Sub | Life::Teammate { .. } => None,
    };
    let told = prompt::plan::approved(edited.as_deref(), mode);
    let outcome = CallOutcome {
        content: [ToolContent::text(told)].into(),
        is_error: false,
    };
    call.done(decision, outcome.clone());
    let key = call.key;
    if !acting.all_done() {
        let change = CallChangeKind::Done(outcome);
        decision.commit.calls.push(CallChange { key, change });
    }
    if let Some(mode) = mode {
        decision.set_mode(mode);
    }
    let op = Op::WriteNote {
        team: None,
        name: Name::plan(),
        text: edited.unwrap_or(submitted),
        expect: None,
    };
    decision
        .commit
        .operations
        .push(Operation { call: None, op });
}

/// Returns the mode to continue in. No answer gives more than the session was started with.
fn chosen(mode: Option<PermissionMode>, then: PermissionMode) -> PermissionMode {
    let allowed = |mode: &PermissionMode| {
        *mode != PermissionMode::BypassPermissions || then == PermissionMode::BypassPermissions
    };
    mode.filter(allowed).unwrap_or(then)
}
