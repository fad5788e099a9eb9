//! A plain list that is replaced as a whole, with a line that is highlighted.

use posse_protocol::{AgentId, MailId, Purpose};

use super::cursor::ListCursor;
use super::facts::{BoardMail, CostRow};

/// Something that is known again when its list was read anew.
pub(super) trait Keyed {
    /// What it is known by.
    type Key: Clone + PartialEq;

    fn key(&self) -> Self::Key;
}

impl Keyed for BoardMail {
    type Key = MailId;

    fn key(&self) -> MailId {
        self.id
    }
}

impl Keyed for CostRow {
    type Key = (AgentId, String, Purpose);

    fn key(&self) -> Self::Key {
        (self.agent, self.model.clone(), self.purpose)
    }
}

/// A list of rows.
pub(super) struct RowList<T: Keyed> {
    rows: Vec<T>,
    cursor: ListCursor<T::Key>,
}

impl<T: Keyed> Default for RowList<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            cursor: ListCursor::default(),
        }
    }
}

impl<T: Keyed> RowList<T> {
    pub(super) fn rows(&self) -> &[T] {
        &self.rows
    }

    pub(super) fn cursor(&self) -> &ListCursor<T::Key> {
        &self.cursor
    }

    /// Replaces all rows. What is highlighted stays where it is.
    pub(super) fn set(&mut self, rows: Vec<T>) {
        let keys: Vec<T::Key> = rows.iter().map(Keyed::key).collect();
        self.rows = rows;
        self.cursor.refresh(&keys);
    }

    /// Returns the highlighted row.
    pub(super) fn highlighted(&self) -> Option<&T> {
        self.rows.get(self.cursor.at())
    }

    /// Highlights a row that the person chose, on a list of this height.
    pub(super) fn go(&mut self, number: usize, height: usize) {
        let at = number.min(self.rows.len().saturating_sub(1));
        let key = self.rows.get(at).map(Keyed::key);
        self.cursor.go(key, at, (self.rows.len(), height));
    }

    /// The list has this many rows of the screen.
    pub(super) fn fit(&mut self, height: usize) {
        self.cursor.fit(self.rows.len(), height);
    }
}
