//! What models are told of teams: how one works, who is in it, what is to do, and what members send each
//! other beside words. What another wrote stands in a frame, as everywhere.

mod answer;
mod control;
mod idle;
mod note;
mod rules;
#[cfg(test)]
pub(crate) mod samples;
mod task;

pub use answer::{Raised, Spawned, raised, spawned};
pub(crate) use control::spoken;
pub(crate) use idle::{Idle, idle};
pub use note::Glance;
pub(crate) use note::{note, notes};
pub use rules::{Welcome, rules, welcome};
pub(crate) use task::{assigned, details, numbers, opening, tasks};
pub use task::{claimed, unfinished};
