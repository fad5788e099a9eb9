//! Restores a history from a stored transcript.
//!
//! Every entry carries a checksum over itself and all before it, so damage and reordering are found
//! before anything is sent to a provider.

use posse_protocol::{EntryKind, ReplyFacts, StopReason};

use crate::history::History;
use posse_port::store::{StoreError, StoredEntry, Transcript};

/// Returns the provider's ID of the last reply since the last compaction.
pub(crate) fn last_reply(transcript: &Transcript) -> Option<String> {
    let is_new = |stored: &&StoredEntry| stored.entry.kind != EntryKind::Compaction;
    // An entry about a sub-agent's answer has facts too, and is not a reply.
    let replied = |stored: &&StoredEntry| stored.entry.kind != EntryKind::Prompt;
    let entries = transcript
        .entries
        .iter()
        .rev()
        .take_while(is_new)
        .filter(replied);
    let mut replies = entries.filter_map(|stored| stored.entry.reply.as_ref());
    replies
        .next()
        .map(|facts| facts.id.clone())
        .filter(|id| !id.is_empty())
}

/// Returns true if the transcript ends with something that the model has not answered.
pub(crate) fn waits(transcript: &Transcript) -> bool {
    transcript
        .entries
        .last()
        .is_some_and(|last| unanswered(last.entry.kind, last.entry.reply.as_ref()))
}

/// Restores the history, checking that it is what was stored.
pub(crate) fn restore(transcript: &Transcript) -> Result<History, StoreError> {
    let mut history = History::default();
    let mut whose = None;
    for stored in &transcript.entries {
        if whose
            .replace(stored.agent)
            .is_some_and(|before| before != stored.agent)
        {
            // Each agent has a chain of checksums of its own, which begins where its entries do.
            history = history.forked();
        }
        let damaged = |seq| StoreError::Damaged {
            agent: stored.agent,
            seq,
        };
        history.restore(&stored.entry).map_err(damaged)?;
    }
    let mine = whose.is_none_or(|agent| agent == transcript.record.agent);
    Ok(if mine { history } else { history.forked() })
}

/// Returns true if a transcript that ends with this entry waits for a reply.
pub(crate) fn unanswered(last: EntryKind, reply: Option<&ReplyFacts>) -> bool {
    match last {
        EntryKind::Results => true,
        // An entry about a sub-agent's answer is marked as answered.
        EntryKind::Prompt => reply.is_none_or(|facts| facts.stop.is_none()),
        EntryKind::Reply => reply.is_some_and(|facts| facts.stop == Some(StopReason::PauseTurn)),
        EntryKind::Compaction => reply.is_none_or(|facts| facts.stop.is_none()),
    }
}
