//! The system prompt: posse's own text, the environment, memory files, the day.
//!
//! What changes most often comes last, so that the longest possible prefix stays in the prompt
//! cache.

use std::path::Path;

/// posse's own text.
const OWN_WORDS: &str = include_str!("system_prompt.md");

/// What a system prompt is made from.
#[derive(Clone)]
pub(crate) struct PromptParts<'a> {
    /// Replaces posse's own text.
    pub(crate) instead: Option<&'a str>,
    /// Inserted before the day.
    pub(crate) more: Option<&'a str>,
    /// Where the agent works.
    pub(crate) cwd: &'a Path,
    /// Memory files: instructions of the administrator, the user and the project for agents.
    pub(crate) memory: Option<String>,
    /// The day, such as `2026-11-15`.
    pub(crate) day: &'a str,
}

/// Returns the blocks of the system prompt.
pub(crate) fn system(parts: PromptParts<'_>) -> Vec<String> {
    let mut blocks = vec![parts.instead.unwrap_or(OWN_WORDS).trim_end().to_owned()];
    blocks.extend(surroundings(parts));
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

/// Returns the blocks that sub-agents get, too: everything but the text about the agent's role.
pub(crate) fn surroundings(parts: PromptParts<'_>) -> Vec<String> {
    let is_repository = parts
        .cwd
        .ancestors()
        .any(|directory| directory.join(".git").exists());
    let place = format!(
        "<environment>\nWorking directory: {}\nPlatform: {}\nGit repository: {}\n</environment>",
        parts.cwd.display(),
        std::env::consts::OS,
        if is_repository { "yes" } else { "no" },
    );
    let mut blocks = vec![place];
    blocks.extend(parts.memory);
    blocks.extend(parts.more.map(str::to_owned));
    blocks.push(format!("Today is {} (UTC).", parts.day));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_most_stands_last() {
        let parts = |instead, more| PromptParts {
            instead,
            more,
            cwd: Path::new("/nowhere/at/all"),
            memory: Some("Use tabs.".into()),
            day: "2026-11-15",
        };
        let blocks = system(parts(None, Some("Speak French.")));
        assert_eq!(blocks.len(), 5);
        assert!(
            blocks[0].starts_with("You are posse") && blocks[0].split_whitespace().count() <= 350
        );
        assert!(
            blocks[1].contains("Working directory: /nowhere/at/all\n")
                && blocks[1].contains("repository: no")
        );
        assert_eq!(
            blocks[2..],
            ["Use tabs.", "Speak French.", "Today is 2026-11-15 (UTC)."]
        );
        assert_eq!(system(parts(Some("Be a cat."), None))[0], "Be a cat.");
    }
}
