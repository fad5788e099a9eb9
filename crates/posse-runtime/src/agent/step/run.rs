//! What a run has come to so far.

use posse_port::store::Charge;
use posse_protocol::{ContentBlock, Denial, Missed, RawJson, Spent, StopReason, misses};

use crate::govern;

/// A run's tally.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    pub(crate) turns: u32,
    pub(crate) tool_uses: u32,
    pub(crate) text: String,
    pub(crate) stop: Option<StopReason>,
    pub(crate) spent: Vec<Spent>,
    /// What was missed in the cache, by reason.
    pub(crate) missed: Vec<Missed>,
    pub(crate) denials: Vec<Denial>,
    /// The answer as a value, if it must be one and is.
    pub(crate) value: Option<RawJson>,
    /// Whether it was asked for once more.
    pub(crate) repaired: bool,
    /// Whether the agent was reminded of tasks that it had not done.
    pub(crate) reminded: bool,
}

impl Run {
    /// All tokens, in and out.
    pub(crate) fn tokens(&self) -> u64 {
        let sums = self
            .spent
            .iter()
            .map(|spent| spent.usage.prompt().saturating_add(spent.usage.output));
        sums.fold(0, u64::saturating_add)
    }

    pub(super) fn charge(&mut self, charges: &[Charge]) {
        govern::add(&mut self.spent, charges);
    }

    pub(super) fn miss(&mut self, missed: Option<&Missed>) {
        missed
            .into_iter()
            .for_each(|missed| misses::add(&mut self.missed, missed));
    }

    pub(super) fn heard(&mut self, content: &[ContentBlock], stop: Option<&StopReason>) {
        let texts = content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        self.text = texts.collect();
        self.stop = stop.cloned();
    }
}
