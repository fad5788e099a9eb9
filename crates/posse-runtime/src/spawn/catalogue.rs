//! The types of agents that can be started, as they are now: files that define them change while posse runs.

use std::sync::{Arc, PoisonError, RwLock};

use super::Definition;

/// The types, by name. Whoever shares it sees what it becomes.
#[derive(Debug, Default)]
pub struct Catalogue(RwLock<Arc<[Definition]>>);

impl Catalogue {
    /// The types as they are now.
    pub fn now(&self) -> Arc<[Definition]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other types from now on. Agents that live keep the one they have; models are told with the next
    /// message.
    pub fn replace(&self, types: Vec<Definition>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = types.into();
    }
}

impl FromIterator<Definition> for Catalogue {
    fn from_iter<I: IntoIterator<Item = Definition>>(types: I) -> Self {
        Self(RwLock::new(types.into_iter().collect()))
    }
}

impl From<Vec<Definition>> for Catalogue {
    fn from(types: Vec<Definition>) -> Self {
        Self(RwLock::new(types.into()))
    }
}
