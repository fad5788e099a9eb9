//! The price of model calls as a port: prices are data that users change.

use posse_protocol::{Cost, Usage};

/// A price list.
pub trait Prices: Send + Sync {
    /// Returns the cost of `usage` of `model`; `None` if its price is unknown.
    fn cost(&self, model: &str, usage: &Usage) -> Option<Cost>;
}

/// Knows no price: budgets in dollars cannot be enforced, those in tokens, turns and time can.
#[derive(Clone, Copy, Debug)]
pub struct NoPrices;

impl Prices for NoPrices {
    fn cost(&self, _model: &str, _usage: &Usage) -> Option<Cost> {
        None
    }
}
