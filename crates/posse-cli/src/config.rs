//! What the environment, settings and flags say, before anything is opened.

pub(crate) mod environment;
pub(crate) mod settings;
pub(crate) mod store;
