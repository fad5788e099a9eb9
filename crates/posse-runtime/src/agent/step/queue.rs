//! What waits for an agent: a person's words before mail, each in the order of arrival. Interrupts wait
//! for nothing and are not here.

use std::collections::VecDeque;

use posse_protocol::{ContentBlock, Mail};

/// So many prompts may wait for the run before them.
pub(crate) const PROMPTS: usize = 64;
/// So many bytes of mail go into one entry; more waits for the next.
const SHOWN_BYTES: usize = 512 * 1024;

/// What waits.
#[derive(Default)]
pub(super) struct Queue {
    prompts: VecDeque<Vec<ContentBlock>>,
    /// Waits in the store too, until an entry shows it.
    mail: VecDeque<Mail>,
    /// True if mail waited when the run ended.
    left_mail: bool,
}

impl Queue {
    pub(super) fn has_mail(&self) -> bool {
        !self.mail.is_empty()
    }

    pub(super) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Takes words; false if too many wait.
    pub(super) fn prompt(&mut self, blocks: Vec<ContentBlock>) -> bool {
        let room = self.prompts.len() < PROMPTS;
        if room {
            self.prompts.push_back(blocks);
        }
        room
    }

    pub(super) fn post(&mut self, mail: Vec<Mail>) {
        let last = self.mail.back().map_or(0, |mail| mail.number);
        self.mail
            .extend(mail.into_iter().filter(|mail| mail.number > last));
    }

    /// Forgets mail that something else has shown.
    pub(super) fn shown(&mut self, numbers: &[u64]) {
        self.mail.retain(|mail| !numbers.contains(&mail.number));
    }

    /// The words whose turn it is.
    pub(super) fn next_prompt(&mut self) -> Option<Vec<ContentBlock>> {
        self.prompts.pop_front()
    }

    /// All words that wait.
    pub(super) fn all_prompts(&mut self) -> Vec<ContentBlock> {
        self.prompts.drain(..).flatten().collect()
    }

    /// The mail that goes into the next entry.
    pub(super) fn next_mail(&mut self) -> Vec<Mail> {
        let mut bytes = 0;
        let fits = |mail: &&Mail| {
            bytes += mail.summary.len() + mail.body.len();
            bytes <= SHOWN_BYTES
        };
        let count = self
            .mail
            .iter()
            .take_while(fits)
            .count()
            .max(1)
            .min(self.mail.len());
        self.mail.drain(..count).collect()
    }

    /// The run is over; whatever comes of the mail comes of another one.
    pub(super) fn leave(&mut self) {
        self.left_mail = self.has_mail();
        self.clear();
    }

    /// Returns true if mail waited when the run ended.
    pub(super) fn has_left_mail(&self) -> bool {
        self.left_mail
    }

    /// Nothing new will be begun. Mail waits on in the store.
    pub(super) fn clear(&mut self) {
        self.prompts.clear();
        self.mail.clear();
    }
}
