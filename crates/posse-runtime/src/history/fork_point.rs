//! The fork point: what all forks of one reply have in common.

use std::sync::Arc;

use crate::definition::terms::Terms;
use crate::govern::CacheWarmup;
use crate::history::History;
use crate::history::cache_ttl::CacheTtl;
use crate::history::request_size::RequestSize;
use posse_port::model::Encoded;
use posse_port::store::Segment;
use posse_port::tool::KnownFiles;

/// What forks of one reply have in common. Nothing of it is copied for any of them.
pub(crate) struct ForkPoint {
    /// Number of the reply that asks for them.
    pub(crate) seq: u64,
    /// The parent's preamble.
    pub(crate) preamble: Encoded,
    /// The parent's history, ending with that reply.
    pub(crate) history: History,
    /// The same as stored segments.
    pub(crate) segments: Vec<Segment>,
    /// Beginning of every fork's first message: the same placeholder for each call of the reply,
    /// and the rules of forks.
    pub(crate) head: Encoded,
    /// The provider's ID of the reply.
    pub(crate) previous_reply: Option<String>,
    /// Size of the parent's last request.
    pub(crate) last_request: RequestSize,
    /// What the parent can read from the cache, and so can a fork.
    pub(crate) cache_ttl: CacheTtl,
    /// Coordinates which fork writes the shared bytes to the cache.
    pub(crate) warmup: Arc<CacheWarmup>,
    /// Files that the parent has read.
    pub(crate) seen: KnownFiles,
    /// Fingerprint of the agent types that the parent's model was told of.
    pub(crate) told: Option<u64>,
    /// The parent's terms; none if it is a main agent.
    pub(crate) terms: Option<Terms>,
}

impl ForkPoint {
    /// Returns true if the history is itself a fork's.
    pub(crate) fn is_fork(&self) -> bool {
        self.history.is_tagged()
    }

    /// Returns the warm-up that its forks share.
    pub(crate) fn warmup(&self) -> Arc<CacheWarmup> {
        Arc::clone(&self.warmup)
    }

    /// Returns the terms of a fork: those of its parent, for the life of a fork.
    pub(crate) fn terms(&self) -> Terms {
        Terms::of_fork(self.terms.as_ref())
    }
}
