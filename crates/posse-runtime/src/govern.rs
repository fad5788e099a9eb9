//! What stands before every model call: is there a place for whoever makes it, and can it be paid for?

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
