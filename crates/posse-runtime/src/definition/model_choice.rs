//! Chooses the model of a new sub-agent. Pure.

use posse_protocol::PermissionMode;

use posse_port::model::Names;

/// Short names that every provider is asked for. If it has no such model, the agent gets its
/// parent's.
const SHORT: [&str; 5] = ["opus", "sonnet", "haiku", "fable", SMALL];
/// Short name of the smallest model.
pub(crate) const SMALL: &str = "small";

/// Preferences for a model. The first that is set applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelPreference<'a> {
    /// For every sub-agent, before all others.
    pub forced: Option<&'a str>,
    /// From the call that starts it.
    pub call: Option<&'a str>,
    /// From its type.
    pub definition: Option<&'a str>,
    /// For sub-agents without any other preference.
    pub usual: Option<&'a str>,
}

/// Returns the ID of the model, for an agent that starts in `mode`.
///
/// If it is of the same family as the parent's, it is the parent's exact ID: a session does not mix
/// versions, and what a gateway adds to an ID is kept.
pub(crate) fn resolve(
    preference: &ModelPreference<'_>,
    parent: &str,
    mode: PermissionMode,
    names: &dyn Names,
) -> String {
    let ModelPreference {
        forced,
        call,
        definition,
        usual,
    } = *preference;
    let said = |wanted: &Option<&str>| wanted.is_some_and(|wanted| !wanted.trim().is_empty());
    let wanted = [forced, call, definition, usual]
        .into_iter()
        .find(said)
        .flatten();
    let Some(wanted) = wanted.map(str::trim) else {
        return parent.to_owned();
    };
    let lower = wanted.to_lowercase();
    if lower == "inherit" {
        return parent.to_owned();
    }
    let short = short_name(&lower, mode);
    match names.model_of(short) {
        Some(found) if is_family(&found, parent, names) => parent.to_owned(),
        Some(found) if short == SMALL && !same_maker(&found, parent) => parent.to_owned(),
        Some(found) => found,
        None if SHORT.contains(&short) => parent.to_owned(),
        None => wanted.to_owned(),
    }
}

/// Returns the ID of the model that a person names, for an agent in `mode`; none if the provider has
/// no model with that short name.
pub(crate) fn named(wanted: &str, mode: PermissionMode, names: &dyn Names) -> Option<String> {
    let lower = wanted.to_lowercase();
    let short = short_name(&lower, mode);
    let id = || (!SHORT.contains(&short)).then(|| wanted.to_owned());
    names.model_of(short).or_else(id)
}

/// Returns the short name that a name stands for in a mode.
fn short_name(lower: &str, mode: PermissionMode) -> &str {
    match lower {
        "opusplan" if mode == PermissionMode::Plan => "opus",
        "opusplan" => "sonnet",
        short => short,
    }
}

fn is_family(one: &str, other: &str, names: &dyn Names) -> bool {
    names
        .family_of(one)
        .is_some_and(|family| names.family_of(other) == Some(family))
}

/// Returns true if two IDs begin with the same word. If not, a gateway or another maker's model is
/// behind the same API: nothing is known of its other models, and `small` may not exist there.
fn same_maker(one: &str, other: &str) -> bool {
    let first = |id: &str| id.split('-').next().unwrap_or_default().to_lowercase();
    first(one) == first(other)
}

#[cfg(test)]
mod tests {
    use PermissionMode::{AcceptEdits, Default as Usual, Plan};

    use super::*;

    /// A provider with two families.
    struct Two;

    impl Names for Two {
        fn model_of(&self, short: &str) -> Option<String> {
            let found = match short {
                "opus" => "claude-opus-9",
                "sonnet" => "claude-sonnet-9",
                "small" => "claude-sonnet-9",
                _ => return None,
            };
            Some(found.to_owned())
        }

        fn family_of(&self, model: &str) -> Option<String> {
            ["opus", "sonnet"]
                .into_iter()
                .find(|family| model.contains(family))
                .map(str::to_owned)
        }
    }

    /// One without.
    struct Other;

