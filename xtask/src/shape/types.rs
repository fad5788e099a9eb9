//! Types: how many methods, fields and flags they have, and how many share a name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Figure;
use crate::source::{Crate, TypeItem, Workspace};

/// The inherent methods of one type, by the file they stand in.
#[derive(Default)]
pub(crate) struct Methods {
    pub(crate) crate_name: String,
    pub(crate) name: String,
    pub(crate) files: BTreeMap<String, usize>,
}

impl Methods {
    pub(crate) fn count(&self) -> usize {
        self.files.values().sum()
    }
}

/// The inherent methods of every type of the crate, over all its impl blocks.
pub(crate) fn methods_of(one: &Crate) -> Vec<Methods> {
    let mut found: BTreeMap<(usize, String), Methods> = BTreeMap::new();
    for file in &one.files {
        for item in file.parsed.impls.iter().filter(|item| !item.is_trait) {
            let module = one.module_in(file, &item.scope);
            let target = one.resolve(module, &item.path);
            let name = item.path.last().cloned().unwrap_or_default();
            let key = match target {
                Some(target) => (target.module, target.name.unwrap_or(name)),
                None => (module, name),
            };
            let methods = found.entry(key.clone()).or_default();
            methods.name = key.1;
            methods.crate_name.clone_from(&one.name);
            *methods.files.entry(file.name.clone()).or_default() += item.methods.len();
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|methods| std::cmp::Reverse(methods.count()));
    found
}

/// How many of the largest are listed.
const LISTED: usize = 20;

pub(super) fn max_methods(workspace: &Workspace) -> Figure {
    let mut all: Vec<_> = workspace.crates.iter().flat_map(methods_of).collect();
    all.sort_by_key(|methods| std::cmp::Reverse(methods.count()));
    let behind = all.iter().take(LISTED).map(|methods| {
        let files = methods
            .files
            .iter()
            .map(|(file, count)| format!("{file} {count}"));
        let files: Vec<_> = files.collect();
        let (name, count) = (&methods.name, methods.count());
        format!(
            "{name}: {count} methods in {} files: {}",
            files.len(),
            files.join(", ")
        )
    });
    Figure {
        key: "max_methods",
        value: Value::from(all.first().map_or(0, Methods::count)),
        behind: behind.collect(),
    }
}

/// Every type of the shipped crates, with its file.
pub(crate) fn all(workspace: &Workspace) -> Vec<(&Crate, &str, &TypeItem)> {
    let mut found = Vec::new();
    for one in &workspace.crates {
        for file in &one.files {
            found.extend(
                file.parsed
                    .types
                    .iter()
                    .map(|item| (one, file.name.as_str(), item)),
            );
        }
    }
    found
}

pub(super) fn max_fields(workspace: &Workspace) -> Figure {
    most(workspace, "max_fields", |item| item.fields)
}

pub(super) fn max_bools(workspace: &Workspace) -> Figure {
    most(workspace, "max_bools", |item| item.bools)
}

fn most(workspace: &Workspace, key: &'static str, count: impl Fn(&TypeItem) -> usize) -> Figure {
    let mut structs = all(workspace);
    structs.sort_by_key(|(_, _, item)| std::cmp::Reverse(count(item)));
    let behind = structs
        .iter()
        .take(LISTED)
        .map(|(_, file, item)| format!("{file}:{}: {} {}", item.line, item.name, count(item)));
    Figure {
        key,
        value: Value::from(structs.first().map_or(0, |(_, _, item)| count(item))),
        behind: behind.collect(),
    }
}

/// Where each name of a struct, an enum or a trait is defined.
pub(crate) fn definitions<'a>(
    types: &[(&'a Crate, &'a str, &'a TypeItem)],
) -> BTreeMap<&'a str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (_, file, item) in types {
        let places = found.entry(item.name.as_str()).or_default();
        places.push(format!("{file}:{}", item.line));
    }
    found
}

pub(super) fn repeated_names(workspace: &Workspace) -> Figure {
    let types = all(workspace);
    let mut repeated: Vec<_> = definitions(&types)
        .into_iter()
        .filter(|(_, places)| places.len() > 1)
        .collect();
    repeated.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    let behind = repeated
        .iter()
        .map(|(name, places)| format!("{name}: {}", places.join(", ")));
    Figure {
        key: "repeated_names",
        value: Value::from(repeated.len()),
        behind: behind.collect(),
    }
}
