//! Texts about teams: how they work, who is in them, their tasks, and typed messages between
//! members. Someone else's text is in a frame, as everywhere.

mod answer;
mod control;
mod idle;
mod note;
mod rules;
#[cfg(test)]
pub(crate) mod samples;
mod task;

pub(crate) use answer::{Raised, Spawned, raised, spawned};
pub(crate) use control::spoken;
pub(crate) use idle::{Idle, idle};
pub(crate) use note::Glance;
pub(crate) use note::{note, notes};
pub(crate) use rules::{Welcome, rules, welcome};
pub(crate) use task::{assigned, details, numbers, opening, tasks};
pub(crate) use task::{claimed, unfinished};
