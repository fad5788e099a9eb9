//! The key `ui`: how posse looks. Only the user and the administrator decide about it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The keys of `ui`.
pub(super) const KEYS: [&str; 2] = ["theme", "mouse"];

/// The content of the key `ui`.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct UiSettings {
    pub(crate) theme: Option<ThemeChoice>,
    /// Whether the mouse is used where posse has the whole screen.
    pub(crate) mouse: Option<bool>,
}

/// Which theme is meant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum ThemeChoice {
    /// One of posse's, or a file in `themes` of posse's home.
    Named(String),
    /// A colour for each role that is not as in `ansi`.
    Colors(BTreeMap<String, String>),
}

impl UiSettings {
    /// Returns the keys that are set.
    pub(super) fn keys(&self) -> Vec<String> {
        let set = [self.theme.is_some(), self.mouse.is_some()];
        let names = KEYS.iter().zip(set).filter(|(_, is_set)| *is_set);
        names.map(|(name, _)| (*name).to_owned()).collect()
    }
}
