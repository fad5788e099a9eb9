//! What the administrator and the user allow of hooks, whoever declares them.

use std::sync::Arc;

use crate::hook::{Hook, HookAction, HookLayer};

/// What hooks are held to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookPolicy {
    /// Whose hooks run.
    pub scope: HookScope,
    /// Addresses that hooks may post to, in which `*` stands for any text; none for all.
    pub urls: Option<Vec<String>>,
    /// Variables that headers may name; none for all.
    pub variables: Option<Vec<String>>,
    /// Number of times in a row that Stop hooks may hold an agent back; none for what is usual.
    pub stop_limit: Option<u32>,
}

/// Whose hooks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookScope {
    /// Everyone's.
    #[default]
    All,
    /// Those of the administrator, and of the program that drives posse.
    Managed,
    /// Nobody's.
    Nothing,
}

impl HookPolicy {
    /// Returns the hook as far as it is allowed. One with an address that is not allowed stays,
    /// since it may have to refuse.
    pub(super) fn admit(&self, hook: &Arc<Hook>) -> Option<Arc<Hook>> {
        let is_covered = match self.scope {
            HookScope::All => true,
            HookScope::Managed => {
                matches!(hook.origin.layer, HookLayer::Managed | HookLayer::Program)
            }
            HookScope::Nothing => false,
        };
        let action = is_covered.then(|| self.allowed(&hook.action))?;
        Some(match action {
            None => Arc::clone(hook),
            Some(action) => Arc::new(Hook {
                action,
                ..Hook::clone(hook)
            }),
        })
    }

    /// Returns what is left of an action; none if all of it is allowed.
    fn allowed(&self, action: &HookAction) -> Option<HookAction> {
        let HookAction::Http {
            url,
            headers,
            variables,
        } = action
        else {
            return None;
        };
        let is_listed = |urls: &Vec<String>| urls.iter().any(|pattern| fits(url, pattern));
        if !self.urls.as_ref().is_none_or(is_listed) {
            return Some(HookAction::Unsupported {
                kind: "http".to_owned(),
                why: "the administrator does not allow its address",
            });
        }
        let listed = self.variables.as_ref()?;
        let (url, headers) = (url.clone(), headers.clone());
        let variables = variables.iter().filter(|name| listed.contains(name));
        Some(HookAction::Http {
            url,
            headers,
            variables: variables.cloned().collect(),
        })
    }
}

/// Returns true if a text fits a pattern in which `*` stands for any text.
fn fits(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return text == pattern;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::tests::hook;
    use crate::hook::{HookEvent, HookSet};

    fn of(layer: HookLayer) -> Arc<Hook> {
        let mut hook = hook(HookEvent::PreToolUse);
        hook.origin.layer = layer;
        Arc::new(hook)
    }

    fn layers(set: &HookSet) -> Vec<HookLayer> {
        set.all().map(|hook| hook.origin.layer).collect()
    }

    #[test]
    fn a_scope_holds_for_hooks_that_are_added_later() {
        let under = |scope| {
            let policy = HookPolicy {
                scope,
                stop_limit: Some(3),
                ..HookPolicy::default()
            };
            // The user's is the same as the administrator's, and runs once.
            let settings = HookSet::new([of(HookLayer::User), of(HookLayer::Managed)]);
            let later = HookSet::new([of(HookLayer::Definition), of(HookLayer::Program)]);
            settings.under(policy).with(&later)
        };
        let all = under(HookScope::All);
        let expected = [
            HookLayer::Managed,
            HookLayer::Program,
            HookLayer::Definition,
        ];
        assert_eq!(layers(&all), expected);
        assert_eq!((all.stop_limit(), HookSet::default().stop_limit()), (3, 8));
        assert_eq!(layers(&under(HookScope::Managed)), expected[..2]);
        let none = under(HookScope::Nothing);
        assert!(none.is_empty() && !none.has(HookEvent::PreToolUse));
    }

    #[test]
    fn addresses_and_variables_are_limited() {
        let mut posts = hook(HookEvent::PreToolUse);
        posts.action = HookAction::Http {
            url: "https://hooks.corp/a/guard".into(),
            headers: Vec::new(),
            variables: vec!["TOKEN".into(), "HOME".into()],
        };
        let posts = Arc::new(posts);
        let admitted = |urls: &[&str], variables: &[&str]| {
            let list = |words: &[&str]| Some(words.iter().map(|it| (*it).to_owned()).collect());
            let policy = HookPolicy {
                urls: list(urls),
                variables: list(variables),
                ..HookPolicy::default()
            };
            policy.admit(&posts).unwrap().action.clone()
        };
        let allowed = admitted(&["https://x/", "https://hooks.corp/*"], &["TOKEN"]);
        let HookAction::Http { variables, .. } = &allowed else {
            panic!("{allowed:?}");
        };
        assert_eq!(variables, &["TOKEN"]);
        for refused in ["https://hooks.corp/", "*.org/*", "https://*/a/*/c"] {
            let action = admitted(&[refused], &[]);
            assert!(
                matches!(action, HookAction::Unsupported { .. }),
                "{refused}"
            );
        }
        assert!(fits("abcabc", "a*c") && fits("ab", "*") && !fits("ab", "*a"));
    }
}
