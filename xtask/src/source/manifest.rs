//! What a crate's manifest says of other crates of the workspace.

use std::path::Path;

use anyhow::{Context, Result};

/// A crate's name and the crates of the workspace that it depends on outside of tests.
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<String>,
}

impl Manifest {
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let text = super::text_of(&directory.join("Cargo.toml"))?;
        let table: toml::Table = toml::from_str(&text)?;
        let name = table
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(toml::Value::as_str)
            .with_context(|| format!("{} has no name", directory.display()))?;
        let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
        let ours = dependencies.into_iter().flat_map(toml::Table::keys);
        Ok(Self {
            name: name.to_owned(),
            dependencies: ours
                .filter(|name| name.starts_with("posse-"))
                .cloned()
                .collect(),
        })
    }

    pub(crate) fn is_shipped(&self) -> bool {
        !super::NOT_SHIPPED.contains(&self.name.as_str())
    }

    pub(crate) fn is_library(&self) -> bool {
        self.is_shipped() && self.name != super::BINARY
    }
}
