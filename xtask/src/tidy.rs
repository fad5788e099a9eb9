//! `cargo xtask tidy`: the arrows between rooms, and what every file owes its reader.

mod arrows;
mod files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

/// More packages than this cost every build; a heavy one must say what it brings.
const MOST_PACKAGES: usize = 450;

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let faults = faults(root)?;
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
fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for manifest in manifests(root)? {
        let text = read(&manifest)?;
        faults.extend(arrows::check_manifest(&text)?);
    }
    for path in sources(root)? {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let text = read(&path)?;
        faults.extend(files::check(&name, &text));
        faults.extend(arrows::check_source(&name, &text));
    }
    let packages = read(&root.join("Cargo.lock"))?
        .matches("[[package]]")
        .count();
    if packages > MOST_PACKAGES {
        faults.push(format!(
            "Cargo.lock: {packages} packages, at most {MOST_PACKAGES} are wanted"
        ));
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
    fn the_house_is_tidy() {
        assert_eq!(
            super::faults(&crate::root().unwrap()).unwrap(),
            Vec::<String>::new()
        );
    }
}
