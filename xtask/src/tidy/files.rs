//! What every file owes its reader.

use anyhow::Result;
use regex::Regex;

/// A file longer than this needs to be two.
const MOST_LINES: usize = 1_000;

/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "manager", "service", "core", "misc", "legacy",
    "stuff",
];

/// What is looked for in every file.
pub(super) struct Owed {
    /// Definitions, whose names must say something.
    named: Regex,
    /// Marks of what was left undone.
    open: Regex,
}

impl Owed {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            named: Regex::new(r"\b(?:struct|enum|trait|mod|type) (\w+)")?,
            open: Regex::new(concat!(r"\bTO", r"DO\b|\bFIX", r"ME\b|\bXX", "X\\b"))?,
        })
    }

    /// Checks one file.
    pub(super) fn check(&self, path: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |what: String| faults.push(format!("{path}: {what}"));
        if !text.starts_with("//! ") {
            fault("does not begin with //! and what it owns".into());
        }
        let lines = text.lines().count();
        if lines > MOST_LINES {
            fault(format!("{lines} lines; two rooms would read better"));
        }
        let stem = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        let is_empty = |name: &str| {
            EMPTY_NAMES.contains(&name) || name.ends_with("_v1") || name.ends_with("_v2")
        };
        if is_empty(stem) {
            fault(format!("`{stem}` says nothing about what is in it"));
        }
        for (number, line) in text.lines().enumerate() {
            let at = number + 1;
            if self.open.is_match(line) {
                fault(format!("line {at}: left open; do it or file an issue"));
            }
            let names = self.named.captures(line);
            if let Some(name) = names.as_ref().map(|found| &found[1]) {
                let vague = ["Manager", "Service", "Helper", "Util", "Utils"];
                if is_empty(name) || vague.iter().any(|word| name.ends_with(word)) {
                    fault(format!("line {at}: `{name}` says nothing about what it is"));
                }
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        let owed = Owed::new().unwrap();
        let count = |path: &str, text: &str| owed.check(path, text).len();
        assert_eq!(count("a/fork.rs", "//! Forks.\nstruct Fork;\n"), 0);
        assert_eq!(count("a/fork.rs", "struct Fork;\n"), 1, "no module doc");
        assert_eq!(
            count("a/utils.rs", "//! Things.\n"),
            1,
            "a name that says nothing"
        );
        assert_eq!(
            count(
                "a/fork.rs",
                concat!("//! Forks.\nstruct Fork", "Manager;\n")
            ),
            1
        );
        assert_eq!(count("a/fork.rs", concat!("//! Forks.\n// TO", "DO\n")), 1);
        assert_eq!(
            count(
                "a/fork.rs",
                &format!("//! Forks.\n{}", "\n".repeat(MOST_LINES))
            ),
            1
        );
    }
}
