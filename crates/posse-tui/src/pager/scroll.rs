//! Lines of a document without their numbers: which comes next, which before.

use super::document::Document;

/// A line of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinePlace {
    /// The number of its entry.
    pub(super) entry: u64,
    /// Its number in the entry.
    pub(super) line: usize,
}

/// Returns the line after one; none at the end of what was read.
pub(super) fn next(document: &mut Document, place: LinePlace) -> Option<LinePlace> {
    let line = place.line + 1;
    if line < document.count(place.entry)? {
        return Some(LinePlace { line, ..place });
    }
    let entries = place.entry + 1..document.known().end;
    first_of(document, entries)
}

/// Returns the line before one; none at the beginning of what was read.
pub(super) fn previous(document: &mut Document, place: LinePlace) -> Option<LinePlace> {
    if let Some(line) = place.line.checked_sub(1) {
        return Some(LinePlace { line, ..place });
    }
    let entries = document.known().start..place.entry;
    entries.rev().find_map(|entry| {
        let line = document.count(entry)?.checked_sub(1)?;
        Some(LinePlace { entry, line })
    })
}

fn first_of(document: &mut Document, mut entries: std::ops::Range<u64>) -> Option<LinePlace> {
    let entry = entries.find(|entry| document.count(*entry).unwrap_or_default() > 0)?;
    Some(LinePlace { entry, line: 0 })
}

/// Returns the line that is so many lines below one, or the last that was read.
pub(super) fn down(document: &mut Document, mut place: LinePlace, lines: usize) -> LinePlace {
    for _ in 0..lines {
        match next(document, place) {
            Some(below) => place = below,
            None => break,
        }
    }
    place
}

/// Returns the line that is so many lines above one, or the first that was read.
pub(super) fn up(document: &mut Document, mut place: LinePlace, lines: usize) -> LinePlace {
    for _ in 0..lines {
        match previous(document, place) {
            Some(above) => place = above,
            None => break,
        }
    }
    place
}

/// Returns the first line of the last screen.
pub(super) fn end(document: &mut Document, height: usize) -> LinePlace {
    let after = LinePlace {
        entry: document.total(),
        line: 0,
    };
    up(document, after, height)
}

/// Returns the lines of a screen, as far as they were read.
pub(super) fn screen(document: &mut Document, top: LinePlace, height: usize) -> Vec<LinePlace> {
    let first = match document.count(top.entry) {
        Some(count) if top.line < count => Some(top),
        Some(_) => next(document, top),
        None => None,
    };
    let mut places: Vec<LinePlace> = first.into_iter().collect();
    while let Some(last) = places.last().filter(|_| places.len() < height) {
        match next(document, *last) {
            Some(below) => places.push(below),
            None => break,
        }
    }
    places
}

/// Returns the nearest first line of a screen that is there. The last screen is full, if there are
/// lines for it.
pub(super) fn settled(document: &mut Document, top: LinePlace, height: usize) -> LinePlace {
    let last = document.total().saturating_sub(1);
    let mut top = LinePlace {
        entry: top.entry.min(last),
        ..top
    };
    if let Some(count) = document.count(top.entry) {
        top.line = top.line.min(count.saturating_sub(1));
    }
    let is_full = screen(document, top, height).len() >= height;
    match document.has_end() && document.is_known(top.entry) && !is_full {
        true => top.min(end(document, height)),
        false => top,
    }
}
