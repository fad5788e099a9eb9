//! Messages that a server sends unasked, for those who want them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use posse_port::servers::{PushTaker, ServerPush};
use serde_json::Value;

use crate::answer::clip;

/// The notification that brings one.
pub(super) const METHOD: &str = "notifications/claude/channel";
/// How long a message is, in bytes.
const MOST_TEXT: usize = 64 << 10;
/// How many facts it has, and how long one is.
const MOST_FACTS: usize = 20;
const MOST_FACT: usize = 500;

/// Who takes the messages of a server.
#[derive(Default)]
pub(super) struct PushTakers(Mutex<Vec<Weak<dyn PushTaker>>>);

impl PushTakers {
    /// Hands messages on to one more.
    pub(super) fn add(&self, taker: &Arc<dyn PushTaker>) {
        let mut takers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        takers.retain(|it| it.strong_count() > 0);
        takers.push(Arc::downgrade(taker));
    }

    /// Hands a message on.
    pub(super) fn tell(&self, push: &ServerPush) {
        let takers = {
            let takers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            takers.clone()
        };
        let live = takers.iter().filter_map(Weak::upgrade);
        live.for_each(|taker| taker.take(push.clone()));
    }
}

/// Returns the message in the parameters of a notification; none if there is none.
pub(super) fn read(params: &Value) -> Option<ServerPush> {
    let content = params.get("content")?.as_str()?;
    let facts = params.get("meta").and_then(Value::as_object);
    let fact = |(name, value): (&String, &Value)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fits = !name.is_empty() && name.chars().all(is_name);
        let value = value.as_str().filter(|_| fits)?;
        Some((name.clone(), clip(value, MOST_FACT).to_owned()))
    };
    let facts = facts.into_iter().flatten().filter_map(fact);
    Some(ServerPush {
        content: clip(content, MOST_TEXT).to_owned(),
        facts: facts.take(MOST_FACTS).collect(),
    })
}
