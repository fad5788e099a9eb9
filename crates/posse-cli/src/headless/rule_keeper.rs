//! Writes rules that are kept for later sessions, beside the event loop: a lock or a slow disk holds
//! up nothing else.

use std::collections::VecDeque;

use posse_port::in_a_line;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::config::kept_rules::{self, KeepError, KeptRules, NewRules};
use crate::config::search_paths::SearchPaths;

/// Keeps rules, one list after the other.
pub(crate) struct RuleKeeper {
    places: SearchPaths,
    waiting: VecDeque<NewRules>,
    /// The list that is being written.
    writing: Option<JoinHandle<String>>,
}

impl RuleKeeper {
    pub(crate) fn new(places: SearchPaths) -> Self {
        Self {
            places,
            waiting: VecDeque::new(),
            writing: None,
        }
    }

    /// Adds rules to those that are to be kept.
    pub(crate) fn add(&mut self, new: Vec<NewRules>) {
        self.waiting.extend(new);
    }

    /// Returns true if something is not written yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.writing.is_some() || !self.waiting.is_empty()
    }

    /// Writes the next list, and returns what is said about it; waits for ever if there is none.
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> String {
        if self.writing.is_none()
            && let Some(new) = self.waiting.pop_front()
        {
            let places = self.places.clone();
            self.writing = Some(spawn_blocking(move || kept(&places, &new)));
        }
        let Some(writing) = &mut self.writing else {
            return std::future::pending().await;
        };
        let told = writing.await;
        self.writing = None;
        told.unwrap_or_else(|error| format!("rules were not kept: {error}"))
    }
}

/// Keeps rules for later sessions, and returns what is said about it.
pub(crate) fn kept(places: &SearchPaths, new: &NewRules) -> String {
    match kept_rules::keep(places, new) {
        Ok(KeptRules { path, rules }) => {
            let (rules, path) = (rules.join(", "), path.display());
            format!("{}: {rules} is kept in {path}", new.list)
        }
        Err(error @ KeepError::NoRule(_)) => format!("not kept: {}", in_a_line(&error)),
        Err(error) => {
            let (rules, why) = (new.rules.join(", "), in_a_line(&error));
            format!("{}: {rules} holds in this session only: {why}", new.list)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::config::kept_rules::RulePlace;
    use crate::config::settings::tests::Disk;

    // proves FC-12
    #[tokio::test]
    async fn a_lock_holds_up_nothing_but_the_rule() {
        let disk = Disk::new();
        let lock = File::create(disk.path("posse/rules.lock")).unwrap();
        lock.lock().unwrap();
        let mut keeper = RuleKeeper::new(disk.places.clone());
        keeper.add(vec![NewRules {
            place: RulePlace::User,
            list: "allow".into(),
            rules: vec!["Glob".into()],
        }]);
        tokio::select! {
            biased;
            note = keeper.next() => panic!("{note}"),
            () = tokio::task::yield_now() => {}
        }
        assert!(keeper.is_busy());
        drop(lock);
        let note = keeper.next().await;
        assert!(note.starts_with("allow: Glob is kept in "), "{note}");
        assert!(!keeper.is_busy());
    }
}