    impl Names for Other {}

    fn by_call(wanted: &str, parent: &str, mode: PermissionMode) -> String {
        resolve(
            &ModelPreference {
                call: Some(wanted),
                ..ModelPreference::default()
            },
            parent,
            mode,
            &Two,
        )
    }

    // proves AD-06 (part: order)
    #[test]
    fn the_first_who_says_something_is_heard() {
        let all = ["forced", "call", "definition", "usual"];
        for said in 0..16 {
            let wanted = |at: usize| (said >> at & 1 == 1).then_some(all[at]);
            let (forced, call, definition, usual) = (wanted(0), wanted(1), wanted(2), wanted(3));
            let expected = (0..4).find_map(wanted).unwrap_or("claude-opus-5");
            let preference = ModelPreference {
                forced,
                call,
                definition,
                usual,
            };
            assert_eq!(
                resolve(&preference, "claude-opus-5", Usual, &Two),
                expected,
                "{preference:?}"
            );
        }
        // `inherit` is something; nothing at all is not.
        let preference = ModelPreference {
            forced: Some("inherit"),
            call: Some("m"),
            ..ModelPreference::default()
        };
        assert_eq!(resolve(&preference, "parent", Usual, &Two), "parent");
        let preference = ModelPreference {
            forced: Some(" "),
            call: Some(""),
            definition: Some("m"),
            usual: None,
        };
        assert_eq!(resolve(&preference, "parent", Usual, &Two), "m");
    }

    // proves AD-06 (part: families)
    #[test]
    fn short_names_stand_for_models() {
        let (old, gateway) = (
            "claude-opus-5-20260101",
            "eu.anthropic.claude-sonnet-5-v1:0",
        );
        for (wanted, parent, mode, expected) in [
            ("inherit", old, Usual, old),
            ("INHERIT", gateway, Plan, gateway),
            // A family, of the parent's and of another.
            ("opus", old, Usual, old),
            ("Opus", old, Usual, old),
            ("sonnet", old, Usual, "claude-sonnet-9"),
            ("sonnet", gateway, Usual, gateway),
            ("opus", gateway, Usual, "claude-opus-9"),
            ("opus", "something-else", Usual, "claude-opus-9"),
            ("small", old, Usual, "claude-sonnet-9"),
            ("small", gateway, Usual, gateway),
            (
                "small",
                "anthropic/claude-opus-5",
                Usual,
                "anthropic/claude-opus-5",
            ),
            ("small", "llama-9", Usual, "llama-9"),
            // By the mode that the agent starts in.
            ("opusplan", gateway, Plan, "claude-opus-9"),
            ("opusplan", gateway, Usual, gateway),
            ("opusplan", old, Plan, old),
            ("OpusPlan", old, AcceptEdits, "claude-sonnet-9"),
            // Nothing that the provider has.
            ("haiku", old, Usual, old),
            ("Fable", gateway, Usual, gateway),
            // Ids as they are written.
            ("claude-opus-9", old, Usual, "claude-opus-9"),
            ("My/Model:1", old, Usual, "My/Model:1"),
            (" spaced ", old, Usual, "spaced"),
        ] {
            assert_eq!(
                by_call(wanted, parent, mode),
                expected,
                "{wanted} of {parent}"
            );
        }
    }

    #[test]
    fn without_short_names_agents_have_their_parents_model() {
        for wanted in SHORT.into_iter().chain(["inherit", "opusplan"]) {
            for preference in [
                ModelPreference {
                    forced: Some(wanted),
                    ..ModelPreference::default()
                },
                ModelPreference {
                    usual: Some(wanted),
                    ..ModelPreference::default()
                },
            ] {
                assert_eq!(
                    resolve(&preference, "gpt-9", Plan, &Other),
                    "gpt-9",
                    "{preference:?}"
                );
            }
        }
        let preference = ModelPreference {
            definition: Some("gpt-9-mini"),
            ..ModelPreference::default()
        };
        assert_eq!(resolve(&preference, "gpt-9", Usual, &Other), "gpt-9-mini");
    }
}
