//! What is known of a run that has not ended.

use posse_protocol::{Delta, EventKind};

/// The run under way, as its events tell it.
#[derive(Debug, Default)]
pub(crate) struct RunSoFar {
    /// The text of the last reply, also while it arrives.
    pub(crate) text: String,
    /// How many replies have begun.
    pub(crate) turns: u32,
}

impl RunSoFar {
    /// Notes an event of the main agent.
    pub(crate) fn event(&mut self, event: &EventKind) {
        match event {
            EventKind::Started => *self = Self::default(),
            EventKind::Delta(Delta::Started { .. }) => {
                self.text.clear();
                self.turns += 1;
            }
            EventKind::Delta(Delta::Text(text)) => self.text.push_str(text),
            // What the attempt has shown is void; another begins.
            EventKind::Retry(_) if !self.text.is_empty() => {
                self.text.clear();
                self.turns = self.turns.saturating_sub(1);
            }
            _ => {}
        }
    }
}
