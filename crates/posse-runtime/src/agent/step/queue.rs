//! What waits for an agent: prompts before mail, each in order of arrival. Interruptions do not
//! wait and are not here.

use std::collections::VecDeque;

use posse_protocol::{ContentBlock, Mail};

/// Maximum number of prompts that wait for the run before them.
pub(crate) const PROMPTS: usize = 64;
/// Maximum size of the mail in one entry, in bytes; the rest waits for the next.
const SHOWN_BYTES: usize = 512 * 1024;

/// Prompts and mail that wait.
#[derive(Default)]
pub(super) struct Queue {
    prompts: VecDeque<Vec<ContentBlock>>,
    /// Mail, which waits in the store too until an entry shows it.
    mail: VecDeque<Mail>,
    /// True if mail waited when the run ended.
    left_mail: bool,
    /// True if the prompts belong to the run that is open, and are shown with its next results.
    with_results: bool,
}

impl Queue {
    pub(super) fn has_mail(&self) -> bool {
        !self.mail.is_empty()
    }

    pub(super) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Adds a prompt. Returns false if too many wait.
    pub(super) fn prompt(&mut self, blocks: Vec<ContentBlock>) -> bool {
        let room = self.prompts.len() < PROMPTS;
        if room {
            self.prompts.push_back(blocks);
        }
        room
    }

    /// Adds mail. Mail that is queued already is ignored: it may be read twice.
    pub(super) fn post(&mut self, mail: Vec<Mail>) {
        let last = self.mail.back().map_or(0, |mail| mail.number);
        self.mail
            .extend(mail.into_iter().filter(|mail| mail.number > last));
    }

    /// Removes mail that a call has shown.
    pub(super) fn shown(&mut self, numbers: &[u64]) {
        self.mail.retain(|mail| !numbers.contains(&mail.number));
    }

    /// Takes the next prompt.
    pub(super) fn next_prompt(&mut self) -> Option<Vec<ContentBlock>> {
        self.prompts.pop_front()
    }

    /// Makes the prompts part of the run that is open.
    pub(super) fn show_with_results(&mut self) {
        self.with_results = true;
    }

    /// Takes the prompts that are shown with results: all of an agent whose prompts join its run.
    pub(super) fn prompts_for_results(&mut self, joins: bool) -> Vec<ContentBlock> {
        match std::mem::take(&mut self.with_results) || joins {
            true => self.all_prompts(),
            false => Vec::new(),
        }
    }

    /// Takes all prompts.
    pub(super) fn all_prompts(&mut self) -> Vec<ContentBlock> {
        self.prompts.drain(..).flatten().collect()
    }

    /// Takes the mail for the next entry.
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
            // At least one, however large: otherwise it would never be shown.
            .max(1)
            .min(self.mail.len());
        self.mail.drain(..count).collect()
    }

    /// Ends the run: mail that waits begins another one.
    pub(super) fn leave(&mut self) {
        self.left_mail = self.has_mail();
        self.clear();
    }

    /// Returns true if mail waited when the run ended.
    pub(super) fn has_left_mail(&self) -> bool {
        self.left_mail
    }

    /// Drops everything that waits. Mail stays in the store.
    pub(super) fn clear(&mut self) {
        self.prompts.clear();
        self.mail.clear();
    }
}
