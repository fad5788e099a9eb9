//! The prompts of a directory: walking through them (Up, Down) and searching (Ctrl-R).
//!
//! Reading and writing them to a file belongs to the caller.

use super::buffer::TEXT_LIMIT;
use super::draft::Draft;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// Prompts that are kept.
const ENTRIES: usize = 1_000;
/// Bytes of all prompts together, since one can hold a megabyte.
const BYTES: usize = 16 << 20;

/// Earlier prompts, newest last, without neighbouring repeats.
#[derive(Debug, Clone, Default)]
pub struct PromptHistory {
    entries: VecDeque<String>,
    bytes: usize,
    walk: Option<Walk>,
}

/// A walk that is under way.
#[derive(Debug, Clone)]
struct Walk {
    /// The entry that is shown; the number of entries stands for the draft.
    at: usize,
    /// The draft, and entries that were edited on the way.
    edited: BTreeMap<usize, Draft>,
}

impl PromptHistory {
    /// A history of `entries`, oldest first.
    pub fn new<T: Into<String>>(entries: impl IntoIterator<Item = T>) -> PromptHistory {
        let mut history = PromptHistory::default();
        for entry in entries {
            history.push(entry);
        }
        history
    }

    /// Returns the prompts, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.entries.iter().map(String::as_str)
    }

    /// Adds a prompt and ends the walk. Returns false if it is not kept: it is blank, repeats the
    /// last one or is longer than a buffer.
    pub fn push(&mut self, prompt: impl Into<String>) -> bool {
        let prompt = prompt.into();
        self.walk = None;
        let repeats = self.entries.back() == Some(&prompt);
        if repeats || prompt.trim().is_empty() || prompt.len() > TEXT_LIMIT {
            return false;
        }
        self.bytes += prompt.len();
        self.entries.push_back(prompt);
        while self.entries.len() > ENTRIES || self.bytes > BYTES {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.len());
        }
        true
    }

    /// Returns the prompt before the one that is shown, or `None` at the oldest.
    ///
    /// `current` is what the buffer holds. The draft and edited prompts are kept, and come back
    /// when the walk passes them again.
    pub fn previous(&mut self, current: Draft) -> Option<Draft> {
        let at = self
            .walk
            .as_ref()
            .map_or(self.entries.len(), |walk| walk.at);
        self.walk_to(at.checked_sub(1)?, current)
    }

    /// Returns the prompt after the one that is shown, the draft after the newest, or `None` if
    /// the draft is shown already.
    pub fn next(&mut self, current: Draft) -> Option<Draft> {
        let at = self.walk.as_ref()?.at;
        self.walk_to(at + 1, current)
    }

    /// Goes to a prompt, the newest of those that are equal. Returns none if it is not there.
    pub fn go_to(&mut self, prompt: &str, current: Draft) -> Option<Draft> {
        let at = self.entries.iter().rposition(|entry| entry == prompt)?;
        self.walk_to(at, current)
    }

    /// Ends the walk. Returns the draft that was there before it, if it is not empty.
    pub fn end(&mut self) -> Option<Draft> {
        let mut walk = self.walk.take()?;
        let draft = walk.edited.remove(&self.entries.len());
        draft.filter(|draft| !draft.is_empty())
    }

    /// Returns the draft that was there before the walk that is under way, if it is not empty.
    pub fn draft_before(&self) -> Option<&Draft> {
        let draft = self.walk.as_ref()?.edited.get(&self.entries.len());
        draft.filter(|draft| !draft.is_empty())
    }

    /// Returns true if a prompt is in the history.
    pub fn has(&self, prompt: &str) -> bool {
        self.entries.iter().any(|entry| entry == prompt)
    }

    /// Returns the `nth` newest prompt that contains `part`, 0 being the newest.
    ///
    /// Capitals matter only if `part` has some. Equal prompts count once. An empty part finds
    /// nothing.
    pub fn search(&self, part: &str, nth: usize) -> Option<&str> {
        if part.is_empty() {
            return None;
        }
        let exact = part.chars().any(char::is_uppercase);
        let mut seen = HashSet::new();
        let mut found = self.entries.iter().rev().filter(|entry| match exact {
            true => entry.contains(part),
            false => entry.to_lowercase().contains(part),
        });
        found
            .by_ref()
            .filter(|entry| seen.insert(entry.as_str()))
            .nth(nth)
            .map(String::as_str)
    }

    fn walk_to(&mut self, target: usize, current: Draft) -> Option<Draft> {
        let newest = self.entries.len();
        let entry = self.entries.get(target);
        if entry.is_none() && target != newest {
            return None;
        }
        let walk = self.walk.get_or_insert(Walk {
            at: newest,
            edited: BTreeMap::new(),
        });
        let unchanged = self
            .entries
            .get(walk.at)
            .is_some_and(|entry| *entry == current.text);
        if !unchanged {
            walk.edited.insert(walk.at, current);
        }
        walk.at = target;
        let kept = walk.edited.get(&target).cloned();
        let found = kept.or_else(|| entry.map(|entry| Draft::new(entry)));
        if target == newest {
            // Edited entries are given up here, so that the next walk shows what was sent.
            self.walk = None;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::EditBuffer;
    use crate::edit::Motion;

    fn up(history: &mut PromptHistory, buffer: &mut EditBuffer) -> bool {
        history
            .previous(buffer.draft())
            .is_some_and(|draft| buffer.restore(&draft))
    }

    fn down(history: &mut PromptHistory, buffer: &mut EditBuffer) -> bool {
        history
            .next(buffer.draft())
            .is_some_and(|draft| buffer.restore(&draft))
    }

    #[test]
    fn the_draft_comes_back_with_its_chips() {
        let mut history = PromptHistory::new(["first", "second"]);
        let mut buffer = EditBuffer::new();
        let block = "block\n".repeat(20);
        buffer.insert("half ");
        buffer.paste(&block);
        buffer.go(Motion::Left);

        assert!(up(&mut history, &mut buffer));
        assert_eq!(buffer.text(), "second");
        assert!(up(&mut history, &mut buffer));
        assert_eq!(buffer.text(), "first");
        assert!(!up(&mut history, &mut buffer));
        assert!(down(&mut history, &mut buffer) && down(&mut history, &mut buffer));
        assert_eq!(
            (buffer.expanded(), buffer.cursor()),
            (format!("half {block}"), 5)
        );
        assert!(!down(&mut history, &mut buffer));
    }

    #[test]
    fn edits_on_the_way_are_kept() {
        let mut history = PromptHistory::new(["first", "second"]);
        let mut buffer = EditBuffer::new();
        up(&mut history, &mut buffer);
        buffer.insert("!");
        up(&mut history, &mut buffer);
        down(&mut history, &mut buffer);
        assert_eq!(buffer.text(), "second!");
        assert_eq!(history.entries().collect::<Vec<_>>(), ["first", "second"]);
    }

    #[test]
    fn repeats_blanks_and_the_oldest_are_dropped() {
        let mut history = PromptHistory::new(["a", "a", " ", "b", "a"]);
        assert_eq!(history.entries().collect::<Vec<_>>(), ["a", "b", "a"]);
        assert!(!history.push("x".repeat(TEXT_LIMIT + 1)));
        for number in 0..2_000 {
            history.push(format!("prompt {number}"));
        }
        assert_eq!(history.entries().count(), ENTRIES);
        assert_eq!(history.entries().next(), Some("prompt 1000"));
        for number in 0..40 {
            history.push("x".repeat(TEXT_LIMIT - number));
        }
        assert!(history.bytes <= BYTES);
        assert_eq!(
            history.bytes,
            history.entries().map(str::len).sum::<usize>()
        );
    }

    #[test]
    fn search_goes_from_new_to_old() {
        let history = PromptHistory::new(["fix the Lexer", "run tests", "fix it", "run tests"]);
        for (part, nth, found) in [
            ("fix", 0, Some("fix it")),
            ("fix", 1, Some("fix the Lexer")),
            ("fix", 2, None),
            ("run", 0, Some("run tests")),
            ("run", 1, None),
            ("lexer", 0, Some("fix the Lexer")),
            ("Fix", 0, None),
            ("Lexer", 0, Some("fix the Lexer")),
            ("", 0, None),
        ] {
            assert_eq!(history.search(part, nth), found, "{part} {nth}");
        }
    }

    #[test]
    fn an_empty_history_leaves_the_draft() {
        let mut history = PromptHistory::default();
        assert!(history.previous(Draft::new("mine")).is_none());
        assert!(history.next(Draft::new("mine")).is_none());
    }
}
