//! What is remembered between compactions.

use std::sync::Arc;

use posse_protocol::{ContentBlock, EntryKind, Message};

use crate::agent::step::{CompactionRequest, Draft};
use crate::prompt;

/// What stands before words that are repeated.
const GO_ON: &str =
    "Your latest instructions, word for word; continue from where the summary says you are:";
/// So much of what was said last is kept word for word, in bytes.
const SAID_BYTES: usize = 256 * 1024;

/// What is to be known about compactions.
#[derive(Default)]
pub(super) struct Compaction {
    /// One is wanted before the next call.
    pub(super) wanted: Option<CompactionRequest>,
    /// One is under way that no run waits for.
    pub(super) alone: bool,
    /// The model could not take the history, and has not answered since.
    pub(super) overfull: bool,
    /// True if the history begins with another agent's.
    pub(super) inherits: bool,
    /// What the run was begun with.
    pub(super) asked: Option<Arc<Message>>,
    /// What the model was told since it last answered.
    pub(super) told: Vec<Arc<Message>>,
}

impl Compaction {
    /// How the history is to be compacted before the next call, if it is.
    pub(super) fn due(&mut self) -> Option<CompactionRequest> {
        self.wanted.take()
    }

    /// A run begins with what was told last, if anything was.
    pub(super) fn begun(&mut self, last: Option<&Draft>) {
        self.asked = last.map(|draft| Arc::clone(&draft.message));
    }

    /// The run is over. What nobody has answered is not forgotten.
    pub(super) fn over(&mut self, unanswered: bool) {
        (self.alone, self.overfull) = (false, false);
        if !unanswered {
            self.asked = None;
        }
    }

    /// The model is told something, or has answered.
    pub(super) fn added(&mut self, kind: EntryKind, message: &Arc<Message>) {
        match kind {
            EntryKind::Prompt | EntryKind::Results => self.told.push(Arc::clone(message)),
            EntryKind::Reply | EntryKind::Compaction => self.told.clear(),
        }
    }

    /// The model has answered what it was sent.
    pub(super) fn answered(&mut self) {
        self.overfull = false;
    }

    /// What the run was begun with, and what came since the last answer, word for word: what tools answered
    /// is in the summary, but for that it is too much.
    pub(super) fn said(&self) -> Vec<ContentBlock> {
        let told = self
            .told
            .iter()
            .filter(|told| !self.asked.as_ref().is_some_and(|it| Arc::ptr_eq(it, told)));
        let mut left = SAID_BYTES;
        let mut said = Vec::new();
        for block in self
            .asked
            .iter()
            .chain(told)
            .flat_map(|message| &message.content)
        {
            let (block, bytes) = match block {
                ContentBlock::Text { text } => {
                    let text = prompt::verbatim(text);
                    let bytes = text.len();
                    (ContentBlock::text(text), bytes)
                }
                ContentBlock::Image { data, .. } => (block.clone(), data.len()),
                _ => continue,
            };
            if bytes <= left {
                left -= bytes;
                said.push(block);
            }
        }
        if !said.is_empty() {
            said.insert(0, ContentBlock::text(GO_ON));
        }
        said
    }
}
