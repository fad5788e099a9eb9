//! The crates that are linked into posse, with their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A crate that posse is built from.
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// Its licence, as an SPDX expression.
    pub(super) licence: String,
    /// The checksum of its package; none if it is posse's own.
    pub(super) checksum: Option<String>,
    /// Where its sources lie.
    folder: PathBuf,
}

/// Returns the crates that are linked into posse, by name.
pub(super) fn of_posse(root: &Path) -> Result<Vec<Crate>> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let words = ["metadata", "--format-version", "1", "--locked"];
    let mut cargo = crate::cargo(root);
    cargo.args(words).args(["--filter-platform", &target]);
    let metadata: Value = serde_json::from_str(&super::done(&mut cargo)?)?;
    let linked = linked(&metadata)?;
    let checksums = checksums(root)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut crates = Vec::new();
    for package in packages {
        let text = |key: &str| {
            let value = package[key].as_str().map(str::to_owned);
            value.with_context(|| format!("{} has no {key}", package["name"]))
        };
        if !linked.contains(text("id")?.as_str()) {
            continue;
        }
        let (name, version) = (text("name")?, text("version")?);
        let manifest = PathBuf::from(text("manifest_path")?);
        crates.push(Crate {
            licence: text("license")?,
            checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
            folder: manifest
                .parent()
                .context("a manifest lies in a folder")?
                .into(),
            name,
            version,
        });
    }
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(crates)
}

/// Returns the ids of what posse-cli is linked from: neither what only builds it nor what only tests it.
fn linked(metadata: &Value) -> Result<BTreeSet<&str>> {
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .context("no nodes")?;
    let by_id: BTreeMap<&str, &Value> = nodes
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let is_posse = |id: &&str| id.contains("crates/posse-cli#");
    let mut waiting: Vec<&str> = by_id.keys().copied().filter(is_posse).collect();
    ensure!(waiting.len() == 1, "the workspace has one posse-cli");
    let mut linked = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !linked.insert(id) {
            continue;
        }
        let needs = by_id[id]["deps"].as_array().into_iter().flatten();
        let normal = needs.filter(|needed| {
            let kinds = needed["dep_kinds"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| kind["kind"].is_null())
        });
        waiting.extend(normal.filter_map(|needed| needed["pkg"].as_str()));
    }
    Ok(linked)
}

fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = fs::read_to_string(root.join("Cargo.lock"))?.parse()?;
    let packages = lock["package"]
        .as_array()
        .context("the lock file has packages")?;
    let checksum = |package: &toml::Value| {
        let text = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.iter().filter_map(checksum).collect())
}

/// Returns the licences of all crates with their texts. A text that many have stands there once.
pub(super) fn licences(crates: &[Crate]) -> Result<String> {
    let foreign: Vec<&Crate> = crates.iter().filter(|it| it.checksum.is_some()).collect();
    let mut page = format!(
        "posse is built from {} crates of others. Their licences, and below them the texts that came with them:\n\n",
        foreign.len()
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in &foreign {
        let name = format!("{} {}", one.name, one.version);
        page += &format!("{name}: {}\n", one.licence);
        for text in one.texts()? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut texts: Vec<_> = texts
        .into_iter()
        .map(|(text, names)| (names, text))
        .collect();
    texts.sort();
    for (names, text) in texts {
        page += &format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", "));
    }
    Ok(page)
}

impl Crate {
    /// Returns the texts of licences and notices that lie in its folder.
    fn texts(&self) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let tells = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];
            if entry.file_type()?.is_file() && tells.iter().any(|word| name.starts_with(word)) {
                let text = String::from_utf8_lossy(&fs::read(entry.path())?).replace("\r\n", "\n");
                texts.push(text.trim_end().to_owned());
            }
        }
        Ok(texts)
    }
}
