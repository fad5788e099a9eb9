//! What waits for an agent: prompts before mail, each in order of arrival. Interruptions do not
//! wait and are not here.

use std::collections::VecDeque;

use posse_protocol::{ContentBlock, Mail, PromptChange, QueuedPrompt};

/// Maximum number of prompts that wait for the run before them.
pub(crate) const PROMPTS: usize = 64;
/// Maximum size of the mail in one entry, in bytes; the rest waits for the next.
const SHOWN_BYTES: usize = 512 * 1024;

/// Prompts and mail that wait.
#[derive(Default)]
pub(super) struct Queue {
    prompts: VecDeque<WaitingPrompt>,
    /// Number of the last prompt that waited.
    last: u64,
    /// Mail, which waits in the store too until an entry shows it.
    mail: VecDeque<Mail>,
    /// True if mail waited when the run ended.
    left_mail: bool,
    /// True if the prompts belong to the run that is open, and are shown with its next results.
    with_results: bool,
}

/// A prompt that waits.
struct WaitingPrompt {
    id: u64,
    blocks: Vec<ContentBlock>,
    /// Whether it joins the run that is open; none for what is usual for the agent.
    joins: Option<bool>,
}

/// Returns a prompt as viewers are told of it.
pub(crate) fn queued(id: u64, blocks: &[ContentBlock], joins: bool) -> QueuedPrompt {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let is_image = |block: &&ContentBlock| matches!(block, ContentBlock::Image { .. });
    let images = blocks.iter().filter(is_image).count();
    QueuedPrompt {
        id,
        text: texts.join("\n"),
        images: u32::try_from(images).unwrap_or(u32::MAX),
        joins,
    }
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
            let (id, joins) = (self.next_id(), None);
            self.prompts.push_back(WaitingPrompt { id, blocks, joins });
        }
        room
    }

    /// Returns a number that no prompt has.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns the prompts that wait; those that nobody has decided about join the run if `joins`.
    pub(super) fn queued(&self, joins: bool) -> Vec<QueuedPrompt> {
        let joins = joins || self.with_results;
        let shown = |it: &WaitingPrompt| queued(it.id, &it.blocks, it.joins.unwrap_or(joins));
        self.prompts.iter().map(shown).collect()
    }

    /// Changes a prompt. Returns the change if no such prompt waits.
    pub(super) fn change(&mut self, id: u64, change: PromptChange) -> Result<(), PromptChange> {
        let Some(at) = self.prompts.iter().position(|prompt| prompt.id == id) else {
            return Err(change);
        };
        match change {
            PromptChange::Edit(blocks) => self.prompts[at].blocks = blocks,
            PromptChange::TakeBack => drop(self.prompts.remove(at)),
            PromptChange::Join(joins) => self.prompts[at].joins = Some(joins),
        }
        Ok(())
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
        self.prompts.pop_front().map(|prompt| prompt.blocks)
    }

    /// Makes the prompts part of the run that is open.
    pub(super) fn show_with_results(&mut self) {
        self.with_results = true;
    }

    /// Takes the prompts that are shown with results. Those that nobody has decided about are, if
    /// the agent's prompts join its run.
    pub(super) fn prompts_for_results(&mut self, joins: bool) -> Vec<ContentBlock> {
        let joins = std::mem::take(&mut self.with_results) || joins;
        self.joining(joins)
    }

    /// Takes the prompts that join a run; those that nobody has decided about do if `joins`.
    pub(super) fn joining(&mut self, joins: bool) -> Vec<ContentBlock> {
        let all = std::mem::take(&mut self.prompts).into_iter();
        let (joining, later): (Vec<_>, Vec<_>) =
            all.partition(|prompt| prompt.joins.unwrap_or(joins));
        self.prompts = later.into();
        joining
            .into_iter()
            .flat_map(|prompt| prompt.blocks)
            .collect()
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
