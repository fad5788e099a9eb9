//! The source of a workspace as its checks see it: crates, their modules, and what names what.
//!
//! A hand-written lexer and a reader of items are enough for arrows, counts and names. Types are not inferred, and
//! macros are read as the text they are.

mod graph;
mod lex;
mod manifest;
mod modules;
mod parse;

pub(crate) use graph::{Edge, circles};
pub(crate) use lex::{Token, lex};
pub(crate) use manifest::Manifest;
pub(crate) use modules::{Crate, SourceFile};
pub(crate) use parse::{Parsed, TypeItem};

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Crates that are not shipped: they serve tests, measurements and developers.
const NOT_SHIPPED: &[&str] = &["posse-testkit", "posse-bench", "xtask"];

/// The binary that users run. Every other shipped crate is a library.
pub(crate) const BINARY: &str = "posse-cli";

/// A checkout of posse.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// What is shipped, by name.
    pub(crate) crates: Vec<Crate>,
    pub(crate) manifests: Vec<Manifest>,
    /// Lines of tests: below `tests/`, in files and items under `#[cfg(test)]`.
    pub(crate) test_lines: usize,
}

impl Workspace {
    /// Reads the checkout at `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut manifests = Vec::new();
        let (mut crates, mut test_lines) = (Vec::new(), 0);
        for directory in entries(&root.join("crates"))? {
            if !directory.join("Cargo.toml").is_file() {
                continue;
            }
            let manifest = Manifest::read(&directory)?;
            test_lines += lines_below(&directory.join("tests"))?;
            if manifest.is_shipped() {
                let read = Crate::read(root, &directory, &manifest.name)?;
                test_lines += read.test_lines;
                crates.push(read);
            }
            manifests.push(manifest);
        }
        Ok(Self {
            root: root.to_owned(),
            crates,
            manifests,
            test_lines,
        })
    }

    /// Dependencies among library crates, as `from → to`; those of tests left out.
    pub(crate) fn library_edges(&self) -> Vec<String> {
        let library = |name: &str| {
            let found = self.manifests.iter().find(|other| other.name == name);
            found.is_some_and(Manifest::is_library)
        };
        let mut edges = Vec::new();
        for manifest in self
            .manifests
            .iter()
            .filter(|manifest| manifest.is_library())
        {
            let ours = manifest.dependencies.iter().filter(|name| library(name));
            edges.extend(ours.map(|name| format!("{} → {name}", manifest.name)));
        }
        edges
    }

    /// The longest chain of dependencies among shipped crates, the highest first.
    pub(crate) fn chain(&self) -> Vec<String> {
        let shipped = self.manifests.iter().filter(|one| one.is_shipped());
        let chains = shipped.map(|one| self.chain_from(&one.name));
        chains.max_by_key(Vec::len).unwrap_or_default()
    }

    fn chain_from(&self, name: &str) -> Vec<String> {
        let Some(manifest) = self.manifests.iter().find(|one| one.name == name) else {
            return Vec::new();
        };
        let below = manifest
            .dependencies
            .iter()
            .map(|name| self.chain_from(name));
        let longest = below.max_by_key(Vec::len).unwrap_or_default();
        std::iter::once(name.to_owned()).chain(longest).collect()
    }
}

/// What a directory holds, in order; nothing if there is no such directory.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let read = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut found: Vec<PathBuf> = read
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    found.sort();
    Ok(found)
}

/// Every Rust file below a directory.
pub(crate) fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(directory)? {
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

fn lines_below(directory: &Path) -> Result<usize> {
    let mut lines = 0;
    for path in files_below(directory)? {
        lines += text_of(&path)?.lines().count();
    }
    Ok(lines)
}

/// Reads a file.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
pub(crate) mod made;
