//! The hooks that hold at a moment, by event.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_port::tool::{Intent, Workspace};

use crate::hook::{Condition, Hook, HookAction, HookEvent, HookLayer, HookPolicy, HookState};

/// Number of times in a row that Stop hooks hold an agent back, if settings say nothing.
const STOP_LIMIT: u32 = 8;

/// Hooks, each event's in the order in which they count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookSet {
    by_event: BTreeMap<HookEvent, Vec<Arc<Hook>>>,
    /// What all of them are held to, and those that are added later.
    policy: HookPolicy,
}

/// The hooks that an event has.
#[derive(Clone, Debug, Default)]
pub struct Matched {
    /// Those that run, in the order in which they count.
    pub hooks: Vec<Arc<Hook>>,
    /// Why a person is asked about the call, if one of them may not run.
    pub waits: Option<String>,
}

impl Matched {
    /// Returns true if the event has none.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.waits.is_none()
    }
}

/// A tool call that hooks are compared with.
#[derive(Clone, Copy)]
pub struct MatchedCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What it means to do.
    pub intent: &'a Intent,
    /// Where.
    pub workspace: &'a Workspace,
}

impl HookSet {
    /// Returns a set of these hooks. Those of settings that are declared twice are there once.
    pub fn new(hooks: impl IntoIterator<Item = Arc<Hook>>) -> Self {
        let mut all: Vec<Arc<Hook>> = hooks.into_iter().collect();
        all.sort_by_key(|hook| hook.origin.layer);
        let mut set = Self::default();
        for hook in all {
            let of_event = set.by_event.entry(hook.event).or_default();
            let is_settings = |hook: &Hook| hook.origin.layer <= HookLayer::Flag;
            let is_known = |known: &Arc<Hook>| {
                is_settings(known) && is_settings(&hook) && known.is_same(&hook)
            };
            // Of two equal ones, the one that may run counts.
            match of_event.iter().position(is_known) {
                Some(at) if of_event[at].state != HookState::Active => of_event[at] = hook,
                Some(at) => of_event[at] = Hook::stricter(&of_event[at], &hook),
                None => of_event.push(hook),
            }
        }
        set
    }

    /// Returns the hooks of both, held to the policy of this set.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        Self::new(self.all().chain(others.all()).cloned()).under(self.policy.clone())
    }

    /// Returns the hooks that a policy admits, and that policy.
    #[must_use]
    pub fn under(mut self, policy: HookPolicy) -> Self {
        self.by_event.retain(|_, hooks| {
            *hooks = hooks.iter().filter_map(|it| policy.admit(it)).collect();
            !hooks.is_empty()
        });
        Self { policy, ..self }
    }

    /// Returns the number of times in a row that Stop hooks may hold an agent back.
    pub fn stop_limit(&self) -> u32 {
        self.policy.stop_limit.unwrap_or(STOP_LIMIT)
    }

    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Hook>> {
        self.by_event.values().flatten()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_event.is_empty()
    }

    /// Returns true if the event has any hooks.
    pub fn has(&self, event: HookEvent) -> bool {
        self.by_event.contains_key(&event)
    }

    /// Returns the hooks for an event. `name` is what matchers are compared with.
    pub fn matching(&self, event: HookEvent, name: &str) -> Matched {
        self.select(event, |hook| {
            hook.matcher.matches(name) && hook.condition == Condition::None
        })
    }

    /// Returns the hooks for an event of a call.
    pub fn matching_call(&self, event: HookEvent, call: MatchedCall<'_>) -> Matched {
        self.select(event, |hook| {
            hook.matcher.matches(call.tool)
                && match &hook.condition {
                    Condition::None => true,
                    Condition::Calls(pattern) => {
                        pattern.matches(call.tool, call.intent, call.workspace)
                    }
                    Condition::Never => false,
                }
        })
    }

    fn select(&self, event: HookEvent, is_meant: impl Fn(&Hook) -> bool) -> Matched {
        let mut matched = Matched::default();
        let hooks = self.by_event.get(&event).into_iter().flatten();
        for hook in hooks.filter(|hook| is_meant(hook)) {
            match &hook.state {
                HookState::Active if runs(hook) => matched.hooks.push(Arc::clone(hook)),
                HookState::Active => {}
                HookState::Waits { why } if event.guards() => {
                    matched.waits.get_or_insert_with(|| why.clone());
                }
                HookState::Waits { .. } => {}
            }
        }
        matched
    }
}

/// Returns true if something follows from the hook: one that cannot run was reported before, and
/// only refuses if it must.
fn runs(hook: &Hook) -> bool {
    !matches!(hook.action, HookAction::Unsupported { .. }) || hook.blocks_on_failure()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::OnFailure;
    use crate::hook::tests::hook;

    #[test]
    fn of_two_that_are_the_same_the_stricter_one_counts() {
        let first = hook(HookEvent::PreToolUse);
        let mut second = first.clone();
        second.origin.layer = HookLayer::Flag;
        second.on_failure = OnFailure::Block;
        let set = HookSet::new([first, second].map(Arc::new));
        let all: Vec<_> = set.all().collect();
        assert_eq!(all.len(), 1);
        assert!(all[0].blocks_on_failure());
        assert_eq!(all[0].origin.layer, HookLayer::User);
    }
}
