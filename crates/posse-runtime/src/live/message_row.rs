//! Messages that teammates write each other while nobody does anything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tools whose calls are not acts: who writes or waits gets nothing done.
const IDLE: [&str; 3] = ["SendMessage", "Wait", "TaskOutput"];

/// Counts messages between the teammates of a session since an agent of it did anything else.
#[derive(Debug, Default)]
pub(crate) struct MessageRow {
    /// Messages in a row.
    messages: AtomicU32,
    /// Acts in progress.
    acts: AtomicU32,
}

/// An act in progress. When it is dropped, the row of messages ends.
#[derive(Debug)]
pub(crate) struct ActGuard(Arc<MessageRow>);

impl MessageRow {
    /// Marks a call of a tool as an act in progress; `None` if it is not an act.
    pub(crate) fn act(self: &Arc<Self>, tool: &str) -> Option<ActGuard> {
        if IDLE.contains(&tool) {
            return None;
        }
        self.acts.fetch_add(1, Ordering::Relaxed);
        Some(ActGuard(Arc::clone(self)))
    }

    /// Counts a message, and returns how many there were in a row; `None` while somebody is in the
    /// middle of an act.
    pub(crate) fn count(&self) -> Option<u32> {
        let is_quiet = self.acts.load(Ordering::Relaxed) == 0;
        is_quiet.then(|| self.messages.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Drop for ActGuard {
    fn drop(&mut self) {
        self.0.messages.store(0, Ordering::Relaxed);
        self.0.acts.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves FC-03 (part: messages)
    #[test]
    fn an_act_in_progress_suspends_the_row_and_its_end_resets_it() {
        let row = Arc::new(MessageRow::default());
        assert_eq!([row.count(), row.count()], [Some(1), Some(2)]);
        let (first, second) = (row.act("Bash"), row.act("Read"));
        assert_eq!(row.count(), None);
        drop(first);
        assert_eq!(row.count(), None, "another act is in progress");
        drop(second);
        assert_eq!(row.count(), Some(1));
        assert!(IDLE.iter().all(|tool| row.act(tool).is_none()));
        assert_eq!(row.count(), Some(2));
    }
}
