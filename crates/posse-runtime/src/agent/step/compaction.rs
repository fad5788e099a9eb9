//! What is remembered for the next compaction.

use std::sync::Arc;

use posse_protocol::{ContentBlock, EntryKind, Message};

use crate::agent::step::{CompactionRequest, Draft};
use crate::prompt;

/// Text before instructions that are repeated.
const GO_ON: &str =
    "Your latest instructions, word for word; continue from where the summary says you are:";
/// Maximum size of the latest instructions that are kept verbatim, in bytes.
const SAID_BYTES: usize = 256 * 1024;

/// State of compactions.
#[derive(Default)]
pub(super) struct Compaction {
    /// A compaction to make before the next call.
    pub(super) wanted: Option<CompactionRequest>,
    /// True if the compaction in progress is a run of its own.
    pub(super) alone: bool,
    /// True if the history was too large for the model, which has not answered since.
    pub(super) overfull: bool,
    /// True if the history begins with another agent's.
    pub(super) inherits: bool,
    /// Message that began the run.
    pub(super) asked: Option<Arc<Message>>,
    /// Messages since the model's last reply.
    pub(super) told: Vec<Arc<Message>>,
}

impl Compaction {
    /// Takes the compaction that is due before the next call.
    pub(super) fn due(&mut self) -> Option<CompactionRequest> {
        self.wanted.take()
    }

    /// Notes the message that begins a run.
    pub(super) fn begun(&mut self, last: Option<&Draft>) {
        self.asked = last.map(|draft| Arc::clone(&draft.message));
    }

    /// Notes the end of the run. A message without an answer is kept.
    pub(super) fn over(&mut self, unanswered: bool) {
        (self.alone, self.overfull) = (false, false);
        if !unanswered {
            self.asked = None;
        }
    }

    /// Notes a new entry.
    pub(super) fn added(&mut self, kind: EntryKind, message: &Arc<Message>) {
        match kind {
            EntryKind::Prompt | EntryKind::Results => self.told.push(Arc::clone(message)),
            EntryKind::Reply | EntryKind::Compaction => self.told.clear(),
            EntryKind::Model => {}
        }
    }

    /// Notes that the model has answered.
    pub(super) fn answered(&mut self) {
        self.overfull = false;
    }

    /// Returns the message that began the run and those since the last reply, verbatim. Tool
    /// results are left out: they are too large, and the summary has what matters.
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
