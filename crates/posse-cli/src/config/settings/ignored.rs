//! What a repository's files ask for in vain.

use std::path::Path;

use super::{Layer, LayerAuthor, Settings};
use crate::config::store;

/// A kind of setting that only the user and the administrator decide about.
struct Kind {
    one: &'static str,
    many: &'static str,
    /// What a file says about it.
    values: Vec<String>,
}

impl Kind {
    /// Returns the kind's name for this number of settings.
    fn name(&self, count: usize) -> &'static str {
        if count == 1 { self.one } else { self.many }
    }
}

/// Returns what a repository's file asks for in vain, counted by kind.
pub(super) fn counts(layer: &Layer, holds: &Settings) -> Vec<String> {
    let asked = kinds(layer, holds)
        .into_iter()
        .filter(|kind| !kind.values.is_empty());
    asked
        .map(|kind| format!("{} {}", kind.values.len(), kind.name(kind.values.len())))
        .collect()
}

/// Returns what the repository's files ask for in vain: all in one line, and in detail.
pub(super) fn in_vain(layers: &[Layer], holds: &Settings) -> (Option<String>, Vec<String>) {
    let mut totals: Vec<(Kind, usize)> = Vec::new();
    let (mut files, mut details) = (Vec::new(), Vec::new());
    let of_repository = |layer: &&Layer| layer.trust == LayerAuthor::Repository;
    for layer in layers.iter().filter(of_repository) {
        let file = layer.path.display();
        let kinds = kinds(layer, holds);
        for kind in kinds.into_iter().filter(|kind| !kind.values.is_empty()) {
            let count = kind.values.len();
            let (name, values) = (kind.name(count), kind.values.join(", "));
            details.push(format!("ignored: {name} {values} in {file}"));
            if files.last() != Some(&layer.path.as_path()) {
                files.push(layer.path.as_path());
            }
            match totals.iter_mut().find(|(known, _)| known.one == kind.one) {
                Some((_, total)) => *total += count,
                None => totals.push((kind, count)),
            }
        }
    }
    if totals.is_empty() {
        return (None, details);
    }
    let counts: Vec<String> = totals
        .iter()
        .map(|(kind, count)| format!("{count} {}", kind.name(*count)))
        .collect();
    let why = "a repository may only tighten permissions; --verbose shows what was ignored, and \
               your own settings may allow it";
    let (counts, files) = (counts.join(", "), listed(&files));
    (
        Some(format!("ignored: {counts} in {files}: {why}")),
        details,
    )
}

/// Returns the settings of a repository's file that do not count.
fn kinds(layer: &Layer, holds: &Settings) -> [Kind; 15] {
    let (content, permissions) = (&layer.content, &layer.content.permissions);
    let looser = permissions
        .default_mode()
        .filter(|wanted| wanted.strictness() > holds.mode.strictness());
    let kind = |one, many, values| Kind { one, many, values };
    let (allow, variables) = match layer.is_trusted_to_allow {
        true => (Vec::new(), Vec::new()),
        false => (permissions.allow.clone(), content.env.names()),
    };
    let directories = permissions.additional_directories.clone();
    let compact_at = content.compact_at.map(|tokens| tokens.to_string());
    let stores = content.store.iter().map(|store| store::hushed(store));
    let feed_hours = content.feed_hours.map(|hours| hours.to_string());
    let mode = looser.map(|mode| mode.to_string());
    let is_own = layer.decides_about_hooks();
    let disables = (content.hooks.disables_all && !is_own).then(|| "true".to_owned());
    let stops = content.hooks.stop_limit.filter(|_| !is_own);
    let stops = stops.map(|limit| limit.to_string());
    let of_agents = content.agents.beyond(&holds.agents);
    [
        kind("allow rule", "allow rules", allow),
        kind("directory", "directories", directories),
        kind("variable", "variables", variables),
        kind("model", "models", Vec::from_iter(content.model.clone())),
        kind("compactAt", "compactAt", Vec::from_iter(compact_at)),
        kind("store", "stores", stores.collect()),
        kind("feedHours", "feedHours", Vec::from_iter(feed_hours)),
        kind("mode", "modes", Vec::from_iter(mode)),
        kind(
            "disableAllHooks",
            "disableAllHooks",
            Vec::from_iter(disables),
        ),
        kind("stopHookLimit", "stopHookLimit", Vec::from_iter(stops)),
        kind(
            "key of account",
            "keys of account",
            content.account.beyond(),
        ),
        kind("key of agents", "keys of agents", of_agents),
        kind("key of teams", "keys of teams", content.teams.beyond()),
        kind(
            "key of sandbox",
            "keys of sandbox",
            content.sandbox.beyond(),
        ),
        kind("key of ui", "keys of ui", content.ui.keys()),
    ]
}

/// Returns the files in words.
fn listed(files: &[&Path]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    match &names[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}
