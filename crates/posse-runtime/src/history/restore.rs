//! Restores a history from a stored transcript.
//!
//! Every entry carries a checksum over itself and all before it, so damage and reordering are found
//! before anything is sent to a provider.

use posse_protocol::{EntryKind, ReplyFacts, StopReason};

use crate::history::History;
use posse_port::model::{Encoded, Model};
use posse_port::store::{NewEntry, StoreError, StoredEntry, Transcript};

/// Returns the provider's ID of the last reply since the last compaction or change of model.
pub(crate) fn last_reply(transcript: &Transcript) -> Option<String> {
    let is_new = |stored: &&StoredEntry| {
        !matches!(stored.entry.kind, EntryKind::Compaction | EntryKind::Model)
    };
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
    let mut entries = transcript.entries.iter().rev();
    entries
        .find(|stored| stored.entry.kind != EntryKind::Model)
        .is_some_and(|last| unanswered(last.entry.kind, last.entry.reply.as_ref()))
}

/// Returns the preamble of the next request: that of the last change of model, or of the birth.
pub(crate) fn current_preamble(transcript: &Transcript) -> &Encoded {
    let mut entries = transcript.entries.iter().rev();
    entries
        .find_map(|stored| brought(&stored.entry))
        .unwrap_or(&transcript.preamble)
}

/// Returns the preamble that an entry brings.
fn brought(entry: &NewEntry) -> Option<&Encoded> {
    let head = entry.head.as_ref();
    head.filter(|_| entry.kind == EntryKind::Model)
}

/// Returns the position of the last entry that brings another model than the one before it.
fn last_change(transcript: &Transcript, model: &dyn Model) -> Option<usize> {
    let named = |preamble| model.choice(preamble).map(|choice| choice.model);
    let (mut before, mut last) = (named(&transcript.preamble), None);
    for (at, stored) in transcript.entries.iter().enumerate() {
        let Some(preamble) = brought(&stored.entry) else {
            continue;
        };
        let now = named(preamble);
        if now != before {
            (before, last) = (now, Some(at));
        }
    }
    last
}

/// Restores the history, checking that it is what was stored. Replies of another model than the
/// current one are without their thinking, and definitions are text for a model that loads none.
pub(crate) fn restore(transcript: &Transcript, model: &dyn Model) -> Result<History, StoreError> {
    let mut history = History::default();
    let mut whose = None;
    let others = last_change(transcript, model).unwrap_or(0);
    let choice = model.choice(current_preamble(transcript));
    let loads = choice.is_some_and(|choice| model.loads_tools(&choice.model));
    for (at, stored) in transcript.entries.iter().enumerate() {
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
        let is_other = at < others && stored.entry.kind == EntryKind::Reply;
        let encoded = &stored.entry.encoded;
        let sent = match &stored.entry.loaded {
            _ if is_other => Some(model.without_thinking(encoded)),
            Some(brought) if !loads => {
                let mut loaded = history.loaded().clone();
                loaded.add(&brought.bytes);
                Some(model.with_definitions_as_text(encoded, loaded.tools()))
            }
            _ => None,
        };
        history.restore(&stored.entry, sent).map_err(damaged)?;
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
        EntryKind::Model => false,
    }
}
