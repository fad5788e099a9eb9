//! Variables for commands: `env`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;

use super::{Layer, LayerAuthor};

/// The content of the key `env` in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct VariablesFile(BTreeMap<String, VariableValue>);

/// A value. Numbers and switches are meant as they are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum VariableValue {
    Text(String),
    Number(serde_json::Number),
    Switch(bool),
}

impl VariableValue {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Switch(switch) => switch.to_string(),
        }
    }
}

impl VariablesFile {
    /// Returns their names.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// Merges the layers, the highest first. Of a repository's files only the person's own counts.
pub(super) fn settle(layers: &[Layer]) -> Vec<(OsString, OsString)> {
    let mut all = BTreeMap::new();
    let is_own = |layer: &&Layer| layer.trust != LayerAuthor::Repository;
    let counts = layers
        .iter()
        .filter(|it| is_own(it) || it.is_trusted_to_allow);
    for (name, value) in counts.flat_map(|layer| &layer.content.env.0) {
        all.entry(name).or_insert_with(|| value.text());
    }
    let is_possible = |text: &str| !text.is_empty() && !text.contains(['=', '\0']);
    let possible = all
        .into_iter()
        .filter(|(name, value)| is_possible(name) && !value.contains('\0'));
    possible
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}
