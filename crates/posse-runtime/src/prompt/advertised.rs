//! Lists that a model is offered and that change: agent types and skills. Pure.

use std::sync::Arc;

use crate::definition::agent_type::Definition;
use crate::definition::skill::Skill;
use crate::definition::skill::followable;
use crate::definition::tool_name::{AGENT, SKILL};
use crate::prompt;
use crate::prompt::agent_tool;
use posse_port::tool::Toolbox;

/// The lists as the model reads them; none without the tool that lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Agent types that can be started.
    pub(crate) types: Option<String>,
    /// Skills that can be loaded.
    pub(crate) skills: Option<String>,
}

impl Offer {
    /// Returns what a model with these tools is offered.
    pub(crate) fn of(tools: &Toolbox, types: &[Arc<Definition>], skills: &[Arc<Skill>]) -> Self {
        Self {
            types: tools.get(AGENT).map(|_| agent_tool::listing(types)),
            skills: tools
                .get(SKILL)
                .map(|_| prompt::skill::listing(&followable(skills, tools))),
        }
    }

    /// Returns a fingerprint that differs if two offers differ to a model; none if nothing is
    /// offered.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        let text = match (&self.types, &self.skills) {
            (None, None) => return None,
            (Some(types), None) => types.clone(),
            (types, Some(skills)) => format!("{}\0{skills}", types.as_deref().unwrap_or_default()),
        };
        Some(xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }

    /// Returns the text for a model that knows another offer, or an unknown one.
    pub(crate) fn news(&self, known: Option<&Self>) -> String {
        let types = self
            .types
            .as_ref()
            .filter(|_| known.is_none_or(|known| known.types != self.types));
        let skills = self
            .skills
            .as_ref()
            .filter(|_| known.is_none_or(|known| known.skills != self.skills));
        let told = [
            types.map(|list| prompt::types(list)),
            skills.map(|list| prompt::skill::changed(list)),
        ];
        told.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(types: Option<&str>, skills: Option<&str>) -> Offer {
        Offer {
            types: types.map(str::to_owned),
            skills: skills.map(str::to_owned),
        }
    }

    #[test]
    fn only_what_has_changed_is_told() {
        let before = offer(Some("\n- a: x"), Some("\n- s: x"));
        let news = |types, skills| offer(types, skills).news(Some(&before));
        let types = news(Some("\n- b: x"), Some("\n- s: x"));
        assert!(
            types.contains("- b: x") && !types.contains("- s: x"),
            "{types}"
        );
        let skills = news(Some("\n- a: x"), Some(""));
        assert!(
            skills.contains("skills") && skills.contains("there are now: none"),
            "{skills}"
        );
        assert!(!skills.contains("- a: x"), "{skills}");
        let both = before.news(None);
        assert!(both.contains("- a: x") && both.contains("- s: x"), "{both}");
    }

    #[test]
    fn a_fingerprint_tells_offers_apart() {
        assert_eq!(offer(None, None).fingerprint(), None);
        let prints = [
            offer(Some("a"), None),
            offer(Some("a"), Some("")),
            offer(Some(""), Some("a")),
            offer(Some("a"), Some("b")),
        ]
        .map(|offer| offer.fingerprint().unwrap());
        for (at, print) in prints.iter().enumerate() {
            assert!(!prints[..at].contains(print), "{at}");
        }
    }
}
