//! An agent's history: bytes that are encoded once, in an order that never changes.
//!
//! Entries that no cache mark can be placed at any more are joined into larger ones, so that a
//! request of ten megabytes is made of a handful of parts. Joining copies each byte a few times in
//! the life of a history; cloning a history copies none.

pub(crate) mod cache_ttl;
pub(crate) mod fork_point;
pub(crate) mod loaded;
pub(crate) mod request_size;
pub(crate) mod restore;

use bytes::{Bytes, BytesMut};
use posse_protocol::{AgentId, EntryKind, ReplyFacts};

use crate::history::loaded::LoadedTools;
use crate::prompt::FORK_TAG;
use posse_port::model::{BreakpointPosition, CacheBreakpoint, Encoded, Ttl};
use posse_port::store::{NewEntry, Segment, checksum, with_loaded};

/// Number of entries at the end that stay separate: the marks of the next request are among them.
const APART: usize = 4;
/// Number of entries to accumulate before joining them.
const JOIN_AT: usize = 16;
/// Encoded bytes of this size are not joined with others any more.
const LARGE: usize = 1 << 20;

/// An agent's history.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The first `shared` ones are another agent's, or the same as its siblings'; then come joined
    /// ones, then one for each of `apart`.
    encoded_entries: Vec<Encoded>,
    shared: usize,
    /// Position where the last answered request ended: its own, or that of the agent it was forked
    /// from. Nothing is joined across it.
    request_end: Option<usize>,
    /// Kinds of the entries at the end that are not joined yet.
    apart: Vec<EntryKind>,
    /// Number of the next own entry.
    next_seq: u64,
    /// Checksum of the last own entry, which covers all before it.
    chain: u64,
    /// The own entry that it begins with, if a compaction replaced all before it.
    since: Option<u64>,
    /// Size of that entry.
    summary: usize,
    /// True if its text says that it is a fork's.
    tagged: bool,
    /// Tools that it has loaded since it began, or since a compaction.
    loaded: LoadedTools,
}

/// An entry that is about to be made.
pub(crate) struct Part {
    /// Kind of entry.
    pub(crate) kind: EntryKind,
    /// Beginning of the message that a fork shares with its siblings.
    pub(crate) head: Option<Encoded>,
    /// Definitions that it brings, as they are stored.
    pub(crate) loaded: Option<Encoded>,
    /// The encoded message, without its head.
    pub(crate) encoded: Encoded,
    /// Facts about a reply.
    pub(crate) reply: Option<ReplyFacts>,
}

impl History {
    /// Returns a history that begins with all of this one: the bytes are shared.
    pub(crate) fn forked(&self) -> Self {
        Self {
            shared: self.encoded_entries.len(),
            request_end: self.request_end,
            apart: Vec::new(),
            next_seq: 0,
            chain: 0,
            since: None,
            summary: self.summary,
            tagged: self.tagged,
            loaded: self.loaded.clone(),
            encoded_entries: self.encoded_entries.clone(),
        }
    }

    /// Returns the tools that it has loaded.
    pub(crate) fn loaded(&self) -> &LoadedTools {
        &self.loaded
    }

    /// Returns the number of the next own entry.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns all of it as stored segments, for another history to begin with. `inherited` is what
    /// it began with itself.
    pub(crate) fn segments(&self, agent: AgentId, inherited: Vec<Segment>) -> Vec<Segment> {
        let mut segments = if self.since.is_some() {
            Vec::new()
        } else {
            inherited
        };
        let (from, to) = (self.since.unwrap_or(0), self.next_seq);
        segments.extend((from < to).then_some(Segment { agent, from, to }));
        segments
    }

    /// Returns the size of the summary that it begins with, if it does.
    pub(crate) fn summary(&self) -> Option<usize> {
        Some(self.summary).filter(|size| *size > 0)
    }

    /// Returns true if it contains a reply.
    pub(crate) fn has_replied(&self) -> bool {
        self.request_end.is_some()
    }

    /// Returns the history up to the end of the last answered request.
    pub(crate) fn before_last_reply(&self) -> Self {
        let kept = self.request_end.map_or(0, |end| end + 1);
        let mut before = self.clone();
        before.encoded_entries.truncate(kept);
        (before.shared, before.apart) = (before.shared.min(kept), Vec::new());
        before
    }

    /// Returns what came after the last answered request, as it was sent.
    pub(crate) fn after_last_request(&self) -> String {
        let from = self.request_end.map_or(0, |end| end + 1);
        let parts: Vec<&[u8]> = self.encoded_entries[from..]
            .iter()
            .map(|encoded| &encoded.bytes[..])
            .collect();
        String::from_utf8_lossy(&parts.join(&b","[..])).into_owned()
    }

    /// Returns true if its text says that it is a fork's.
    pub(crate) fn is_tagged(&self) -> bool {
        self.tagged
    }

