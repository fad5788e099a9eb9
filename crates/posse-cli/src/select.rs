//! Finds the session, team, member or recipient that a person means.

pub(crate) mod mail;
pub(crate) mod members;
pub(crate) mod questions;
pub(crate) mod recipients;
pub(crate) mod sessions;
pub(crate) mod tasks;
pub(crate) mod team_choice;
pub(crate) mod teams;
