//! Agent types and skills as they are now: their files change while posse runs.

use std::sync::{Arc, PoisonError, RwLock};

use crate::definition::agent_type::Definition;

/// Definitions that can be replaced. Everyone who shares it sees the change.
#[derive(Debug)]
pub struct Catalogue<T = Definition>(RwLock<Listed<T>>);

/// Definitions as of one moment.
pub type Listed<T> = Arc<[Arc<T>]>;

/// Agent types as of one moment.
pub type Types = Listed<Definition>;

impl<T> Catalogue<T> {
    /// Returns the current definitions.
    pub fn now(&self) -> Listed<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the definitions. Live agents keep what they have; models are told with the next
    /// message.
    pub fn replace(&self, things: Vec<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) =
            things.into_iter().map(Arc::new).collect();
    }
}

impl<T> Default for Catalogue<T> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<T> FromIterator<T> for Catalogue<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        Self(RwLock::new(things.into_iter().map(Arc::new).collect()))
    }
}

impl<T> From<Vec<T>> for Catalogue<T> {
    fn from(things: Vec<T>) -> Self {
        things.into_iter().collect()
    }
}