    /// Returns true if one of its messages contains this text.
    pub(crate) fn contains(&self, text: &str) -> bool {
        any_contains(&self.encoded_entries, text)
    }

    /// Makes the next entries. They become part of the history once they are
    /// [`push`](Self::push)ed, which happens only after the commit.
    pub(crate) fn draft(&self, parts: Vec<Part>) -> Vec<NewEntry> {
        let (mut seq, mut chain) = (self.next_seq, self.chain);
        let entry = |Part {
                         kind,
                         head,
                         loaded,
                         encoded,
                         reply,
                     }: Part| {
            chain = checksum(chain, seq, kind, head.as_ref(), &encoded);
            chain = with_loaded(chain, loaded.as_ref());
            seq += 1;
            NewEntry {
                seq: seq - 1,
                kind,
                head,
                loaded,
                encoded,
                checksum: chain,
                reply,
            }
        };
        parts.into_iter().map(entry).collect()
    }

    /// Adds an entry that is durable.
    pub(crate) fn push(&mut self, entry: &NewEntry) {
        self.next_seq = entry.seq + 1;
        self.chain = entry.checksum;
        if entry.kind == EntryKind::Model {
            // Nothing of it is sent.
            return;
        }
        if entry.kind == EntryKind::Compaction {
            (self.encoded_entries, self.apart) = (Vec::new(), Vec::new());
            (self.shared, self.request_end, self.since) = (0, None, Some(entry.seq));
            (self.summary, self.tagged) = (
                entry.encoded.bytes.len(),
                self.tagged || says_fork(&entry.encoded),
            );
            self.loaded = LoadedTools::default();
        }
        if let Some(loaded) = &entry.loaded {
            self.loaded.add(&loaded.bytes);
        }
        if entry.kind == EntryKind::Reply {
            self.request_end = self.encoded_entries.len().checked_sub(1);
        }
        if let Some(head) = &entry.head {
            self.encoded_entries.push(head.clone());
            self.apart.clear();
            self.shared = self.encoded_entries.len();
        }
        self.tagged |= entry.head.as_ref().is_some_and(says_fork);
        self.encoded_entries.push(entry.encoded.clone());
        self.apart.push(entry.kind);
        if self.apart.len() >= APART + JOIN_AT {
            self.join();
        }
    }

    /// Adds a stored entry if its checksum is right; otherwise returns the number that was
    /// expected. `sent` is what is sent of it instead.
    pub(crate) fn restore(&mut self, entry: &NewEntry, sent: Option<Encoded>) -> Result<(), u64> {
        let expected = checksum(
            self.chain,
            entry.seq,
            entry.kind,
            entry.head.as_ref(),
            &entry.encoded,
        );
        let expected = with_loaded(expected, entry.loaded.as_ref());
        // A compaction begins a new chain: what it replaced is not read.
        let follows = entry.seq == self.next_seq || entry.kind == EntryKind::Compaction;
        if !follows || entry.checksum != expected {
            return Err(self.next_seq);
        }
        match sent {
            Some(encoded) => self.push(&NewEntry {
                encoded,
                ..entry.clone()
            }),
            None => self.push(entry),
        }
        Ok(())
    }

    /// Joins entries at the end, and then joined ones of similar size.
    fn join(&mut self) {
        let start = self.encoded_entries.len() - self.apart.len();
        let mut end = self.encoded_entries.len() - APART;
        if let Some(at) = self.request_end.filter(|at| (start..end).contains(at)) {
            (end, self.request_end) = (at + 1, Some(start));
        } else if let Some(at) = self.request_end.as_mut().filter(|at| **at >= end) {
            *at -= end - start - 1;
        }
        let joined = join(&self.encoded_entries[start..end]);
        self.encoded_entries.splice(start..end, [joined]);
        self.apart.drain(..end - start);
        // Like a binary counter that carries: each is at least twice as large as the next, so that
        // a byte is copied a logarithmic number of times.
        loop {
            let end = self.encoded_entries.len() - self.apart.len();
            let [.., before, last] = &self.encoded_entries[self.shared..end] else {
                return;
            };
            let large = before.bytes.len() >= LARGE || before.bytes.len() >= 2 * last.bytes.len();
            if large || self.request_end == Some(end - 2) {
                return;
            }
            if let Some(at) = self.request_end.as_mut().filter(|at| **at + 1 >= end) {
                *at -= 1;
            }
            let joined = join(&self.encoded_entries[end - 2..end]);
            self.encoded_entries.splice(end - 2..end, [joined]);
        }
    }

    /// Returns the encoded bytes that a request is made of.
    pub(crate) fn encoded_entries(&self) -> &[Encoded] {
        &self.encoded_entries
    }

