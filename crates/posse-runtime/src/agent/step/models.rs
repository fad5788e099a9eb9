//! What is remembered of an agent's models, besides the one that it was born with.

use posse_protocol::{Message, ReplyFacts, StopReason, Usage};

/// A model that an agent gets, as its transcript tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewModel {
    /// The provider's ID of it.
    pub(crate) model: String,
    /// What the entry says to people.
    pub(crate) text: String,
    /// True if the agent was born with it, so that no entry is needed to know it.
    pub(crate) is_first: bool,
}

impl NewModel {
    /// Returns what the entry about it says, and its facts.
    pub(super) fn entry(&self) -> (Message, ReplyFacts) {
        let facts = ReplyFacts {
            id: String::new(),
            model: self.model.clone(),
            stop: Some(StopReason::EndTurn),
            usage: Usage::default(),
            missed: None,
        };
        (Message::user(&self.text), facts)
    }
}

/// Models of an agent.
#[derive(Default)]
pub(super) struct Models {
    /// The one for the next request.
    pub(super) wanted: Option<NewModel>,
    /// The one that an entry has brought.
    pub(super) current: Option<NewModel>,
}

impl Models {
    /// Takes the model whose entry is due before the next request.
    pub(super) fn due(&mut self) -> Option<NewModel> {
        let due = self.wanted.take()?;
        self.current = Some(due.clone()).filter(|model| !model.is_first);
        Some(due)
    }

    /// Makes the entry about the current model due again.
    pub(super) fn repeat(&mut self) {
        self.wanted = self.wanted.take().or_else(|| self.current.clone());
    }
}
