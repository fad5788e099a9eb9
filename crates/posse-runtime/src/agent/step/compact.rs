//! When a summary takes the place of the history, and how the run goes on then.

use std::sync::Arc;

use posse_protocol::{
    ContentBlock, EntryKind, EventKind, Fault, FaultClass, Limit, Message, Outcome, ReplyFacts, Role,
    StopReason,
};

use super::{Decision, Effect, Life, Machine, Run, Squeeze, State};
use crate::port::store::Charge;

/// The longest words of a person that are kept as they are, in bytes.
const ASKED_BYTES: usize = 64 * 1024;

/// What is to be known about compactions.
#[derive(Default)]
pub(super) struct Compaction {
    /// One is wanted before the next call.
    wanted: Option<Squeeze>,
    /// One is under way that no run waits for.
    alone: bool,
    /// The model could not take the history, and has not answered since.
    overfull: bool,
    /// What the run was begun with.
    pub(super) asked: Option<Arc<Message>>,
}

impl Compaction {
    /// How the history is to be compacted before the next call, if it is.
    pub(super) fn due(&mut self) -> Option<Squeeze> {
        self.wanted.take()
    }

    /// The run is over.
    pub(super) fn over(&mut self) {
        (self.alone, self.asked) = (false, None);
    }

    /// The model has answered what it was sent.
    pub(super) fn answered(&mut self) {
        self.overfull = false;
    }
}

impl Machine {
    /// A person wants it: at once if nothing is under way, else before the next call.
    pub(super) fn compact(&mut self, decision: &mut Decision, keep: Option<String>) {
        let squeeze = Squeeze { keep, ..Squeeze::default() };
        if !matches!(self.state, State::Idle) {
            self.compaction.wanted = Some(squeeze);
            return;
        }
        if self.next_seq == 0 {
            let what = "there is nothing to compact yet".to_owned();
            decision.after.push(Effect::Emit(EventKind::Unheard(what)));
            return self.end(decision, Outcome::Completed);
        }
        self.run = Run::default();
        self.compaction.alone = true;
        self.state = State::Calling { cancelled: false };
        decision.after.extend([Effect::Begin, Effect::Compact(squeeze)]);
    }

    /// The model cannot take the history any more: it is compacted without what came last. Once; a summary that
    /// is too long itself cannot be helped.
    pub(super) fn overfull(&mut self, decision: &mut Decision) {
        if self.compaction.alone || std::mem::replace(&mut self.compaction.overfull, true) {
            return self.end(decision, Outcome::Partial(Limit::Context));
        }
        self.state = State::Calling { cancelled: false };
        let squeeze = Squeeze { keep: None, auto: true, overfull: true };
        decision.after.push(Effect::Compact(squeeze));
    }

    pub(super) fn compacted(
        &mut self,
        decision: &mut Decision,
        mut content: Vec<ContentBlock>,
        facts: Option<ReplyFacts>,
        charges: Vec<Charge>,
    ) {
        let State::Calling { cancelled } = self.state else { return };
        self.run.charge(&charges);
        decision.commit.charges = charges;
        let alone = std::mem::take(&mut self.compaction.alone);
        if let Some(asked) = self.compaction.asked.as_ref().filter(|_| !alone) {
            content.extend(verbatim(asked));
        }
        let ends = alone || cancelled;
        let facts = facts.map(|facts| ReplyFacts { stop: ends.then_some(StopReason::EndTurn), ..facts });
        self.add(decision, EntryKind::Compaction, Message { role: Role::User, content }, facts);
        if cancelled {
            return self.end(decision, Outcome::Interrupted);
        }
        if alone {
            return self.end(decision, Outcome::Completed);
        }
        decision.after.push(Effect::CallModel);
    }

    /// No summary came about. If there is still room the run goes on without.
    pub(super) fn not_compacted(&mut self, decision: &mut Decision, why: String, charges: Vec<Charge>) {
        let State::Calling { cancelled } = self.state else { return };
        self.run.charge(&charges);
        decision.commit.charges = charges;
        let alone = std::mem::take(&mut self.compaction.alone);
        let message = format!("the history could not be compacted: {why}");
        decision.after.push(Effect::Emit(EventKind::Unheard(message.clone())));
        let outcome = match self.life {
            _ if cancelled => Outcome::Interrupted,
            Life::Root { .. } if alone => {
                Outcome::Failed(Fault { class: FaultClass::Answer, status: None, message })
            }
            _ => Outcome::Partial(Limit::Context),
        };
        self.end(decision, outcome);
    }
}

/// What the run was begun with, word for word, if that is not too much.
fn verbatim(asked: &Message) -> Vec<ContentBlock> {
    let is_said =
        |block: &&ContentBlock| matches!(block, ContentBlock::Text { .. } | ContentBlock::Image { .. });
    let said: Vec<ContentBlock> = asked.content.iter().filter(is_said).cloned().collect();
    let bytes: usize = said
        .iter()
        .map(|block| match block {
            ContentBlock::Text { text } => text.len(),
            ContentBlock::Image { data, .. } => data.len(),
            _ => 0,
        })
        .sum();
    if said.is_empty() || bytes > ASKED_BYTES {
        return Vec::new();
    }
    let words =
        "What you were last asked to do, word for word; go on with it from where the summary says you are:";
    [ContentBlock::text(words)].into_iter().chain(said).collect()
}
