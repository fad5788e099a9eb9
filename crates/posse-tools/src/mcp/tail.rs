//! The end of what a server has said beside its messages: errors, log lines, lines that are no message.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Number of bytes that are kept.
const KEPT: usize = 4 << 10;

/// The last part of a log.
#[derive(Debug, Default)]
pub(super) struct LogTail(Mutex<VecDeque<u8>>);

impl LogTail {
    /// Adds a piece.
    pub(super) fn add(&self, piece: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[piece.len().saturating_sub(KEPT)..]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }

    /// Adds a line that is not part of its error output.
    pub(super) fn note(&self, line: &str) {
        self.add(format!("[{line}]\n").as_bytes());
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Returns what is kept, as text. A character that was cut in half is dropped.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        text.trim_start_matches('\u{fffd}').trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_kept() {
        let tail = LogTail::default();
        assert_eq!(tail.text(), "");
        tail.add(b"first\n");
        tail.note("a line");
        assert_eq!(tail.text(), "first\n[a line]");
        for _ in 0..KEPT {
            tail.add("äb".as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= KEPT && text.len() > KEPT - 4);
        assert!(!text.contains('\u{fffd}'));
        tail.clear();
        assert_eq!(tail.text(), "");
    }
}
