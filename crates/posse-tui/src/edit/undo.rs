//! The steps back and forth: what each edit removed and put in, grouped by words.

use std::collections::VecDeque;
use std::ops::Range;

/// More steps than anyone walks back one by one.
const STEPS: usize = 200;
/// A step can hold the whole buffer twice, so steps are bounded by size as well.
const BYTES: usize = 8 << 20;

/// How an edit joins its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditKind {
    /// One grapheme typed: joins the word it belongs to.
    Typing,
    /// One grapheme erased: joins the word it belonged to.
    Erasing,
    /// Stands alone.
    Whole,
}

/// One edit: at `at`, `removed` gave way to `inserted`.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) at: usize,
    pub(super) removed: String,
    pub(super) inserted: String,
    /// Cursors before and after the edit.
    pub(super) cursors: (usize, usize),
    pub(super) kind: EditKind,
}

impl Step {
    /// The bytes that this step put in.
    pub(super) fn inserted_range(&self) -> Range<usize> {
        self.at..self.at + self.inserted.len()
    }

    /// The bytes that this step took out.
    pub(super) fn removed_range(&self) -> Range<usize> {
        self.at..self.at + self.removed.len()
    }

    fn size(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }

    /// Takes `next` in if both belong to one word. Gives it back otherwise.
    fn join(&mut self, next: Step) -> Option<Step> {
        if self.kind != next.kind || self.cursors.1 != next.cursors.0 {
            return Some(next);
        }
        match next.kind {
            EditKind::Typing if next.removed.is_empty() => {
                let starts_word = ends_blank(&self.inserted) && !ends_blank(&next.inserted);
                if starts_word || next.at != self.inserted_range().end {
                    return Some(next);
                }
                self.inserted.push_str(&next.inserted);
            }
            EditKind::Erasing if next.removed_range().end == self.at => {
                if ends_blank(&next.removed) && !starts_blank(&self.removed) {
                    return Some(next);
                }
                self.removed.insert_str(0, &next.removed);
                self.at = next.at;
            }
            EditKind::Erasing if next.at == self.at => {
                if ends_blank(&self.removed) && !ends_blank(&next.removed) {
                    return Some(next);
                }
                self.removed.push_str(&next.removed);
            }
            _ => return Some(next),
        }
        self.cursors.1 = next.cursors.1;
        None
    }
}

fn ends_blank(text: &str) -> bool {
    text.ends_with(char::is_whitespace)
}

fn starts_blank(text: &str) -> bool {
    text.starts_with(char::is_whitespace)
}

/// The edits that can be undone and redone.
#[derive(Debug, Clone, Default)]
pub(super) struct UndoLog {
    done: VecDeque<Step>,
    undone: Vec<Step>,
    /// The last step takes no more edits in.
    sealed: bool,
}

impl UndoLog {
    /// Adds an edit. What was undone before can no longer be redone.
    pub(super) fn record(&mut self, step: Step) {
        self.undone.clear();
        let open = self.done.back_mut().filter(|_| !self.sealed);
        self.sealed = false;
        let alone = match open {
            Some(last) => last.join(step),
            None => Some(step),
        };
        self.done.extend(alone);
        self.shed();
    }

    /// Ends the group: the next edit is a step of its own.
    pub(super) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Returns the step to revert.
    pub(super) fn back(&mut self) -> Option<&Step> {
        self.sealed = true;
        self.undone.push(self.done.pop_back()?);
        self.undone.last()
    }

    /// Returns the step to repeat.
    pub(super) fn forth(&mut self) -> Option<&Step> {
        self.sealed = true;
        self.done.push_back(self.undone.pop()?);
        self.done.back()
    }

    /// Forgets all steps.
    pub(super) fn clear(&mut self) {
        *self = UndoLog::default();
    }

    fn shed(&mut self) {
        let mut size: usize = self.done.iter().map(Step::size).sum();
        while self.done.len() > STEPS || (size > BYTES && self.done.len() > 1) {
            size -= self.done.pop_front().map_or(0, |step| step.size());
        }
    }
}
