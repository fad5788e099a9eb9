//! Makes the fork point of an agent whose calls ask for forks.

use std::sync::Arc;

use posse_protocol::ContentBlock;

use crate::agent::actor::Actor;
use crate::agent::step::OpenCalls;
use crate::history::fork_point::ForkPoint;
use crate::prompt;
use crate::prompt::side_query::placeholders;

/// Returns the fork point with the calls of the last reply open; made once for all of them.
pub(super) fn fork_point(actor: &mut Actor) -> Arc<ForkPoint> {
    // The last entry is the reply whose calls are open.
    let seq = actor.prefix.history.next_seq().saturating_sub(1);
    if let Some(branch) = actor
        .prefix
        .fork_point
        .as_ref()
        .filter(|branch| branch.seq == seq)
    {
        return Arc::clone(branch);
    }
    let open = actor.machine.open_calls();
    // A provider accepts no request with unanswered calls, so each gets a placeholder.
    let calls: Vec<String> = open.into_iter().flat_map(OpenCalls::call_ids).collect();
    let mut answers = placeholders(&calls);
    answers.push(ContentBlock::text(prompt::fork_rules()));
    let branch = Arc::new(ForkPoint {
        seq,
        preamble: actor.prefix.preamble.clone(),
        history: actor.prefix.history.forked(),
        segments: actor
            .prefix
            .history
            .segments(actor.identity.agent, actor.prefix.segments.clone()),
        // Encoded once: all siblings send and store the same bytes.
        head: actor.ports.model.encode_head(&answers),
        previous_reply: actor.prefix.previous_reply.clone(),
        last_request: actor.prefix.last_request.of_parent(),
        cache_ttl: actor.prefix.cache_ttl,
        warmup: Arc::default(),
        seen: actor.known_files.fork(),
        told: actor.advertised.told,
        terms: actor.terms.as_deref().cloned(),
    });
    actor.prefix.fork_point = Some(Arc::clone(&branch));
    branch
}
