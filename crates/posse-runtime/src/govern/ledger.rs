//! One budget, and what became of it: spent, or set aside for calls that are under way.

use std::time::Duration;

use posse_protocol::{Cost, Spent};

use crate::govern::{Budget, Short};
use posse_port::store::Charge;

/// A budget with what is spent of it and what is set aside.
#[derive(Debug, Default)]
pub(super) struct BudgetLedger {
    pub(super) budget: Budget,
    pub(super) spent: Vec<Spent>,
    pub(super) turns: u32,
    pub(super) held: HeldAmount,
}

/// What is set aside.
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

/// What there is for one more call. None is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remaining {
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<Cost>,
}

impl Remaining {
    /// What there is in both of two purses.
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

    /// Whether a call may be begun at all, `age` after the budget was given.
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

    /// What is left after all that is set aside; or why there is no room for `tokens` that cost `cost`.
    /// A cost of none is not known.
    pub(super) fn left(&self, tokens: u64, cost: Option<Cost>) -> Result<Remaining, Short> {
        Ok(Remaining {
            tokens: self.tokens_left(tokens)?,
            cost: self.cost_left(cost)?,
        })
    }

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

    fn cost_left(&self, need: Option<Cost>) -> Result<Option<Cost>, Short> {
        let Some(budget) = self.budget.cost else {
            return Ok(None);
        };
        // What has no price may cost anything, and may have.
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

    /// Takes the truth about a call down.
    pub(super) fn book(&mut self, charges: &[Charge]) {
        self.turns = self.turns.saturating_add(1);
        add(&mut self.spent, charges);
    }

    /// Takes down what was used before.
    pub(super) fn recall(&mut self, used: &[Charge]) {
        add(&mut self.spent, used);
    }

    fn tokens(&self) -> u64 {
        let each = self
            .spent
            .iter()
            .map(|spent| spent.usage.prompt().saturating_add(spent.usage.output));
        each.fold(0, u64::saturating_add)
    }

    /// What is spent; none if the price of any of it is not known.
    fn cost(&self) -> Option<Cost> {
        self.spent.iter().map(|spent| spent.cost).sum()
    }
}

/// Adds charges to a tally by model.
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
