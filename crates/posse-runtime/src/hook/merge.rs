//! What the answers of all hooks of an event come to: the strictest decision counts, and changed
//! inputs in the order in which the hooks are declared, whichever of them is faster.

use std::sync::Arc;

use posse_protocol::{ElicitationReply, RawJson};

use crate::hook::answer::{Answer, Extras, HookDecision};
use crate::hook::{Hook, HookOrigin};

/// What the hooks of an event have come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// The strictest decision, with the reasons of all hooks that took it.
    pub decision: Option<HookDecision>,
    /// The input that a call gets instead of its own.
    pub input: Option<RawJson>,
    /// What the model is told, each with what said it.
    pub contexts: Vec<String>,
    /// Why the run ends.
    pub ends_run: Option<String>,
    /// What people are told about hooks that do not agree.
    pub remarks: Vec<String>,
    /// Parts that only some events have. Of several hooks the last one counts.
    pub more: Extras,
}

impl Merged {
    /// Returns what refuses for this reason.
    pub(crate) fn refusing(why: &str) -> Self {
        Self {
            decision: Some(HookDecision::Deny(why.to_owned())),
            ..Self::default()
        }
    }

    /// Returns why it is refused, if it is.
    pub fn denied(&self) -> Option<&str> {
        match &self.decision {
            Some(HookDecision::Deny(why)) => Some(why),
            _ => None,
        }
    }
}

/// Merges answers, which are in the order in which their hooks are declared.
pub fn merge(answers: impl IntoIterator<Item = (Arc<Hook>, Answer)>) -> Merged {
    let mut merged = Merged::default();
    // Who has changed the input so far.
    let mut changed: Option<HookOrigin> = None;
    // Whether the hook allows it whose input counts.
    let mut agrees = true;
    for (hook, answer) in answers {
        let decision = answer.decision.filter(|decision| counts(&hook, decision));
        let allows = decision == Some(HookDecision::Allow);
        merged.decision = strictest(merged.decision.take(), decision);
        merged.contexts.extend(answer.context);
        if merged.ends_run.is_none() {
            merged.ends_run = answer.ends_run;
        }
        if let Some(input) = answer.input {
            let differs = merged.input.as_ref().is_some_and(|known| *known != input);
            if let Some(other) = changed.replace(hook.origin.clone()).filter(|_| differs) {
                let (one, other) = (hook.origin.to_string(), other.to_string());
                merged.remarks.push(format!(
                    "two {} hooks change the same input: that of {one} counts, not that of {other}",
                    hook.event
                ));
            }
            merged.input = Some(input);
            agrees = allows;
        }
        let mut more = answer.more;
        // As with what a call needs: a repository can refuse for the person, and not agree for them.
        let agrees = matches!(more.elicited.as_deref(), Some(ElicitationReply::Accept(_)));
        if hook.origin.of_repository && agrees {
            more.elicited = None;
        }
        merged.more.add(more);
    }
    // What one hook allows is not what another has put in its place.
    if !agrees && merged.decision == Some(HookDecision::Allow) {
        merged.decision = None;
    }
    merged
}

/// Returns true if a decision of this hook counts: a repository can refuse and ask, and allows
/// nothing.
fn counts(hook: &Hook, decision: &HookDecision) -> bool {
    !hook.origin.of_repository || *decision != HookDecision::Allow
}

/// Returns the stricter decision; of two equally strict ones, both reasons.
pub(crate) fn strictest(
    one: Option<HookDecision>,
    other: Option<HookDecision>,
) -> Option<HookDecision> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    Some(match (one, other) {
        (HookDecision::Deny(one), HookDecision::Deny(other)) => {
            HookDecision::Deny(both(one, other))
        }
        (HookDecision::Defer(one), HookDecision::Defer(other)) => {
            HookDecision::Defer(both(one, other))
        }
        (HookDecision::Ask(one), HookDecision::Ask(other)) => HookDecision::Ask(both(one, other)),
        (one, other) if weight(&other) > weight(&one) => other,
        (one, _) => one,
    })
}

fn both(one: String, other: String) -> String {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other,
        (_, true) => one,
        _ if one == other => one,
        _ => format!("{one}\n{other}"),
    }
}

fn weight(decision: &HookDecision) -> u8 {
    match decision {
        HookDecision::Allow => 0,
        HookDecision::Ask(_) => 1,
        HookDecision::Defer(_) => 2,
        HookDecision::Deny(_) => 3,
    }
}

