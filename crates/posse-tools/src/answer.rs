//! Answers of tools: errors, short texts, and blocking work.

use std::error::Error;
use std::fmt::Display;
use std::path::Path;

use posse_port::tool::{ToolContext, ToolError, Workspace};
use tokio_util::sync::CancellationToken;

/// The answer of a cancelled call.
const INTERRUPTED: &str = "interrupted before it finished";

/// Returns an error that the model is told.
pub(crate) fn tell(what: impl Into<String>) -> ToolError {
    ToolError::Tell(what.into())
}

/// Returns an error of the system, with what was tried.
pub(crate) fn cannot(what: &str, path: &Path, why: impl Display) -> ToolError {
    tell(format!("cannot {what} {}: {why}", path.display()))
}

/// Returns what an error goes back to.
pub(crate) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Returns an error if the call is cancelled.
pub(crate) fn go_on(cancel: &CancellationToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        Err(tell(INTERRUPTED))
    } else {
        Ok(())
    }
}

/// Runs blocking work on another thread. `work` checks the cancellation token in its loops.
pub(crate) async fn blocking<T: Send + 'static>(
    context: ToolContext,
    work: impl FnOnce(&ToolContext) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(move || {
        go_on(&context.cancel)?;
        work(&context)
    });
    done.await
        .unwrap_or_else(|error| Err(tell(format!("the tool failed: {error}"))))
}

/// Returns a path for people and models: relative to the working directory, if it is inside.
pub(crate) fn shown(path: &Path, workspace: &Workspace) -> String {
    match path.strip_prefix(&workspace.cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Returns the first line of `text`, at most `most` characters, safe to show as a title.
pub(crate) fn headline(text: &str, most: usize) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line
        .chars()
        .take(most)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Returns the longest prefix of `text` within `most` bytes.
pub(crate) fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// `1 line`, `2 lines`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(clip("aüb", 2), "a");
        assert_eq!(clip("aüb", 9), "aüb");
        assert_eq!(headline("ls -l\nrm x", 80), "ls -l…");
        assert_eq!(headline(" l\x1bs ", 80), "l\u{fffd}s");
        assert_eq!(headline("abcdef", 3), "abc…");
    }
}
