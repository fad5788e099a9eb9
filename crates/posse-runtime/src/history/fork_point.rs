//! Where an agent stands when it asks for forks: what all forks of one reply have in common.

use std::sync::Arc;

use crate::definition::terms::Terms;
use crate::govern::CacheWarmup;
use crate::history::History;
use crate::history::cache_ttl::CacheTtl;
use crate::history::request_size::RequestSize;
use posse_port::model::Encoded;
use posse_port::store::Segment;
use posse_port::tool::KnownFiles;

/// What forks of one reply have in common: nothing of it is copied for any of them.
pub(crate) struct ForkPoint {
    /// The reply that asks for them.
    pub(crate) seq: u64,
    pub(crate) preamble: Encoded,
    /// All of the parent's history, with that reply for its end.
    pub(crate) history: History,
    /// The same as the store has it.
    pub(crate) segments: Vec<Segment>,
    /// What the first message of every fork begins with: an answer for each call of the reply, the same for
    /// every call, and how forks work.
    pub(crate) head: Encoded,
    pub(crate) previous_reply: Option<String>,
    pub(crate) last_request: RequestSize,
    /// What the parent can read from the cache, and so can a fork.
    pub(crate) cache_ttl: CacheTtl,
    /// Whether what the forks share can be read yet.
    pub(crate) warmup: Arc<CacheWarmup>,
    pub(crate) seen: KnownFiles,
    /// The types of agents that the parent's model was told of.
    pub(crate) told: Option<u64>,
    /// The parent's terms; none if it is a main agent.
    pub(crate) terms: Option<Terms>,
}

impl ForkPoint {
    /// Whether the history says that it is itself a fork's.
    pub(crate) fn is_fork(&self) -> bool {
        self.history.is_tagged()
    }

    /// The gate that its forks pass before their first calls.
    pub(crate) fn warmup(&self) -> Arc<CacheWarmup> {
        Arc::clone(&self.warmup)
    }

    /// What the parent's terms make of a fork's: it has what its parent has, for as long as forks live.
    pub(crate) fn terms(&self) -> Terms {
        Terms::of_fork(self.terms.as_ref())
    }
}
