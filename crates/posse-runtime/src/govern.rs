//! What stands before every model call: is there a place for whoever makes it, and can it be paid for?

pub mod account;
mod below;
pub mod budget;
mod exceeded;
pub mod places;
mod purse;
pub mod warmth;

pub use account::{Account, Ask, Reservation};
pub use budget::{Budget, Budgets};
pub use exceeded::{Exceeded, Short, Whose};
pub use places::{Coming, Place, Places};
pub(crate) use purse::add;
pub use warmth::{Entry, Lead, Warmth};
