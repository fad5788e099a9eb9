//! What a hook is for within its event.

use std::fmt;
use std::sync::Arc;

use fancy_regex::Regex;

use crate::hook::HookEvent;

/// Older names of tools, which matchers may have.
const OLDER: [(&str, &str); 1] = [("Task", "Agent")];

/// What a hook's `matcher` says.
#[derive(Clone)]
pub enum Matcher {
    /// Everything.
    All,
    /// One of these names.
    Names(Vec<String>),
    /// Names in which this is found.
    Pattern(Arc<Regex>),
}

/// A pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern: {why}")]
pub struct WrongPattern {
    pattern: String,
    why: String,
}

impl Matcher {
    /// Reads a matcher of a hook for this event.
    pub fn read(text: &str, event: HookEvent) -> Result<Self, WrongPattern> {
        let is_plain = |c: char| match event {
            HookEvent::FileChanged | HookEvent::StopFailure => {
                c.is_ascii_alphanumeric() || matches!(c, '_' | '|')
            }
            _ => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|'),
        };
        if text.is_empty() || text == "*" || event.matched().is_none() {
            return Ok(Self::All);
        }
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(str::trim);
            let names = names.filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        let pattern = Regex::new(text).map_err(|error| WrongPattern {
            pattern: text.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self::Pattern(Arc::new(pattern)))
    }

    /// Returns true if this name is meant. One that cannot be compared in reasonable time counts as
    /// meant.
    pub fn matches(&self, name: &str) -> bool {
        let older = OLDER.iter().filter(|(_, newer)| *newer == name);
        let mut names = older.map(|(older, _)| *older).chain([name]);
        match self {
            Self::All => true,
            Self::Names(listed) => names.any(|name| listed.iter().any(|it| it == name)),
            Self::Pattern(pattern) => names.any(|name| pattern.is_match(name).unwrap_or(true)),
        }
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::Names(one), Self::Names(other)) => one == other,
            (Self::Pattern(one), Self::Pattern(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

impl Eq for Matcher {}

impl fmt::Display for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("*"),
            Self::Names(names) => out.write_str(&names.join("|")),
            Self::Pattern(pattern) => out.write_str(pattern.as_str()),
        }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Matcher({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lists_and_patterns() {
        let check = |matcher: &str, name: &str, expected: bool| {
            let read = Matcher::read(matcher, HookEvent::PreToolUse).unwrap();
            assert_eq!(read.matches(name), expected, "{matcher} {name}");
        };
        for all in ["", "*", ".*"] {
            check(all, "Bash", true);
        }
        check("Bash", "Bash", true);
        check("Bash", "BashOutput", false);
        check("bash", "Bash", false);
        check("Edit|Write", "Write", true);
        check("Edit, Write", "Write", true);
        // The older name of a tool.
        check("Task", "Agent", true);
        check("Task", "TaskList", false);
        // Not anchored.
        check("^Note", "NoteRead", true);
        check("ote.?R", "NoteRead", true);
        check("^(?!Read$).*", "Read", false);
        check("^(?!Read$).*", "Bash", true);
        // A server alone is the name of no tool.
        check("mcp__memory", "mcp__memory__add", false);
        check("mcp__memory__.*", "mcp__memory__add", true);
        let wrong = Matcher::read("Bash(", HookEvent::PreToolUse).unwrap_err();
        assert!(
            wrong.to_string().starts_with("`Bash(` is not a pattern:"),
            "{wrong}"
        );
        let file = Matcher::read("package-lock.json", HookEvent::FileChanged).unwrap();
        assert!(file.matches("package-lock.json"));
        // A matcher means nothing where there is nothing to compare it with.
        assert_eq!(
            Matcher::read("never", HookEvent::Stop).unwrap(),
            Matcher::All
        );
    }
}
