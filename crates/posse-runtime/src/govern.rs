//! Checks before every model call: is there a run slot for the agent, and can the call be paid for?

pub mod account;
mod below;
pub mod budget;
mod exceeded;
mod ledger;
pub mod slots;
pub mod warmup;

pub use account::{Account, Ask, Reservation};
pub use budget::{Budget, Budgets};
pub use exceeded::{Exceeded, Short, Whose};
pub(crate) use ledger::add;
pub use slots::{Priority, RunPermit, RunSlots};
pub use warmup::{CacheWarmup, Ticket, WarmupLead};
