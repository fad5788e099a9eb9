//! Whose turn an agent's calls have among those that wait for the provider.

use posse_port::model::{CallPriority, Standing};

use crate::agent::actor::{Actor, wall_ms};
use crate::history::request_size;

/// Bytes of a preamble that are about one token.
const TOKEN_BYTES: usize = 4;

/// Returns who asks when the agent calls the model now. `warm` says that at least its preamble is
/// cached.
pub(super) fn of(actor: &Actor, warm: bool) -> Standing {
    let prefix = &actor.prefix;
    let shared = match warm {
        true => (prefix.preamble.bytes.len() / TOKEN_BYTES) as u64,
        false => 0,
    };
    let last = prefix.last_request;
    let grown = request_size::of_history(&prefix.preamble, &prefix.history)
        .saturating_sub(last.bytes)
        / TOKEN_BYTES;
    let is_persons = actor.role.is_main() && actor.machine.run().prompted;
    Standing {
        lineage: prefix.lineage.clone(),
        priority: match is_persons {
            true => CallPriority::Person,
            false => CallPriority::Usual,
        },
        // In the provider's own tokens, as what is cached: bytes say little of images.
        prompt: (last.tokens > 0).then(|| last.tokens.saturating_add(grown as u64)),
        cached: prefix
            .cache_ttl
            .readable(wall_ms(&*actor.ports.clock))
            .max(shared),
    }
}
