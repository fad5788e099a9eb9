//! What model calls cost, as a port: prices are data that users change.

use posse_protocol::{Cost, Usage};

/// A price list.
pub trait Prices: Send + Sync {
    /// What `usage` of `model` costs; none when its price is not known.
    fn cost(&self, model: &str, usage: &Usage) -> Option<Cost>;
}
