//! The types of agents that can be started, as they are now: files that define them change while posse runs.

use std::sync::{Arc, PoisonError, RwLock};

use super::Definition;

/// The types. Whoever shares it sees what it becomes.
#[derive(Debug, Default)]
pub struct Catalogue(RwLock<Types>);

/// Types, as of one moment.
pub type Types = Arc<[Arc<Definition>]>;

impl Catalogue {
    /// The types as they are now.
    pub fn now(&self) -> Types {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other types from now on. Agents that live keep what they have; models are told with the next
    /// message.
    pub fn replace(&self, types: Vec<Definition>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = types.into_iter().map(Arc::new).collect();
    }
}

impl FromIterator<Definition> for Catalogue {
    fn from_iter<I: IntoIterator<Item = Definition>>(types: I) -> Self {
        Self(RwLock::new(types.into_iter().map(Arc::new).collect()))
    }
}

impl From<Vec<Definition>> for Catalogue {
    fn from(types: Vec<Definition>) -> Self {
        types.into_iter().collect()
    }
}
