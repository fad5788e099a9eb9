//! Compares requests block by block: where two of them first differ.
//!
//! This explains cache misses. Nothing on the way to the API looks inside encoded parts. A
//! request is reconstructed from its stored parts, so that it has no cache marks, which are not
//! part of a prefix.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_port::store::NewEntry;
use posse_protocol::EntryKind;
use serde::Deserialize;
use serde_json::value::RawValue;

mod read;

/// Everything an agent has sent: its preamble and the entries of its history.
#[derive(Clone, Debug)]
pub struct Sent {
    preamble: Vec<Block>,
    /// Number of messages in the preamble.
    leading: usize,
    history: Vec<Block>,
    /// For each entry the index of its first block and of its first message.
    begins: Vec<(usize, usize)>,
}

/// A part of a request that a cache keeps as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    place: Place,
    /// The role of its message.
    role: String,
    /// A tool's name, or the kind of a content block.
    what: String,
    bytes: Bytes,
}

/// The position of a block. Messages of a history are counted from its first entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Field(String),
    Item(String, usize),
    Message(usize),
    Content(usize, usize),
}

impl Sent {
    /// Parses what an agent has sent, oldest first.
    pub fn read<'a>(
        preamble: &Encoded,
        entries: impl IntoIterator<Item = &'a NewEntry>,
    ) -> Result<Self, serde_json::Error> {
        let (preamble, leading) = read::preamble(&preamble.bytes)?;
        let mut sent = Self {
            preamble,
            leading,
            history: Vec::new(),
            begins: Vec::new(),
        };
        let mut messages = 0;
        for entry in entries {
            sent.begins.push((sent.history.len(), messages));
            messages += read::entry(entry, messages, &mut sent.history)?;
        }
        Ok(sent)
    }

    /// Returns the request made of these entries.
    pub fn request(&self, entries: Range<usize>) -> Prompt<'_> {
        let begin = |entry: usize| self.begins.get(entry).map(|begin| begin.0);
        let first = begin(entries.start).unwrap_or(self.history.len());
        let end = begin(entries.end).unwrap_or(self.history.len()).max(first);
        let skipped = self.begins.get(entries.start).map_or(0, |begin| begin.1);
        Prompt {
            sent: self,
            history: &self.history[first..end],
            skipped,
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    sent: &'a Sent,
    history: &'a [Block],
    /// Number of messages of the history before it.
    skipped: usize,
}

impl<'a> Prompt<'a> {
    /// Returns the size of its blocks in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks()
            .map(|standing| standing.block.bytes.len() as u64)
            .sum()
    }

    /// Returns true if both have the same preamble.
    pub fn same_preamble(&self, other: &Self) -> bool {
        self.sent.preamble == other.sent.preamble
    }

    /// Returns what this request has in common with an earlier one.
    pub fn shared(&self, other: &Self) -> Shared {
        let (mut bytes, mut mine, mut theirs) = (0, self.blocks(), other.blocks());
        let differs = loop {
            match (mine.next(), theirs.next()) {
                (Some(now), Some(then)) if now == then => bytes += now.block.bytes.len() as u64,
                (_, None) => break None,
                (now, Some(then)) => {
                    break Some(Difference {
                        now: now.map(|now| now.named()),
                        then: then.named(),
                    });
                }
            }
        };
        Shared { bytes, differs }
    }

    fn blocks(&self) -> impl Iterator<Item = Standing<'a>> + use<'a> {
        let (skipped, leading) = (self.skipped, self.sent.leading);
        // Messages in the preamble come first and are already numbered.
        let preamble = self.sent.preamble.iter().map(|block| Standing {
            block,
            skipped: 0,
            leading: 0,
        });
        preamble.chain(self.history.iter().map(move |block| Standing {
            block,
            skipped,
            leading,
        }))
    }
}

/// A block at its position in a request.
struct Standing<'a> {
    block: &'a Block,
    /// Number of messages of its history that are not part of the request, and of those before
    /// it.
    skipped: usize,
    leading: usize,
}

impl Standing<'_> {
    fn number(&self, message: usize) -> usize {
        message - self.skipped + self.leading
    }

    fn named(&self) -> (String, String) {
        let place = match &self.block.place {
            Place::Field(name) => name.clone(),
            Place::Item(list, number) => format!("{list}[{number}]"),
            Place::Message(message) => format!("messages[{}]", self.number(*message)),
            Place::Content(message, block) => {
                format!("messages[{}].content[{block}]", self.number(*message))
            }
        };
        (place, self.block.what.clone())
    }
}

impl PartialEq for Standing<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same_place = match (&self.block.place, &other.block.place) {
            (Place::Message(one), Place::Message(two)) => self.number(*one) == other.number(*two),
            (Place::Content(one, first), Place::Content(two, second)) => {
                self.number(*one) == other.number(*two) && first == second
            }
            (one, two) => one == two,
        };
        same_place && self.block.role == other.block.role && self.block.bytes == other.block.bytes
    }
}

/// What two requests have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Size of the blocks that both begin with.
    pub bytes: u64,
    /// The first block of the earlier one that the later one lacks; `None` if it has them all.
    pub differs: Option<Difference>,
}

/// Where a later request first differs from an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Position and kind of the later one's block; `None` if it has no more.
    now: Option<(String, String)>,
    /// Position and kind of the earlier one's block.
    then: (String, String),
}

impl Difference {
    /// Returns true if a summary replaced what was there.
    pub fn is_compaction(&self) -> bool {
        self.now
            .as_ref()
            .is_some_and(|(_, what)| what == COMPACTION)
    }
}

impl fmt::Display for Difference {
    /// `tools[3] (Bash)`; with what was there before, if that was something else.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |(place, what): &(String, String)| match what.as_str() {
            "" => place.clone(),
            what => format!("{place} ({what})"),
        };
        match &self.now {
            None => write!(f, "nothing more, was {}", named(&self.then)),
            Some(now) if *now == self.then || self.is_compaction() => f.write_str(&named(now)),
            Some((place, what))
                if *place == self.then.0 && !what.is_empty() && !self.then.1.is_empty() =>
            {
                write!(f, "{place} ({what}, was {})", self.then.1)
            }
            Some(now) => write!(f, "{}, was {}", named(now), named(&self.then)),
        }
    }
}

/// The kind of a compaction.
const COMPACTION: &str = "compaction";

#[cfg(test)]
mod tests;
