//! Lists that a model is offered and that change: agent types, skills and servers. Pure.

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
    /// Servers with their names, if it can search for tools and was told of them.
    pub(crate) servers: Option<Vec<(String, String)>>,
}

impl Offer {
    /// Returns what a model with these tools is offered by its tools' descriptions.
    pub(crate) fn of(tools: &Toolbox, types: &[Arc<Definition>], skills: &[Arc<Skill>]) -> Self {
        Self {
            types: tools.get(AGENT).map(|_| agent_tool::listing(types)),
            skills: tools
                .get(SKILL)
                .map(|_| prompt::skill::listing(&followable(skills, tools))),
            servers: None,
        }
    }

    /// Adds the servers whose tools can be searched for.
    pub(crate) fn with_servers(self, servers: Option<Vec<(String, String)>>) -> Self {
        Self { servers, ..self }
    }

    /// Returns a fingerprint that differs if two offers differ to a model; none if nothing is
    /// offered.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        let servers = self.servers.as_deref().unwrap_or_default();
        let mut text = match (&self.types, &self.skills) {
            (None, None) if servers.is_empty() => return None,
            (types, None) => types.clone().unwrap_or_default(),
            (types, Some(skills)) => format!("{}\0{skills}", types.as_deref().unwrap_or_default()),
        };
        for (_, entry) in servers {
            text.push('\0');
            text.push_str(entry);
        }
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
            self.servers_news(known),
        ];
        told.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// Returns what is told of servers: only those that are new or different.
    fn servers_news(&self, known: Option<&Self>) -> Option<String> {
        let known = known.and_then(|known| known.servers.as_deref());
        let (known, now) = (
            known.unwrap_or_default(),
            self.servers.as_deref().unwrap_or_default(),
        );
        let is_new = |server: &&(String, String)| !known.contains(server);
        let is_gone = |server: &&(String, String)| !now.iter().any(|(name, _)| *name == server.0);
        let mut told: String = now
            .iter()
            .filter(is_new)
            .map(|(_, entry)| entry.as_str())
            .collect();
        for (name, _) in known.iter().filter(is_gone) {
            told.push_str(&prompt::served::removed(name));
        }
        (!told.is_empty()).then(|| prompt::served::changed(&told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(types: Option<&str>, skills: Option<&str>) -> Offer {
        Offer {
            types: types.map(str::to_owned),
            skills: skills.map(str::to_owned),
            servers: None,
        }
    }

    #[test]
    fn only_servers_that_have_changed_are_told() {
        let servers = |entries: &[(&str, &str)]| {
            let entries = entries.iter();
            let entries = entries.map(|(name, entry)| ((*name).into(), (*entry).into()));
            offer(Some("\n- a: x"), None).with_servers(Some(entries.collect()))
        };
        let before = servers(&[("s", "\n- s: x"), ("t", "\n- t: y")]);
        let now = servers(&[("s", "\n- s: x"), ("u", "\n- u: z")]);
        assert_ne!(before.fingerprint(), now.fingerprint());
        let news = now.news(Some(&before));
        assert!(
            news.contains("- u: z") && news.contains("- t: not there"),
            "{news}"
        );
        assert!(
            !news.contains("- s: x") && !news.contains("- a: x"),
            "{news}"
        );
        assert_eq!(now.news(Some(&now)), "");
        let born = offer(Some("\n- a: x"), None);
        assert!(!now.news(Some(&born)).contains("- a: x"));
        assert_ne!(now.fingerprint(), born.fingerprint());
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
