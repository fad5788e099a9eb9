//! What a model knows of the types of agents that it can start, and how it hears of others.

use std::sync::Arc;

use super::Actor;
use crate::spawn::catalogue::Types;
use crate::spawn::tool::{fingerprint, startable};
use crate::spawn::{route, words};

/// What the model knows.
#[derive(Default)]
pub(in crate::agent) struct KnownTypes {
    /// A fingerprint of what it was told last; none if it cannot start any, or nobody remembers.
    pub(in crate::agent) told: Option<u64>,
    /// What was looked at last.
    looked: Option<Types>,
}

impl KnownTypes {
    pub(in crate::agent) fn told(told: Option<u64>) -> Self {
        Self { told, looked: None }
    }
}

impl Actor {
    /// Looks at the types as they are now. Others than the model knows are told with the next entry: what
    /// was sent before does not change.
    pub(super) fn look_at_types(&mut self) {
        let now = self.tree.setup.spawning.types.now();
        if self.types.looked.as_ref().is_some_and(|looked| Arc::ptr_eq(looked, &now)) {
            return;
        }
        self.types.looked = Some(now);
        let types = startable(&self.tree.setup);
        let print = fingerprint(&self.setup.tools, &types).filter(|print| Some(*print) != self.types.told);
        let news = print.map(|print| (print, words::types(&route::listing(&types))));
        self.machine.offer_types(news);
    }
}
