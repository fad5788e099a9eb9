//! The part of a transcript that was read, and the lines of what is on the screen.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use posse_protocol::{Entry, EntryKind};
use ratatui_core::text::Line;

use super::entry::{Folds, rendered, source};
use super::{AHEAD, READ};
use crate::conversation::calls::Calls;
use crate::conversation::transcript::note_calls;

/// Number of entries that are kept.
const KEPT: u64 = 2000;
/// Number of entries whose lines are kept.
const DRAWN: usize = 256;
/// Number of entries before the results of calls in which the calls are looked for.
const CALLS_WITHIN: u64 = 8;

/// The part of a transcript that was read.
pub(super) struct Document {
    entries: BTreeMap<u64, Entry>,
    /// The numbers that were read, whether there are entries or not.
    known: Range<u64>,
    total: u64,
    width: u16,
    folds: Folds,
    /// The lines of some entries.
    drawn: HashMap<u64, Vec<Line<'static>>>,
}

impl Document {
    pub(super) fn new(total: u64, width: u16) -> Self {
        Self {
            entries: BTreeMap::new(),
            known: total..total,
            total,
            width: width.max(4),
            folds: Folds::default(),
            drawn: HashMap::new(),
        }
    }

    /// Adds entries that were read, at most `count` from `from` on. Those far from `near` are
    /// forgotten.
    pub(super) fn add(&mut self, from: u64, count: u64, entries: Vec<Entry>, near: u64) {
        let last = entries.iter().map(|entry| entry.seq + 1).max();
        let end = (from + count).min(self.total).max(last.unwrap_or(from));
        let is_beside = from <= self.known.end && end >= self.known.start;
        if is_beside && !self.known.is_empty() {
            self.known = self.known.start.min(from)..self.known.end.max(end);
        } else {
            self.entries.clear();
            self.drawn.clear();
            self.known = from..end;
        }
        self.total = self.total.max(end);
        for entry in entries {
            // Results whose calls come with it have their names now.
            for later in entry.seq..=entry.seq + CALLS_WITHIN {
                self.drawn.remove(&later);
            }
            self.entries.insert(entry.seq, entry);
        }
        self.forget(near);
    }

    /// Forgets entries, if there are too many: those that are farthest away.
    fn forget(&mut self, near: u64) {
        let Range { start, end } = self.known;
        if end - start <= KEPT {
            return;
        }
        let start = near.saturating_sub(KEPT / 2).clamp(start, end - KEPT);
        self.known = start..start + KEPT;
        self.entries.retain(|seq, _| self.known.contains(seq));
        self.drawn.retain(|seq, _| self.known.contains(seq));
    }

    /// The transcript has this many entries now.
    pub(super) fn grow(&mut self, total: u64) {
        self.total = self.total.max(total);
    }

    pub(super) fn set_width(&mut self, width: u16) {
        if self.width != width.max(4) {
            self.width = width.max(4);
            self.drawn.clear();
        }
    }

    pub(super) fn folds(&self) -> Folds {
        self.folds
    }

