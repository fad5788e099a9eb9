//! When a summary takes the place of the history, and how the run goes on then.

use std::sync::Arc;

use posse_protocol::{
    ContentBlock, EntryKind, EventKind, Fault, FaultClass, Limit, Message, Outcome, ReplyFacts,
    Role, StopReason,
};

use crate::agent::step::turn;
use crate::agent::step::{Decision, Draft, Effect, Machine, Run, Squeeze, State};
use crate::prompt;
use posse_port::store::Charge;

/// So much of what was said last is kept word for word, in bytes.
const SAID_BYTES: usize = 256 * 1024;

/// What is to be known about compactions.
#[derive(Default)]
pub(super) struct Compaction {
    /// One is wanted before the next call.
    wanted: Option<Squeeze>,
    /// One is under way that no run waits for.
    alone: bool,
    /// The model could not take the history, and has not answered since.
    overfull: bool,
    /// True if the history begins with another agent's.
    pub(super) inherits: bool,
    /// What the run was begun with.
    asked: Option<Arc<Message>>,
    /// What the model was told since it last answered.
    told: Vec<Arc<Message>>,
}

impl Compaction {
    /// How the history is to be compacted before the next call, if it is.
    pub(super) fn due(&mut self) -> Option<Squeeze> {
        self.wanted.take()
    }

    /// A run begins with what was told last, if anything was.
    pub(super) fn begun(&mut self, last: Option<&Draft>) {
        self.asked = last.map(|draft| Arc::clone(&draft.message));
    }

    /// The run is over. What nobody has answered is not forgotten.
    pub(super) fn over(&mut self, unanswered: bool) {
        (self.alone, self.overfull) = (false, false);
        if !unanswered {
            self.asked = None;
        }
    }

    /// The model is told something, or has answered.
    pub(super) fn added(&mut self, kind: EntryKind, message: &Arc<Message>) {
        match kind {
            EntryKind::Prompt | EntryKind::Results => self.told.push(Arc::clone(message)),
            EntryKind::Reply | EntryKind::Compaction => self.told.clear(),
        }
    }

    /// The model has answered what it was sent.
    pub(super) fn answered(&mut self) {
        self.overfull = false;
    }

    /// What the run was begun with, and what came since the last answer, word for word: what tools answered
    /// is in the summary, but for that it is too much.
    fn said(&self) -> Vec<ContentBlock> {
        let told = self
            .told
            .iter()
            .filter(|told| !self.asked.as_ref().is_some_and(|it| Arc::ptr_eq(it, told)));
        let mut left = SAID_BYTES;
        let mut said = Vec::new();
        for block in self
            .asked
            .iter()
            .chain(told)
            .flat_map(|message| &message.content)
        {
            let (block, bytes) = match block {
                ContentBlock::Text { text } => {
                    let text = prompt::verbatim(text);
                    let bytes = text.len();
                    (ContentBlock::text(text), bytes)
                }
                ContentBlock::Image { data, .. } => (block.clone(), data.len()),
                _ => continue,
            };
            if bytes <= left {
                left -= bytes;
                said.push(block);
            }
        }
        if !said.is_empty() {
            said.insert(0, ContentBlock::text(GO_ON));
        }
        said
    }
}

const GO_ON: &str =
    "What you were last told, word for word; go on with it from where the summary says you are:";

/// A person wants it: at once if nothing is under way, else before the next call.
pub(super) fn on_compact(machine: &mut Machine, decision: &mut Decision, keep: Option<String>) {
    let squeeze = Squeeze {
        keep,
        ..Squeeze::default()
    };
    if !matches!(machine.state, State::Idle) {
        machine.compaction.wanted = Some(squeeze);
        return;
    }
    if machine.next_seq == 0 && !machine.compaction.inherits {
        let what = "there is nothing to compact yet".to_owned();
        decision.after.push(Effect::Emit(EventKind::Unheard(what)));
        return turn::end_run(machine, decision, Outcome::Completed);
    }
    machine.run = Run::default();
    machine.compaction.alone = true;
    machine.state = State::Calling { cancelled: false };
    decision
        .after
        .extend([Effect::Begin, Effect::Compact(squeeze)]);
}

/// The model cannot take the history any more: it is compacted without what came last. Once; a summary
/// that is too long itself cannot be helped.
pub(super) fn on_overfull(machine: &mut Machine, decision: &mut Decision) {
    if std::mem::replace(&mut machine.compaction.overfull, true) {
        return turn::end_run(machine, decision, Outcome::Partial(Limit::Context));
    }
    machine.state = State::Calling { cancelled: false };
    let squeeze = Squeeze {
        keep: None,
        auto: true,
        overfull: true,
    };
    decision.after.push(Effect::Compact(squeeze));
}

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
    // Whether it waits for an answer is known from it when the process is gone.
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
    if cancelled {
        return turn::end_run(machine, decision, Outcome::Interrupted);
    }
    if alone {
        return turn::end_run(machine, decision, Outcome::Completed);
    }
    decision.after.push(Effect::CallModel);
}

/// No summary came about. If the model can still take the history the run goes on without.
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
        .push(Effect::Emit(EventKind::Unheard(message.clone())));
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
        (false, false) => decision.after.push(Effect::CallModel),
    }
}
