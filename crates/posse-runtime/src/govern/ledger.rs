//! The ledger of one budget: what is spent, and what is reserved for calls in progress.

use std::time::Duration;

use posse_protocol::{Cost, Spent};

use crate::govern::{Budget, Short};
use posse_port::store::Charge;

/// A budget, with what is spent and what is reserved.
#[derive(Debug, Default)]
pub(super) struct BudgetLedger {
    /// The limits.
    pub(super) budget: Budget,
    /// Spent so far, by model.
    pub(super) spent: Vec<Spent>,
    /// Number of finished calls.
    pub(super) turns: u32,
    /// Reserved for calls in progress.
    pub(super) held: HeldAmount,
}

/// Reserved for calls in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldAmount {
    pub(super) tokens: u64,
    pub(super) cost: Cost,
    pub(super) turns: u32,
}

impl HeldAmount {
    pub(super) fn add(&mut self, more: Self) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost += more.cost;
        self.turns = self.turns.saturating_add(more.turns);
    }

    pub(super) fn subtract(&mut self, less: Self) {
        self.tokens = self.tokens.saturating_sub(less.tokens);
        self.cost = Cost::from_pico_usd(self.cost.pico_usd().saturating_sub(less.cost.pico_usd()));
        self.turns = self.turns.saturating_sub(less.turns);
    }
}

/// What is left for one more call; none is unlimited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remaining {
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<Cost>,
}

impl Remaining {
    /// Returns what is left in both of two ledgers.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.into_iter().chain(other.tokens).min(),
            cost: self.cost.into_iter().chain(other.cost).min(),
        }
    }
}

impl BudgetLedger {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Checks that a call may begin at all, `age` after the budget was given.
    pub(super) fn open(&self, age: Duration) -> Result<(), Short> {
        if let Some(budget) = self.budget.time.filter(|budget| *budget <= age) {
            return Err(Short::Time { budget });
        }
        match self.budget.turns {
            Some(budget) if self.turns.saturating_add(self.held.turns) >= budget => {
                Err(Short::Turns {
                    budget,
                    used: self.turns,
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns what is left beside all reservations, or why there is no room for `tokens` that cost
    /// `cost`. A cost of none is unknown.
    pub(super) fn left(&self, tokens: u64, cost: Option<Cost>) -> Result<Remaining, Short> {
        Ok(Remaining {
            tokens: self.tokens_left(tokens)?,
            cost: self.cost_left(cost)?,
        })
    }

    /// Returns the tokens that are left, or why `need` does not fit.
    fn tokens_left(&self, need: u64) -> Result<Option<u64>, Short> {
        let Some(budget) = self.budget.tokens else {
            return Ok(None);
        };
        let (used, held) = (self.tokens(), self.held.tokens);
        match budget.checked_sub(used.saturating_add(held)) {
            Some(left) if need <= left => Ok(Some(left)),
            _ => Err(Short::Tokens {
                budget,
                used,
                held,
                need,
            }),
        }
    }

    /// Returns the money that is left, or why `need` does not fit.
    fn cost_left(&self, need: Option<Cost>) -> Result<Option<Cost>, Short> {
        let Some(budget) = self.budget.cost else {
            return Ok(None);
        };
        // A call without a price may cost anything, and so may one that was made before.
        let (Some(need), Some(used)) = (need, self.cost()) else {
            return Err(Short::Price { budget });
        };
        let held = self.held.cost;
        match budget
            .pico_usd()
            .checked_sub((used + held).pico_usd())
            .map(Cost::from_pico_usd)
        {
            Some(left) if need <= left => Ok(Some(left)),
            _ => Err(Short::Cost {
                budget,
                used,
                held,
                need,
            }),
        }
    }

    /// Books what a call really used.
    pub(super) fn book(&mut self, charges: &[Charge]) {
        self.turns = self.turns.saturating_add(1);
        add(&mut self.spent, charges);
    }

    /// Books what was used before the agent was revived. Turns of earlier runs do not count.
    pub(super) fn recall(&mut self, used: &[Charge]) {
        add(&mut self.spent, used);
    }

    /// Returns the tokens that are spent.
    fn tokens(&self) -> u64 {
        let each = self
            .spent
            .iter()
            .map(|spent| spent.usage.prompt().saturating_add(spent.usage.output));
        each.fold(0, u64::saturating_add)
    }

    /// Returns what is spent; none if any price is unknown.
    fn cost(&self) -> Option<Cost> {
        self.spent.iter().map(|spent| spent.cost).sum()
    }
}

/// Adds charges to a list of sums by model.
pub(crate) fn add(spent: &mut Vec<Spent>, charges: &[Charge]) {
    for Charge {
        model, usage, cost, ..
    } in charges
    {
        match spent.iter_mut().find(|spent| spent.model == *model) {
            Some(spent) => {
                spent.usage += *usage;
                spent.cost = spent.cost.zip(*cost).map(|(sum, more)| sum + more);
            }
            None => spent.push(Spent {
                model: model.clone(),
                usage: *usage,
                cost: *cost,
            }),
        }
    }
}
