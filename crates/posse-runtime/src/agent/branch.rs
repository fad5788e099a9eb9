//! Where an agent stands when it asks for forks: what all forks of one reply have in common.

use std::sync::Arc;

use posse_protocol::ContentBlock;

use super::actor::Actor;
use super::aside::placeholders;
use super::fare::Paid;
use super::history::History;
use super::reuse::Reuse;
use crate::govern::Warmth;
use crate::spawn::terms::Terms;
use crate::spawn::words;
use posse_port::model::Piece;
use posse_port::store::Segment;
use posse_port::tool::Seen;

/// What forks of one reply have in common: nothing of it is copied for any of them.
pub(crate) struct Branch {
    /// The reply that asks for them.
    pub(super) seq: u64,
    pub(super) preamble: Piece,
    /// All of the parent's history, with that reply for its end.
    pub(super) history: History,
    /// The same as the store has it.
    pub(super) segments: Vec<Segment>,
    /// What the first message of every fork begins with: an answer for each call of the reply, the same for
    /// every call, and how forks work.
    pub(super) head: Piece,
    pub(super) previous_reply: Option<String>,
    pub(super) paid: Paid,
    /// What the parent can read from the cache, and so can a fork.
    pub(super) reuse: Reuse,
    /// Whether what the forks share can be read yet.
    warmth: Arc<Warmth>,
    pub(super) seen: Seen,
    /// The types of agents that the parent's model was told of.
    pub(super) told: Option<u64>,
    /// The parent's terms; none if it is a main agent.
    terms: Option<Terms>,
}

impl Branch {
    /// Whether the history says that it is itself a fork's.
    pub(crate) fn is_fork(&self) -> bool {
        self.history.is_tagged()
    }

    /// The gate that its forks pass before their first calls.
    pub(super) fn warmth(&self) -> Arc<Warmth> {
        Arc::clone(&self.warmth)
    }

    /// What the parent's terms make of a fork's: it has what its parent has, for as long as forks live.
    pub(crate) fn terms(&self) -> Terms {
        Terms::of_fork(self.terms.as_ref())
    }
}

impl Actor {
    /// Where the agent stands with the calls of its last reply open; made once for all of them.
    pub(super) fn branch(&mut self) -> Arc<Branch> {
        // It ends with the reply whose calls are open.
        let seq = self.history.next_seq().saturating_sub(1);
        if let Some(branch) = self.branch.as_ref().filter(|branch| branch.seq == seq) {
            return Arc::clone(branch);
        }
        let mut answers = placeholders(&self.machine.call_ids().collect::<Vec<_>>());
        answers.push(ContentBlock::text(words::fork_rules()));
        let branch = Arc::new(Branch {
            seq,
            preamble: self.preamble.clone(),
            history: self.history.forked(),
            segments: self
                .history
                .segments(self.identity.agent, self.segments.clone()),
            head: self.house.ports.model.opening(&answers),
            previous_reply: self.previous_reply.clone(),
            paid: self.paid.of_parent(),
            reuse: self.reuse,
            warmth: Arc::default(),
            seen: self.seen.fork(),
            told: self.known.told,
            terms: self.terms.as_deref().cloned(),
        });
        self.branch = Some(Arc::clone(&branch));
        branch
    }
}
