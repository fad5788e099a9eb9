//! A draft in the person's editor.

use std::path::Path;

use anyhow::Context;

use crate::headless::editor::edit;

/// Returns the text after it was edited in `file`, which is removed then.
pub(super) async fn edited(text: &str, file: &Path) -> anyhow::Result<String> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    edit(file).await?;
    let text = std::fs::read_to_string(file).context("cannot read what was edited")?;
    let _ = std::fs::remove_file(file);
    Ok(text.trim_end_matches('\n').to_owned())
}
