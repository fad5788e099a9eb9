//! Sums and results of a run.

use posse_port::store::Charge;
use posse_protocol::{ContentBlock, Denial, Missed, RawJson, Spent, StopReason, misses};

use crate::govern;

/// Sums and results of a run so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    /// True if it began with a prompt.
    pub(crate) prompted: bool,
    /// Number of model calls.
    pub(crate) turns: u32,
    /// Number of tool calls.
    pub(crate) tool_uses: u32,
    /// Text of the last reply.
    pub(crate) text: String,
    /// Why the last reply ended.
    pub(crate) stop: Option<StopReason>,
    /// What it spent, by model.
    pub(crate) spent: Vec<Spent>,
    /// What it missed in the cache, by reason.
    pub(crate) missed: Vec<Missed>,
    /// Tool calls that were denied.
    pub(crate) denials: Vec<Denial>,
    /// The answer as a value that matches the output schema, if there is one.
    pub(crate) value: Option<RawJson>,
    /// True if the model was asked to correct its answer.
    pub(crate) repaired: bool,
    /// True if the agent was reminded of unfinished tasks.
    pub(crate) reminded: bool,
    /// Number of times that hooks held it back from ending.
    pub(crate) held_back: u32,
}

impl Run {
    /// Returns all tokens, in and out.
    pub(crate) fn tokens(&self) -> u64 {
        let sums = self
            .spent
            .iter()
            .map(|spent| spent.usage.prompt().saturating_add(spent.usage.output));
        sums.fold(0, u64::saturating_add)
    }

    /// Adds charges.
    pub(super) fn charge(&mut self, charges: &[Charge]) {
        govern::add(&mut self.spent, charges);
    }

    /// Adds a cache miss.
    pub(super) fn miss(&mut self, missed: Option<&Missed>) {
        missed
            .into_iter()
            .for_each(|missed| misses::add(&mut self.missed, missed));
    }

    /// Keeps the text and the stop reason of a reply.
    pub(super) fn heard(&mut self, content: &[ContentBlock], stop: Option<&StopReason>) {
        let texts = content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        self.text = texts.collect();
        self.stop = stop.cloned();
    }
}