    pub(super) fn fold(&mut self, folds: Folds) {
        self.folds = folds;
        self.drawn.clear();
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn known(&self) -> Range<u64> {
        self.known.clone()
    }

    /// Returns the number of the entry where a search begins that goes through everything.
    pub(super) fn far_end(&self, backwards: bool) -> u64 {
        match backwards {
            true => self.total.saturating_sub(1),
            false => 0,
        }
    }

    /// Returns true if an entry was read.
    pub(super) fn is_known(&self, seq: u64) -> bool {
        self.known.contains(&seq)
    }

    /// Returns true if the last entry was read.
    pub(super) fn has_end(&self) -> bool {
        self.known.end == self.total && (!self.known.is_empty() || self.total == 0)
    }

    /// Returns the last entries, to be read.
    pub(super) fn missing_end(&self) -> Option<(u64, u64)> {
        let from = match self.known.is_empty() {
            true => self.total.saturating_sub(READ),
            false => self.known.end.max(self.total.saturating_sub(READ)),
        };
        (from < self.total).then(|| (from, self.total - from))
    }

    /// Returns the entries that are to be read next, for a screen from one entry to another. `last`
    /// is none if all that was read does not fill the screen.
    pub(super) fn missing(&self, first: u64, last: Option<u64>) -> Option<(u64, u64)> {
        if self.total == 0 {
            return None;
        }
        let Range { start, end } = self.known;
        if !self.known.contains(&first) {
            let from = first.min(self.total - 1).saturating_sub(READ / 2);
            return Some((from, READ.min(self.total - from)));
        }
        if end < self.total && last.is_none_or(|last| end - last <= AHEAD) {
            return Some((end, READ.min(self.total - end)));
        }
        // Also if the last entries have too few lines for a screen.
        if start > 0 && (last.is_none() || first - start <= AHEAD) {
            let from = start.saturating_sub(READ);
            return Some((from, start - from));
        }
        None
    }

    /// Returns the lines of an entry; none if it was not read.
    pub(super) fn lines(&mut self, seq: u64) -> Option<&[Line<'static>]> {
        if !self.known.contains(&seq) {
            return None;
        }
        if !self.drawn.contains_key(&seq) {
            let lines = self.draw(seq);
            if self.drawn.len() >= DRAWN {
                let far = DRAWN as u64 / 4;
                self.drawn.retain(|drawn, _| drawn.abs_diff(seq) <= far);
            }
            self.drawn.insert(seq, lines);
        }
        self.drawn.get(&seq).map(Vec::as_slice)
    }

    /// Returns the number of lines of an entry; none if it was not read.
    pub(super) fn count(&mut self, seq: u64) -> Option<usize> {
        self.lines(seq).map(<[_]>::len)
    }

    fn draw(&self, seq: u64) -> Vec<Line<'static>> {
        let Some(entry) = self.entries.get(&seq) else {
            return Vec::new();
        };
        let mut calls = Calls::default();
        if entry.kind == EntryKind::Results {
            let before = seq.saturating_sub(CALLS_WITHIN)..seq;
            for (_, earlier) in self.entries.range(before) {
                note_calls(earlier, &mut calls);
            }
        }
        rendered(entry, &mut calls, self.folds, self.width)
    }

    /// Returns what an entry says, as it was written.
    pub(super) fn source(&self, seq: u64) -> Option<String> {
        let source = source(self.entries.get(&seq)?);
        (!source.is_empty()).then_some(source)
    }

    /// Returns the number of a line of an entry that has a text, the last one if `backwards`. What is
    /// folded is unfolded if the text is only there.
    pub(super) fn unfolded_match(
        &mut self,
        seq: u64,
        text: &str,
        backwards: bool,
    ) -> Option<usize> {
        let before = self.folds;
        for folds in [before, Folds::all_shown()] {
            if self.folds != folds {
                self.fold(folds);
            }
            let lines = self.lines(seq)?;
            let mut fitting = matching(lines, text);
            let found = match backwards {
                true => fitting.next_back(),
                false => fitting.next(),
            };
            if found.is_some() {
                return found;
            }
        }
        self.fold(before);
        None
    }
}

#[cfg(test)]
impl Document {
    /// Returns the number of entries whose lines are kept.
    pub(super) fn drawn_count(&self) -> usize {
        self.drawn.len()
    }
}

/// Returns the numbers of lines that have a text.
pub(super) fn matching<'a>(
    lines: &'a [Line<'static>],
    text: &str,
) -> impl DoubleEndedIterator<Item = usize> + 'a {
    let text = text.to_lowercase();
    let numbered = lines.iter().enumerate();
    numbered.filter_map(move |(number, line)| {
        let has_it = !text.is_empty() && line.to_string().to_lowercase().contains(&text);
        has_it.then_some(number)
    })
}
