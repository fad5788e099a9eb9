//! Lines about others that wait until the block of a reply is whole that arrives on a terminal.

use std::time::Duration;

/// How long a line waits.
const PATIENCE: Duration = Duration::from_secs(3);
/// Number of lines that wait.
const MOST: usize = 20;

/// The lines, oldest first.
#[derive(Default)]
pub(super) struct HeldNotes {
    notes: Vec<String>,
    /// When the first of them was seen to wait.
    since: Option<Duration>,
    /// Somebody looks at the time, so that none waits for ever.
    is_watched: bool,
}

impl HeldNotes {
    /// Returns true if another line may wait.
    pub(super) fn has_room(&self) -> bool {
        self.is_watched && self.notes.len() < MOST
    }

    /// Adds a line.
    pub(super) fn add(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Returns true if lines have waited for long enough.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        self.is_watched = true;
        if self.notes.is_empty() {
            return false;
        }
        now.saturating_sub(*self.since.get_or_insert(now)) >= PATIENCE
    }

    /// Takes all lines.
    pub(super) fn take(&mut self) -> Vec<String> {
        self.since = None;
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_waits_for_long() {
        let mut held = HeldNotes::default();
        assert!(!held.has_room(), "nobody looks at the time");
        assert!(!held.is_due(Duration::from_secs(60)));
        held.add("one".into());
        let is_due = [61, 63, 64].map(|now| held.is_due(Duration::from_secs(now)));
        assert_eq!(is_due, [false, false, true]);
        assert_eq!(held.take(), ["one"]);
        assert!(!held.is_due(Duration::from_secs(99)));
        (0..MOST).for_each(|_| held.add("more".into()));
        assert!(!held.has_room());
    }
}
