//! Decides when the history is compacted, and how the run continues.

use posse_port::store::Charge;
use posse_protocol::{
    ContentBlock, EntryKind, EventKind, Fault, FaultClass, Limit, Message, Outcome, ReplyFacts,
    Role, StopReason,
};

use crate::agent::step::{CompactionRequest, Decision, Effect, Machine, Run, State, model, turn};

/// Handles a person's request: at once if the agent is idle, otherwise before the next call.
pub(super) fn on_compact(machine: &mut Machine, decision: &mut Decision, keep: Option<String>) {
    let compaction_request = CompactionRequest {
        keep,
        ..CompactionRequest::default()
    };
    if !matches!(machine.state, State::Idle) {
        machine.compaction.wanted = Some(compaction_request);
        return;
    }
    if machine.next_seq == 0 && !machine.compaction.inherits {
        let what = "there is nothing to compact yet".to_owned();
        decision.after.push(Effect::Emit(EventKind::Warning(what)));
        return turn::end_run(machine, decision, Outcome::Completed);
    }
    machine.run = Run::default();
    machine.compaction.alone = true;
    machine.state = State::Calling { cancelled: false };
    decision
        .after
        .extend([Effect::Begin, Effect::Compact(compaction_request)]);
}

/// Compacts a history that is too large for the model, without its last part. Once: a summary that
/// is too long itself cannot be helped.
pub(super) fn on_overfull(machine: &mut Machine, decision: &mut Decision) {
    if std::mem::replace(&mut machine.compaction.overfull, true) {
        return turn::end_run(machine, decision, Outcome::Partial(Limit::Context));
    }
    machine.state = State::Calling { cancelled: false };
    let compaction_request = CompactionRequest {
        keep: None,
        auto: true,
        overfull: true,
    };
    decision.after.push(Effect::Compact(compaction_request));
}

/// Replaces the history by a summary and continues.
pub(super) fn on_compacted(
    machine: &mut Machine,
    decision: &mut Decision,
    mut content: Vec<ContentBlock>,
    facts: Option<ReplyFacts>,
    charges: Vec<Charge>,
) {
    let State::Calling { cancelled } = machine.state else {
        return;
    };
    machine.run.charge(&charges);
    decision.commit.charges = charges;
    let (alone, waits) = (
        std::mem::take(&mut machine.compaction.alone),
        machine.unanswered,
    );
    if !alone || waits {
        content.extend(machine.compaction.said());
    }
    // After a crash, the stop reason tells whether the model still has to answer.
    let stop = ((alone || cancelled) && !waits).then_some(StopReason::EndTurn);
    let facts = facts.map(|facts| ReplyFacts { stop, ..facts });
    machine
        .run
        .miss(facts.as_ref().and_then(|facts| facts.missed.as_ref()));
    turn::add_entry(
        machine,
        decision,
        EntryKind::Compaction,
        Message {
            role: Role::User,
            content,
        },
        facts,
    );
    model::on_compacted(machine, decision);
    if cancelled {
        return turn::end_run(machine, decision, Outcome::Interrupted);
    }
    if alone {
        return turn::end_run(machine, decision, Outcome::Completed);
    }
    decision.after.push(Effect::CallModel);
}

/// Handles a failed compaction. If the model can still take the history, the run continues.
pub(super) fn on_not_compacted(
    machine: &mut Machine,
    decision: &mut Decision,
    why: String,
    charges: Vec<Charge>,
) {
    let State::Calling { cancelled } = machine.state else {
        return;
    };
    machine.run.charge(&charges);
    decision.commit.charges = charges;
    let message = format!("the history could not be compacted: {why}");
    decision
        .after
        .push(Effect::Emit(EventKind::Warning(message.clone())));
    if cancelled {
        return turn::end_run(machine, decision, Outcome::Interrupted);
    }
    match (machine.compaction.alone, machine.compaction.overfull) {
        (_, true) => turn::end_run(machine, decision, Outcome::Partial(Limit::Context)),
        (true, false) => {
            let fault = Fault {
                class: FaultClass::Answer,
                status: None,
                message,
            };
            turn::end_run(machine, decision, Outcome::Failed(fault));
        }
        (false, false) => {
            turn::add_model(machine, decision);
            decision.after.push(Effect::CallModel);
        }
    }
}
