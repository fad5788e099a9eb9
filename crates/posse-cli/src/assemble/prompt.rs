//! The system prompt: posse's own words, where the agent is, the project's instructions, the day.
//!
//! What changes most often stands last, so that what stands before it is the same for long.

use std::path::Path;

/// posse's own words.
const OWN_WORDS: &str = include_str!("system_prompt.md");

/// What a system prompt is made from.
#[derive(Clone)]
pub(crate) struct PromptParts<'a> {
    /// In place of posse's own words.
    pub(crate) instead: Option<&'a str>,
    /// After everything but the day.
    pub(crate) more: Option<&'a str>,
    /// Where the agent works.
    pub(crate) cwd: &'a Path,
    /// What the project and the user have written down for agents.
    pub(crate) instructions: Option<String>,
    /// The day, `2026-11-15` for one.
    pub(crate) day: &'a str,
}

/// Returns the system prompt, block by block.
pub(crate) fn system(parts: PromptParts<'_>) -> Vec<String> {
    let mut blocks = vec![parts.instead.unwrap_or(OWN_WORDS).trim_end().to_owned()];
    blocks.extend(surroundings(parts));
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

/// Returns what sub-agents are told too: everything but the words about what the agent is.
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
    blocks.extend(parts.instructions);
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
            instructions: Some("Use tabs.".into()),
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
