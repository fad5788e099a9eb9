//! The person's editor, which has the terminal for itself meanwhile.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use posse_tui::terminal::TerminalInput;

use crate::config::environment::variable;

/// Returns the text after it was edited in `file`, which is removed then.
#[expect(
    clippy::disallowed_methods,
    reason = "a person's own editor, on their terminal"
)]
pub(super) async fn edited(text: &str, file: &Path) -> anyhow::Result<String> {
    TerminalInput::stop();
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| variable(name));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    // By a shell, since the variable may have arguments.
    let mut child = tokio::process::Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(file)
        .stdin(Stdio::inherit())
        .spawn()
        .with_context(|| format!("cannot start {editor}"))?;
    let ended = child.wait().await?;
    anyhow::ensure!(ended.success(), "{editor} ended with {ended}");
    let text = std::fs::read_to_string(file).context("cannot read what was edited")?;
    let _ = std::fs::remove_file(file);
    Ok(text.trim_end_matches('\n').to_owned())
}
