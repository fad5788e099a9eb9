//! The money that all runs of a server may spend together.

use std::cell::Cell;

use posse_protocol::Cost;
use tokio::sync::Notify;

/// What is left of `--max-budget-usd`.
pub(super) struct Allowance {
    /// Not spent, and not promised to a run; `None` if there is no limit.
    free: Cell<Option<Cost>>,
    /// Promised to runs.
    promised: Cell<Cost>,
    changed: Notify,
}

/// Nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget of this server is spent; no more runs are started")]
pub(super) struct AllowanceSpent;

/// What a run may spend. Until it is settled, no other run may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Promise(pub(super) Option<Cost>);

impl Allowance {
    pub(super) fn new(most: Option<Cost>) -> Self {
        Self {
            free: Cell::new(most),
            promised: Cell::new(Cost::ZERO),
            changed: Notify::new(),
        }
    }

    /// Returns what a run may spend: what it asks for, or all that is left. Waits while all that is
    /// left is promised to others.
    pub(super) async fn promise(&self, asked: Option<Cost>) -> Result<Promise, AllowanceSpent> {
        loop {
            let Some(free) = self.free.get() else {
                return Ok(Promise(asked));
            };
            if free > Cost::ZERO {
                let cost = asked.map_or(free, |asked| asked.min(free));
                self.free.set(Some(less(free, cost)));
                self.promised.set(self.promised.get() + cost);
                return Ok(Promise(Some(cost)));
            }
            if self.promised.get() == Cost::ZERO {
                return Err(AllowanceSpent);
            }
            self.changed.notified().await;
        }
    }

    /// Takes back what a run has not spent; nothing, if it is not known what it has spent.
    pub(super) fn settle(&self, promise: Promise, spent: Option<Cost>) {
        if let (Some(free), Promise(Some(promised))) = (self.free.get(), promise) {
            let rest = spent.map_or(Cost::ZERO, |spent| less(promised, spent));
            self.promised.set(less(self.promised.get(), promised));
            self.free.set(Some(free + rest));
            self.changed.notify_waiters();
        }
    }
}

fn less(from: Cost, cost: Cost) -> Cost {
    Cost::from_pico_usd(from.pico_usd().saturating_sub(cost.pico_usd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pico: u64) -> Option<Cost> {
        Some(Cost::from_pico_usd(pico))
    }

    #[tokio::test]
    async fn no_more_is_promised_than_there_is() {
        let allowance = Allowance::new(cost(10));
        let first = allowance.promise(cost(4)).await.unwrap();
        let second = allowance.promise(cost(400)).await.unwrap();
        assert_eq!((&first, &second), (&Promise(cost(4)), &Promise(cost(6))));
        let (third, ()) = tokio::join!(allowance.promise(None), async {
            allowance.settle(first, cost(1));
        });
        assert_eq!(third, Ok(Promise(cost(3))));
        allowance.settle(second, None);
        allowance.settle(third.unwrap(), cost(5));
        assert_eq!(allowance.promise(cost(1)).await, Err(AllowanceSpent));
    }

    #[tokio::test]
    async fn without_a_limit_each_run_has_its_own() {
        let allowance = Allowance::new(None);
        assert_eq!(allowance.promise(None).await, Ok(Promise(None)));
        assert_eq!(allowance.promise(cost(2)).await, Ok(Promise(cost(2))));
    }
}
