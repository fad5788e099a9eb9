//! The part of a history that a page of its entries is, the same for both engines.

use posse_port::store::{Page, Segment};

/// Parts of a history that lie one after another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntryWindow {
    /// Number of entries of the whole history.
    pub(crate) total: u64,
    /// Position of the first entry.
    pub(crate) first: u64,
    /// What is in it of each segment, in order.
    pub(crate) parts: Vec<Segment>,
}

impl EntryWindow {
    /// Returns the window of a page of the history that these segments are.
    pub(crate) fn new(page: &Page<u64>, segments: &[Segment]) -> Self {
        let length = |segment: &Segment| segment.to.saturating_sub(segment.from);
        let total = segments.iter().map(length).sum();
        let limit = u64::try_from(page.limit).unwrap_or(u64::MAX);
        let (first, beyond) = match page.backwards {
            true => {
                let beyond = page.from.unwrap_or(total).min(total);
                (beyond.saturating_sub(limit), beyond)
            }
            false => {
                let first = page.from.map_or(0, |from| from.saturating_add(1));
                (first.min(total), first.saturating_add(limit).min(total))
            }
        };
        let (mut parts, mut at) = (Vec::new(), 0);
        for segment in segments {
            let end = at + length(segment);
            let (from, to) = (first.max(at), beyond.min(end));
            if from < to {
                parts.push(Segment {
                    agent: segment.agent,
                    from: segment.from + (from - at),
                    to: segment.from + (to - at),
                });
            }
            at = end;
        }
        Self {
            total,
            first,
            parts,
        }
    }
}
