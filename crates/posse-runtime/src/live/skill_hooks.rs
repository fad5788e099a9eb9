//! Hooks of the skills that an agent has loaded. They hold until it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::hook::{Hook, HookLayer};

/// Hooks that one agent has besides those of its settings and its type.
#[derive(Debug, Default)]
pub(crate) struct SkillHooks {
    loaded: Mutex<Vec<LoadedHook>>,
    /// Number of changes so far.
    changes: AtomicUsize,
}

#[derive(Debug)]
struct LoadedHook {
    hook: Arc<Hook>,
    /// True if it has run and runs once only.
    spent: bool,
}

impl SkillHooks {
    /// Adds the hooks of a skill, unless they are there.
    pub(crate) fn load(&self, hooks: &[Arc<Hook>]) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        for hook in hooks {
            if !loaded.iter().any(|known| known.hook == *hook) {
                let (hook, spent) = (Arc::clone(hook), false);
                loaded.push(LoadedHook { hook, spent });
                self.changes.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Notes that hooks run. Those that run once only are not returned any more.
    pub(crate) fn ran(&self, hooks: &[Arc<Hook>]) {
        let is_single = |hook: &&Arc<Hook>| hook.once && hook.origin.layer == HookLayer::Skill;
        for hook in hooks.iter().filter(is_single) {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            // A sub-agent has its `Stop` hooks as `SubagentStop`.
            let is_it = |it: &Hook| it.once && it.origin == hook.origin && it.action == hook.action;
            for known in loaded.iter_mut().filter(|known| is_it(&known.hook)) {
                known.spent = true;
                self.changes.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> usize {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns those that hold now.
    pub(crate) fn now(&self) -> Vec<Arc<Hook>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let open = loaded.iter().filter(|known| !known.spent);
        open.map(|known| Arc::clone(&known.hook)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::HookEvent;
    use crate::hook::tests::hook;

    #[test]
    fn a_hook_of_a_skill_is_there_once_and_runs_once_if_it_says_so() {
        let skill = |once| {
            let mut hook = hook(HookEvent::PreToolUse);
            hook.origin.layer = HookLayer::Skill;
            Arc::new(Hook { once, ..hook })
        };
        let hooks = SkillHooks::default();
        let (always, once) = (skill(false), skill(true));
        hooks.load(&[Arc::clone(&always), Arc::clone(&once)]);
        hooks.load(&[Arc::clone(&once)]);
        assert_eq!((hooks.now().len(), hooks.changes()), (2, 2));
        hooks.ran(&[Arc::clone(&always)]);
        assert_eq!(hooks.changes(), 2);
        hooks.ran(&[Arc::clone(&once)]);
        assert_eq!((hooks.now(), hooks.changes()), (vec![always], 3));
        // Loaded again, it has run all the same.
        hooks.load(&[once]);
        assert_eq!(hooks.now().len(), 1);
    }
}
