//! `cargo xtask tidy`: the arrows between crates and rooms, and what every file owes its reader.

mod architecture;
mod arrows;
mod binary;
mod files;
mod floors;
mod lock;
mod manual;
mod purity;
mod ratchets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::source::Workspace;

/// A rule of the large shape.
struct Rule {
    name: &'static str,
    /// A rule that does not hold yet is only counted; `cargo xtask tidy --all` lists its faults.
    holds: bool,
    faults: fn(&Workspace) -> Result<Vec<String>>,
}

/// Every rule, and whether its faults fail.
const RULES: &[Rule] = &[
    rule("crate arrows", true, |all| Ok(arrows::too_many(all))),
    rule("floors", true, |all| Ok(floors::upward(all))),
    rule("circles of siblings", true, |all| {
        Ok(floors::sibling_circles(all))
    }),
    rule("impls outside of their room", true, |all| {
        Ok(floors::foreign_impls(all))
    }),
    rule("methods", true, |all| Ok(ratchets::methods(all))),
    rule("fields", true, |all| Ok(ratchets::fields(all))),
    rule("parameters", true, |all| Ok(ratchets::parameters(all))),
    rule("string errors", true, |all| {
        Ok(ratchets::string_errors(all))
    }),
    rule("repeated names", true, |all| {
        Ok(ratchets::repeated_names(all))
    }),
    rule("purity", true, |all| Ok(purity::impure(all))),
    rule("commands", true, |all| Ok(binary::commands(all))),
    rule("adapters", true, |all| Ok(binary::adapters(all))),
    rule("ARCHITECTURE.md", true, architecture::check),
];

const fn rule(
    name: &'static str,
    holds: bool,
    faults: fn(&Workspace) -> Result<Vec<String>>,
) -> Rule {
    Rule {
        name,
        holds,
        faults,
    }
}

/// Which faults are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Those that fail.
    Failing,
    /// Also those of rules that do not hold yet.
    All,
}

pub(crate) fn run(root: &Path, listed: Listed) -> Result<ExitCode> {
    let workspace = Workspace::read(root)?;
    for rule in RULES.iter().filter(|rule| !rule.holds) {
        let faults = (rule.faults)(&workspace)?;
        if listed == Listed::All {
            for fault in &faults {
                println!("{fault}");
            }
        }
        println!("not held yet: {}: {} faults", rule.name, faults.len());
    }
    for note in ratchets::notes(&workspace) {
        println!("{note}");
    }
    println!("{}", lock::note(root)?);
    for note in manual::notes(root)? {
        println!("{note}");
    }
    let faults = faults(root, &workspace)?;
    for fault in &faults {
        println!("{fault}");
    }
    println!("tidy: {} faults", faults.len());
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Everything that is out of order.
fn faults(root: &Path, workspace: &Workspace) -> Result<Vec<String>> {
    let mut faults = lock::check(root)?;
    faults.extend(manual::check(root)?);
    for manifest in manifests(root)? {
        let text = read(&manifest)?;
        faults.extend(arrows::check_manifest(&text)?);
    }
    let owed = files::Owed::new()?;
    for path in sources(root)? {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let text = read(&path)?;
        faults.extend(owed.check(&name, &text));
        faults.extend(arrows::check_source(&name, &text));
    }
    for rule in RULES.iter().filter(|rule| rule.holds) {
        faults.extend((rule.faults)(workspace)?);
    }
    Ok(faults)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn manifests(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.join("xtask/Cargo.toml")];
    for entry in fs::read_dir(root.join("crates"))? {
        found.push(entry?.path().join("Cargo.toml"));
    }
    Ok(found)
}

/// Every Rust file of the workspace.
pub(crate) fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.join("crates"), root.join("xtask")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let root = crate::root().unwrap();
        let workspace = super::Workspace::read(&root).unwrap();
        assert_eq!(
            super::faults(&root, &workspace).unwrap(),
            Vec::<String>::new()
        );
    }
}
