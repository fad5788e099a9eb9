//! Sizes of requests, in bytes and in tokens.

use posse_protocol::EntryKind;

use posse_port::model::Encoded;
use posse_port::store::{NewEntry, StoredEntry, Transcript};

use crate::history::History;
use crate::history::restore::current_preamble;

/// Upper bound for the bytes of a request besides its entries.
const AROUND: usize = 1024;

/// Size of the last request, from which the next one is estimated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestSize {
    /// Tokens of the last request and its reply.
    pub(crate) tokens: u64,
    /// Bytes of the last request.
    pub(crate) bytes: usize,
    /// True if this process has made a call for the agent.
    pub(crate) begun: bool,
}

impl RequestSize {
    /// Returns the size for the first request of a fork.
    pub(crate) fn of_parent(self) -> Self {
        Self {
            begun: false,
            ..self
        }
    }

    /// Returns the maximum number of tokens of a request of this size: no token is shorter than a
    /// byte.
    pub(crate) fn input(&self, size: usize) -> u64 {
        self.tokens
            .saturating_add(size.saturating_sub(self.bytes) as u64)
    }
}

/// Returns an upper bound for the size of a request with this history, in bytes.
pub(crate) fn of_history(preamble: &Encoded, history: &History) -> usize {
    size(preamble, history.encoded_entries()) + history.loaded().size()
}

/// Returns an upper bound for the size of a request, in bytes. `encoded_entries` includes the
/// definitions that they bring.
pub(crate) fn size<'a>(
    preamble: &Encoded,
    encoded_entries: impl IntoIterator<Item = &'a Encoded>,
) -> usize {
    preamble.bytes.len()
        + encoded_entries
            .into_iter()
            .map(|encoded| encoded.bytes.len())
            .sum::<usize>()
        + AROUND
}

/// Returns what an entry adds to requests.
pub(crate) fn parts(entry: &NewEntry) -> impl Iterator<Item = &Encoded> {
    let shared = entry.head.iter().chain(&entry.loaded);
    shared.chain([&entry.encoded])
}

/// Returns the size of the last request of a transcript.
pub(crate) fn last_request(transcript: &Transcript) -> RequestSize {
    let entries = transcript.entries.iter().map(|stored| &stored.entry);
    let is_kind = |kind| move |stored: &StoredEntry| stored.entry.kind == kind;
    let last = |kind| transcript.entries.iter().rposition(is_kind(kind));
    let (summary, model) = (last(EntryKind::Compaction), last(EntryKind::Model));
    let entries: Vec<&NewEntry> = entries.skip(summary.unwrap_or(0)).collect();
    // The usage of a reply that was cut off is unknown.
    let whole = |entry: &NewEntry| {
        let facts = entry.reply.as_ref().filter(|facts| facts.stop.is_some())?;
        (entry.kind == EntryKind::Reply).then_some(facts.usage)
    };
    // Another model counts in tokens of its own.
    let others = model.unwrap_or(0).saturating_sub(summary.unwrap_or(0));
    let last = entries
        .iter()
        .enumerate()
        .skip(others)
        .rev()
        .find_map(|(at, entry)| Some((at, whole(entry)?)));
    let Some((at, usage)) = last else {
        return RequestSize::default();
    };
    let sent = entries[..at]
        .iter()
        .filter(|entry| entry.kind != EntryKind::Model)
        .flat_map(|entry| parts(entry));
    RequestSize {
        tokens: usage.prompt().saturating_add(usage.output),
        bytes: size(current_preamble(transcript), sent),
        begun: true,
    }
}