impl Extras {
    /// Adds those of a hook that is declared later.
    fn add(&mut self, later: Self) {
        let Self {
            output,
            permissions,
            interrupts,
            retry,
            first_prompt,
            hides_prompt,
            watch,
            display,
            worktree,
            elicited,
        } = later;
        self.output = output.or(self.output.take());
        self.permissions.extend(permissions);
        self.interrupts |= interrupts;
        self.retry |= retry;
        self.first_prompt = first_prompt.or(self.first_prompt.take());
        self.hides_prompt |= hides_prompt;
        self.watch.extend(watch);
        self.display = display.or(self.display.take());
        self.worktree = worktree.or(self.worktree.take());
        self.elicited = elicited.or(self.elicited.take());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::tests::hook;
    use crate::hook::{HookEvent, HookLayer};

    fn decided(decision: HookDecision) -> Answer {
        Answer {
            decision: Some(decision),
            ..Answer::default()
        }
    }

    fn changed(command: &str) -> Answer {
        Answer {
            input: Some(RawJson::from(&json!({ "command": command }))),
            ..Answer::default()
        }
    }

    fn of_layer(layer: HookLayer) -> Arc<Hook> {
        let mut hook = hook(HookEvent::PreToolUse);
        hook.origin.layer = layer;
        hook.origin.file = layer.as_str().into();
        hook.origin.of_repository = layer == HookLayer::Project;
        Arc::new(hook)
    }

    // proves HK-07 (part: strictest)
    #[test]
    fn the_strictest_decision_counts_whatever_the_order() {
        let all = [
            HookDecision::Allow,
            HookDecision::Ask("asks".into()),
            HookDecision::Defer("defers".into()),
            HookDecision::Deny("denies".into()),
        ];
        let user = of_layer(HookLayer::User);
        for (at, strict) in all.iter().enumerate() {
            for lenient in &all[..at] {
                for pair in [[strict, lenient], [lenient, strict]] {
                    let answers = pair.map(|it| (Arc::clone(&user), decided(it.clone())));
                    assert_eq!(merge(answers).decision.as_ref(), Some(strict));
                }
            }
        }
        let none = (Arc::clone(&user), Answer::default());
        let asks = decided(HookDecision::Ask("asks".into()));
        let merged = merge([none, (user, asks)]);
        assert_eq!(merged.decision, Some(HookDecision::Ask("asks".into())));
    }

    #[test]
    fn all_reasons_are_told() {
        let user = of_layer(HookLayer::User);
        let says = |why: &str| (Arc::clone(&user), decided(HookDecision::Deny(why.into())));
        let merged = merge([says("one"), says(""), says("two"), says("one")]);
        assert_eq!(merged.denied(), Some("one\ntwo\none"));
    }

    // proves HK-07 (part: order of inputs)
    #[test]
    fn the_input_that_is_declared_last_counts_and_a_conflict_is_told() {
        let [managed, user] = [HookLayer::Managed, HookLayer::User].map(of_layer);
        let merged = merge([
            (Arc::clone(&managed), changed("one")),
            (Arc::clone(&user), changed("two")),
        ]);
        assert_eq!(merged.input.unwrap().get(), r#"{"command":"two"}"#);
        assert_eq!(
            merged.remarks,
            [
                "two PreToolUse hooks change the same input: that of user counts, not that of managed"
            ]
        );
        let same = merge([
            (Arc::clone(&managed), changed("one")),
            (user, changed("one")),
        ]);
        assert!(same.input.is_some() && same.remarks.is_empty());
        let merged = merge([
            (Arc::clone(&managed), changed("one")),
            (managed, Answer::default()),
        ]);
        assert!(merged.input.is_some());
    }

    // proves HK-07 (part: repositories)
    #[test]
    fn a_repository_allows_nothing() {
        let project = of_layer(HookLayer::Project);
        let merged = merge([(Arc::clone(&project), decided(HookDecision::Allow))]);
        assert_eq!(merged.decision, None);
        let merged = merge([(project, decided(HookDecision::Deny("no".into())))]);
        assert_eq!(merged.denied(), Some("no"));
    }

    #[test]
    fn what_is_said_beside_decisions_is_kept_in_order() {
        let user = of_layer(HookLayer::User);
        let says = |context: &str, ends: Option<&str>| {
            let answer = Answer {
                context: Some(context.into()),
                ends_run: ends.map(str::to_owned),
                ..Answer::default()
            };
            (Arc::clone(&user), answer)
        };
        let merged = merge([
            says("a", None),
            says("b", Some("first")),
            says("c", Some("second")),
        ]);
        assert_eq!(merged.contexts, ["a", "b", "c"]);
        assert_eq!(merged.ends_run.as_deref(), Some("first"));
    }

    #[test]
    fn a_hook_allows_no_input_that_another_has_made() {
        let user = || of_layer(HookLayer::User);
        let allowed = || decided(HookDecision::Allow);
        let both = || Answer {
            decision: Some(HookDecision::Allow),
            ..changed("b")
        };
        let decision = |answers: Vec<(Arc<Hook>, Answer)>| merge(answers).decision;
        assert_eq!(
            decision(vec![(user(), allowed()), (user(), changed("a"))]),
            None
        );
        assert_eq!(
            decision(vec![(user(), changed("a")), (user(), allowed())]),
            None
        );
        let allow = Some(HookDecision::Allow);
        assert_eq!(decision(vec![(user(), allowed()), (user(), both())]), allow);
        let mut theirs = hook(HookEvent::PreToolUse);
        theirs.origin.of_repository = true;
        assert_eq!(
            decision(vec![(user(), allowed()), (Arc::new(theirs), both())]),
            None
        );
        let asks = decided(HookDecision::Ask("why".into()));
        let merged = decision(vec![(user(), asks), (user(), changed("a"))]);
        assert_eq!(merged, Some(HookDecision::Ask("why".into())));
    }
}
