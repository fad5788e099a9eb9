//! The person's editor, which has the terminal for itself meanwhile.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use posse_tui::terminal::TerminalInput;

use crate::config::environment::variable;

/// Opens a file or a directory in the person's editor, and waits until it is closed.
#[expect(
    clippy::disallowed_methods,
    reason = "a person's own editor, on their terminal"
)]
pub(crate) async fn edit(path: &Path) -> anyhow::Result<()> {
    TerminalInput::stop();
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| variable(name));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // By a shell, since the variable may have arguments.
    let mut child = tokio::process::Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(path)
        .stdin(Stdio::inherit())
        .spawn()
        .with_context(|| format!("cannot start {editor}"))?;
    let ended = child.wait().await?;
    anyhow::ensure!(ended.success(), "{editor} ended with {ended}");
    Ok(())
}