    /// Returns the cache marks of a request: the preamble, what is shared with others, the end of
    /// the previous request, and the end of this one. Before a fork's first request comes its
    /// parent's last.
    pub(crate) fn marks(&self, ttl: Ttl) -> Vec<CacheBreakpoint> {
        let mut marks = self.marks_before(ttl);
        let end = BreakpointPosition::Entry(self.encoded_entries.len().saturating_sub(1));
        if !self.encoded_entries.is_empty() && marks.last().is_none_or(|mark| mark.place != end) {
            marks.push(CacheBreakpoint { place: end, ttl });
        }
        marks
    }

    /// Returns the marks without the end of this request: the cache is read, and nothing is
    /// written.
    pub(crate) fn marks_before(&self, ttl: Ttl) -> Vec<CacheBreakpoint> {
        let mut positions: Vec<usize> = [self.shared.checked_sub(1), self.request_end]
            .into_iter()
            .flatten()
            .collect();
        positions.sort_unstable();
        positions.dedup();
        let entries = positions.into_iter().map(BreakpointPosition::Entry);
        [BreakpointPosition::Preamble]
            .into_iter()
            .chain(entries)
            .map(|place| CacheBreakpoint { place, ttl })
            .collect()
    }
}

/// Returns true if one of these contains a text.
pub(crate) fn any_contains(encoded: &[Encoded], text: &str) -> bool {
    // Everything is encoded as JSON, so the text is compared as part of a JSON string.
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let text = inner.unwrap_or(&quoted);
    encoded
        .iter()
        .any(|encoded| String::from_utf8_lossy(&encoded.bytes).contains(text))
}

/// Returns true if the beginning of an entry says that it is a fork's.
fn says_fork(head: &Encoded) -> bool {
    head.bytes
        .windows(FORK_TAG.len())
        .any(|window| window == FORK_TAG.as_bytes())
}

