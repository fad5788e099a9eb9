//! An agent that is being taken: if the caller goes away before it has the agent, it is given back.

use posse_port::store::Epoch;
use tokio::sync::oneshot;

use crate::write_outcome::{WriteAnswer, WriteOutcome};

/// Gives an agent back unless the caller gets it.
pub(crate) struct TakeGuard<F: FnMut(Epoch)> {
    answered: oneshot::Receiver<WriteOutcome>,
    /// Set while the agent is held and the caller does not have it yet.
    taken: Option<Epoch>,
    give_back: F,
}

impl<F: FnMut(Epoch)> TakeGuard<F> {
    pub(crate) fn new(answered: oneshot::Receiver<WriteOutcome>, give_back: F) -> Self {
        Self {
            answered,
            taken: None,
            give_back,
        }
    }

    /// Waits for the writer's answer; `None` if the writer has ended.
    pub(crate) async fn answer(&mut self) -> Option<WriteOutcome> {
        let answer = (&mut self.answered).await.ok()?;
        self.taken = answer.as_ref().ok().map(|answer| answer.epoch);
        Some(answer)
    }

    /// Leaves the agent to the caller.
    pub(crate) fn keep(mut self) {
        self.taken = None;
    }
}

impl<F: FnMut(Epoch)> Drop for TakeGuard<F> {
    fn drop(&mut self) {
        // An answer that comes later is refused, and the writer gives the agent back.
        self.answered.close();
        let unread = self.answered.try_recv().ok().and_then(Result::ok);
        let unread = unread.map(|WriteAnswer { epoch, .. }| epoch);
        if let Some(epoch) = self.taken.or(unread) {
            (self.give_back)(epoch);
        }
    }
}
