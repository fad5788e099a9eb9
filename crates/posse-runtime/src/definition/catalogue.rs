//! Things that files define, types of agents and skills, as they are now: files change while posse runs.

use std::sync::{Arc, PoisonError, RwLock};

use crate::definition::agent_type::Definition;

/// The things. Whoever shares it sees what it becomes.
#[derive(Debug)]
pub struct Catalogue<T = Definition>(RwLock<Listed<T>>);

/// Things, as of one moment.
pub type Listed<T> = Arc<[Arc<T>]>;

/// Types, as of one moment.
pub type Types = Listed<Definition>;

impl<T> Catalogue<T> {
    /// The things as they are now.
    pub fn now(&self) -> Listed<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Others from now on. Agents that live keep what they have; models are told with the next message.
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
