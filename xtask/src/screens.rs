//! `cargo xtask screens`: draws the pictures of docs/screens again.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

/// Runs the example of posse-tui that draws them. Its test says when one is stale.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let mut example = crate::cargo(root);
    example.args(["run", "--quiet", "--profile", "ci", "-p", "posse-tui"]);
    example.args(["--example", "screens", "--", "docs/screens"]);
    crate::finished(&mut example)
}
