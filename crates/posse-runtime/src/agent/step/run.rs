//! What a run has come to so far.

use posse_protocol::{ContentBlock, Cost, Denial, Spent, StopReason};

use crate::port::store::Charge;

/// A run's tally.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    pub(crate) turns: u32,
    pub(crate) text: String,
    pub(crate) stop: Option<StopReason>,
    pub(crate) spent: Vec<Spent>,
    pub(crate) denials: Vec<Denial>,
}

impl Run {
    /// What it has cost; none if something has no price.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.spent.iter().map(|spent| spent.cost).sum()
    }

    pub(super) fn charge(&mut self, charges: &[Charge]) {
        for Charge { model, usage, cost } in charges {
            match self.spent.iter_mut().find(|spent| spent.model == *model) {
                Some(spent) => {
                    spent.usage += *usage;
                    spent.cost = spent.cost.zip(*cost).map(|(sum, more)| sum + more);
                }
                None => self.spent.push(Spent { model: model.clone(), usage: *usage, cost: *cost }),
            }
        }
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
