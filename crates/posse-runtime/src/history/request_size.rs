//! How large a request is.

use posse_protocol::EntryKind;

use posse_port::model::Encoded;
use posse_port::store::{NewEntry, Transcript};

/// More than a request has around its pieces, in bytes.
const AROUND: usize = 1024;

/// How large requests are, as far as it was paid for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestSize {
    /// Tokens of the last request and its reply.
    pub(crate) tokens: u64,
    /// Bytes of the last request.
    pub(crate) bytes: usize,
    /// Whether any call was made.
    pub(crate) begun: bool,
}

impl RequestSize {
    /// What is known of the first request of a fork.
    pub(crate) fn of_parent(self) -> Self {
        Self {
            begun: false,
            ..self
        }
    }

    /// The most tokens that a request of this size can be: no token is shorter than a byte.
    pub(crate) fn input(&self, size: usize) -> u64 {
        self.tokens
            .saturating_add(size.saturating_sub(self.bytes) as u64)
    }
}

/// More than the size of a request of these pieces, in bytes.
pub(crate) fn size<'a>(preamble: &Encoded, pieces: impl IntoIterator<Item = &'a Encoded>) -> usize {
    preamble.bytes.len()
        + pieces
            .into_iter()
            .map(|piece| piece.bytes.len())
            .sum::<usize>()
        + AROUND
}

/// How large the last request was, as far as its reply tells.
pub(crate) fn last_request(transcript: &Transcript) -> RequestSize {
    let entries = transcript.entries.iter().map(|stored| &stored.entry);
    let summary = transcript
        .entries
        .iter()
        .rposition(|stored| stored.entry.kind == EntryKind::Compaction);
    let entries: Vec<&NewEntry> = entries.skip(summary.unwrap_or(0)).collect();
    // Of a reply that was cut off it is not known what it took.
    let whole = |entry: &NewEntry| {
        let facts = entry.reply.as_ref().filter(|facts| facts.stop.is_some())?;
        (entry.kind == EntryKind::Reply).then_some(facts.usage)
    };
    let last = entries
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, entry)| Some((at, whole(entry)?)));
    let Some((at, usage)) = last else {
        return RequestSize::default();
    };
    let sent = entries[..at]
        .iter()
        .flat_map(|entry| entry.head.iter().chain([&entry.piece]));
    RequestSize {
        tokens: usage.prompt().saturating_add(usage.output),
        bytes: size(&transcript.preamble, sent),
        begun: true,
    }
}
