//! The highlighted line of a list, and where on the screen it stands.
//!
//! A list that changes by itself does not move under the cursor: the highlighted line keeps its row of
//! the screen, and the lines around it come and go. Only a list that fits on the screen as a whole is
//! shown as a whole.

/// The highlighted line of a list.
#[derive(Clone, Debug)]
pub(super) struct ListCursor<K> {
    /// What is highlighted; none if the list is empty.
    key: Option<K>,
    /// The number of its line.
    at: usize,
    /// The number of the first line on the screen; at most `at`.
    offset: usize,
    /// The number of rows of the screen that the list has.
    height: usize,
}

impl<K> Default for ListCursor<K> {
    fn default() -> Self {
        Self {
            key: None,
            at: 0,
            offset: 0,
            height: 0,
        }
    }
}

impl<K: Clone + PartialEq> ListCursor<K> {
    pub(super) fn key(&self) -> Option<&K> {
        self.key.as_ref()
    }

    /// Returns the number of the highlighted line.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the number of the first line on the screen.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The list has changed: this is highlighted now, on the same row of the screen if there are
    /// enough lines above it.
    pub(super) fn keep(&mut self, key: Option<K>, at: usize) {
        let row = self.at - self.offset;
        self.offset = at.saturating_sub(row);
        self.at = at;
        self.key = key;
    }

    /// The person highlights a line. The screen is filled, if there are lines for it.
    pub(super) fn go(&mut self, key: Option<K>, at: usize, (lines, height): (usize, usize)) {
        self.key = key;
        self.at = at;
        self.fill(lines, height);
    }

    /// The list has this many lines, and rows of the screen. If it has more rows than before, they
    /// are filled; nothing is out of sight if there is room for all.
    pub(super) fn fit(&mut self, lines: usize, height: usize) {
        if self.height != height || lines <= height {
            self.fill(lines, height);
        }
    }

    fn fill(&mut self, lines: usize, height: usize) {
        self.height = height;
        let last = lines.saturating_sub(height).min(self.at);
        let first = (self.at + 1).saturating_sub(height.max(1));
        self.offset = self.offset.min(last).max(first);
    }

    /// The list has changed, and these are its lines now. What was highlighted stays so; if it is
    /// gone, what is at its place is.
    pub(super) fn refresh(&mut self, keys: &[K]) {
        let known = self.key.as_ref().and_then(|key| place(keys, key));
        let at = known.unwrap_or(self.at).min(keys.len().saturating_sub(1));
        self.keep(keys.get(at).cloned(), at);
    }
}

fn place<K: PartialEq>(keys: &[K], key: &K) -> Option<usize> {
    keys.iter().position(|known| known == key)
}
