//! Checks before every model call: is there a run slot for the agent, and can the call be paid for?
//!
//! `RunSlots` limits how many sub-agents call at once, `CacheWarmup` lets one sibling write
//! what the others read from the cache, and [`Account`] reserves the worst case of a call in every
//! budget above it.

pub mod account;
mod below;
pub mod budget;
mod exceeded;
mod ledger;
pub(crate) mod slots;
pub(crate) mod warmup;

pub use account::{Account, Ask, Reservation};
pub use budget::{Budget, Budgets};
pub use exceeded::{Exceeded, Short, Whose};
pub(crate) use ledger::add;
pub(crate) use slots::{Priority, RunPermit, RunSlots};
pub(crate) use warmup::{CacheWarmup, Ticket, WarmupLead};
