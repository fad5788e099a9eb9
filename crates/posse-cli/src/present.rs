//! Rows, JSON objects and phrases for stored things, shared by commands and front ends.

pub(crate) mod agents;
pub(crate) mod cache_misses;
pub(crate) mod costs;
pub(crate) mod definitions;
pub(crate) mod entries;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod mail;
pub(crate) mod model;
pub(crate) mod permissions;
pub(crate) mod question;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod tasks;
pub(crate) mod trust;
pub(crate) mod usage;