/// Joins encoded entries into one; the mark is that of the last.
fn join(encoded_entries: &[Encoded]) -> Encoded {
    let [encoded] = encoded_entries else {
        let mut bytes = BytesMut::with_capacity(
            encoded_entries
                .iter()
                .map(|encoded| encoded.bytes.len() + 1)
                .sum(),
        );
        let mut mark_at = None;
        for (index, encoded) in encoded_entries.iter().enumerate() {
            if index > 0 {
                bytes.extend_from_slice(b",");
            }
            mark_at = encoded.mark_at.map(|at| bytes.len() + at);
            bytes.extend_from_slice(&encoded.bytes);
        }
        return Encoded {
            bytes: Bytes::from(bytes),
            mark_at,
        };
    };
    encoded.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: usize) -> Encoded {
        let text = format!("{{entry {index} {}}}", "x".repeat(index % 97));
        Encoded {
            mark_at: Some(text.len() - 1),
            bytes: text.into(),
        }
    }

    fn part(kind: EntryKind, index: usize) -> Part {
        Part {
            kind,
            head: None,
            loaded: None,
            encoded: entry(index),
            reply: None,
        }
    }

    fn kind(index: usize) -> EntryKind {
        if index.is_multiple_of(2) {
            EntryKind::Prompt
        } else {
            EntryKind::Reply
        }
    }

    #[test]
    fn a_text_is_found_as_it_was_sent() {
        let mut history = History::default();
        let text =
            serde_json::json!({ "text": "<team-task id=\"1\">\nsays \"\u{e9}\"" }).to_string();
        let encoded = Encoded {
            mark_at: None,
            bytes: text.into(),
        };
        let told = Part {
            encoded,
            ..part(EntryKind::Prompt, 0)
        };
        let entries = history.draft(vec![part(EntryKind::Prompt, 7), told]);
        entries.iter().for_each(|entry| history.push(entry));
        assert!(history.contains("<team-task id=\"1\">") && history.contains("says \"é\""));
        assert!(!history.contains("<team-task id=\"12\">") && !history.contains("id=1"));
    }

    fn grown(entries: usize) -> History {
        let mut history = History::default();
        for index in 0..entries {
            for new in history.draft(vec![part(kind(index), index)]) {
                history.push(&new);
            }
        }
        history
    }

    fn text(history: &History) -> Vec<u8> {
        let parts: Vec<&[u8]> = history
            .encoded_entries()
            .iter()
            .map(|encoded| &encoded.bytes[..])
            .collect();
        parts.join(&b","[..])
    }

    #[test]
    fn joining_changes_no_byte_and_keeps_pieces_few() {
        let mut expected = Vec::new();
        for entries in 0..2_000 {
            if entries > 0 {
                if entries > 1 {
                    expected.extend_from_slice(b",");
                }
                expected.extend_from_slice(&entry(entries - 1).bytes);
            }
            if entries.is_multiple_of(37) || entries < 50 {
                let history = grown(entries);
                assert_eq!(text(&history), expected);
                assert!(
                    history.encoded_entries().len() <= APART + JOIN_AT + 12,
                    "{}",
                    history.encoded_entries().len()
                );
                assert_eq!(history.next_seq(), entries as u64);
            }
        }
    }

    #[test]
    fn marks_stand_where_the_last_request_ended_and_where_this_one_does() {
        for entries in [1, 3, 5, 19, 21, 23, 41, 999] {
            let history = grown(entries);
            let ends = |place: BreakpointPosition| match place {
                BreakpointPosition::Preamble => None,
                BreakpointPosition::Entry(index) => Some({
                    let encoded = &history.encoded_entries()[index];
                    String::from_utf8(encoded.bytes[..encoded.mark_at.unwrap()].to_vec()).unwrap()
                }),
            };
            let marked: Vec<String> = history
                .marks(Ttl::FiveMinutes)
                .iter()
                .filter_map(|mark| ends(mark.place))
                .collect();
            let encoded = |index: usize| format!("{{entry {index} {}", "x".repeat(index % 97));
            let last = |text: &String| {
                text.rsplit_once("},{")
                    .map_or(text.clone(), |(_, last)| format!("{{{last}"))
            };
            let marked: Vec<String> = marked.iter().map(last).collect();
            let expected: Vec<String> = [entries.checked_sub(3), Some(entries - 1)]
                .into_iter()
                .flatten()
                .map(encoded)
                .collect();
            assert_eq!(marked, expected, "{entries} entries");
        }
    }

    #[test]
    fn the_end_of_the_last_request_is_marked_however_much_comes_after_it_unanswered() {
        for unanswered in [1, 3, 5, 17, 25, 60, 200] {
            let mut history = grown(42);
            let sent = text(&history);
            let mut push = |kind, index| {
                for new in history.draft(vec![part(kind, index)]) {
                    history.push(&new);
                }
            };
            push(EntryKind::Prompt, 300);
            push(EntryKind::Reply, 301);
            (0..unanswered).for_each(|index| push(EntryKind::Prompt, 400 + index));
            let before = text(&history.before_last_reply());
            assert_eq!(before[..sent.len()], sent[..]);
            assert_eq!(
                before[sent.len() + 1..],
                entry(300).bytes[..],
                "{unanswered}"
            );
            let marked = history.marks(Ttl::FiveMinutes);
            let [
                _,
                CacheBreakpoint {
                    place: BreakpointPosition::Entry(at),
                    ..
                },
                _,
            ] = marked[..]
            else {
                panic!("{marked:?}")
            };
            let up_to: Vec<&[u8]> = history.encoded_entries()[..=at]
                .iter()
                .map(|encoded| &encoded.bytes[..])
                .collect();
            assert_eq!(up_to.join(&b","[..]), before, "{unanswered}");
            assert!(history.after_last_request().starts_with("{entry 301"));
        }
    }

    // proves FK-07 (part: in memory)
    #[test]
    fn a_fork_shares_bytes_and_keeps_its_boundary_for_ever() {
        let parent = grown(57);
        let mut fork = parent.forked();
        for index in 0..500 {
            for new in fork.draft(vec![part(kind(index), index)]) {
                fork.push(&new);
            }
        }
        for (mine, theirs) in fork.encoded_entries().iter().zip(parent.encoded_entries()) {
            assert_eq!(
                mine.bytes.as_ptr(),
                theirs.bytes.as_ptr(),
                "the same memory"
            );
        }
        assert!(fork.marks(Ttl::FiveMinutes).iter().any(
            |mark| mark.place == BreakpointPosition::Entry(parent.encoded_entries().len() - 1)
        ));
        assert_eq!(fork.next_seq(), 500);
    }

    #[test]
    fn what_a_store_changed_is_found() {
        let source = grown(3);
        let drafts = source.draft(vec![part(EntryKind::Prompt, 8), part(EntryKind::Reply, 9)]);
        let restored = |change: &dyn Fn(&mut Vec<NewEntry>)| {
            let (mut history, mut entries) = (source.clone(), drafts.clone());
            change(&mut entries);
            entries
                .iter()
                .try_for_each(|entry| history.restore(entry, None))
        };
        assert_eq!(restored(&|_| {}), Ok(()));
        assert_eq!(restored(&|entries| entries.swap(0, 1)), Err(3));
        assert_eq!(restored(&|entries| drop(entries.remove(0))), Err(3));
        assert_eq!(
            restored(&|entries| entries[1].kind = EntryKind::Results),
            Err(4)
        );
        let flip = |entries: &mut Vec<NewEntry>| {
            let mut bytes = entries[1].encoded.bytes.to_vec();
            bytes[3] ^= 1;
            entries[1].encoded.bytes = bytes.into();
        };
        assert_eq!(restored(&flip), Err(4));
    }
}
