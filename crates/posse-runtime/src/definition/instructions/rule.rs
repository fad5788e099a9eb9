//! Rules: memory files in `.claude/rules`, whose front matter can name the files they are about.
//! Pure.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;

use crate::definition::front::value::joined;
use crate::definition::front::{Keys, Page, Problem};

/// The key that names the files.
const PATHS: &str = "paths";
/// The keys of front matter.
const KEYS: Keys = Keys {
    all: &[PATHS, "description"],
    texts: &["description"],
    prose: &["description"],
    lists: &[PATHS],
};
/// Maximum number of globs in a rule.
const MOST: usize = 100;

/// Why globs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GlobError {
    /// There are too many.
    #[error("`{PATHS}` has more than {MOST} globs")]
    TooMany,
    /// One is not a glob.
    #[error("`{PATHS}`: {0}")]
    Bad(#[from] ignore::Error),
}

/// A parsed rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its text, without the front matter.
    pub text: String,
    /// The files it is about; none for every file.
    pub globs: Option<PathGlobs>,
}

/// Globs of a rule, relative to a directory.
#[derive(Clone, Debug)]
pub struct PathGlobs {
    /// The globs as they are written.
    pub patterns: Vec<String>,
    matcher: Gitignore,
    /// The directory that they are relative to, itself relative to the project's top.
    within: PathBuf,
}

impl PartialEq for PathGlobs {
    fn eq(&self, other: &Self) -> bool {
        // The matcher follows from the patterns.
        (&self.patterns, &self.within) == (&other.patterns, &other.within)
    }
}

impl Eq for PathGlobs {}

impl PathGlobs {
    /// Parses globs such as `src/**/*.{ts,tsx}`. Unlike in a `.gitignore`, `*.md` means files at
    /// the top only.
    pub fn new(patterns: Vec<String>) -> Result<Self, GlobError> {
        if patterns.len() > MOST {
            return Err(GlobError::TooMany);
        }
        let mut builder = GitignoreBuilder::new(Path::new(""));
        for pattern in &patterns {
            let plain = pattern.trim_start_matches("./").trim_start_matches('/');
            builder.add_line(None, &format!("/{plain}"))?;
        }
        let matcher = builder.build()?;
        Ok(Self {
            patterns,
            matcher,
            within: PathBuf::new(),
        })
    }

    /// Returns the globs of a rule in this directory, which is relative to the project's top.
    pub fn within(self, directory: &Path) -> Self {
        let within = directory.to_owned();
        Self { within, ..self }
    }

    /// Returns true if a file is meant. Its path is relative to the project's top.
    pub fn matches(&self, path: &Path) -> bool {
        path.strip_prefix(&self.within).is_ok_and(|path| {
            let is_inside = path.is_relative() && !path.as_os_str().is_empty();
            is_inside
                && self
                    .matcher
                    .matched_path_or_any_parents(path, false)
                    .is_ignore()
        })
    }
}

/// Parses a rule.
pub fn read(text: &str) -> Result<Rule, Problem> {
    let page = Page::of(text, &KEYS)?;
    let paths = page.fields.into_iter().find(|field| field.key == PATHS);
    let globs = match paths {
        Some(field) if !is_nothing(&field.value) => {
            let text =
                joined(PATHS, &field.value).map_err(|error| Problem::new(field.line, error))?;
            let globs = PathGlobs::new(split(&text));
            Some(globs.map_err(|error| Problem::new(field.line, error))?)
        }
        _ => None,
    };
    let text = page.body;
    Ok(Rule { text, globs })
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Returns the parts between commas outside braces.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(|part| part.trim().trim_matches(['"', '\'']))
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves FC-09 (part: rules)
    #[test]
    fn front_matter_names_the_files() {
        let globs = |front: &str| {
            let rule = read(&format!("---\n{front}\n---\n\nUse tabs.\n")).unwrap();
            assert_eq!(rule.text, "Use tabs.");
            rule.globs.map(|globs| globs.patterns)
        };
        let one = Some(vec!["src/**/*.ts".to_owned()]);
        assert_eq!(globs("paths: src/**/*.ts"), one);
        assert_eq!(globs("paths: \"src/**/*.ts\""), one);
        assert_eq!(globs("paths:\n  - src/**/*.ts"), one);
        let two = Some(vec!["**/*.{ts,tsx}".to_owned(), "lib/**".to_owned()]);
        assert_eq!(globs("paths:\n  - \"**/*.{ts,tsx}\"\n  - lib/**"), two);
        assert_eq!(globs("paths: **/*.{ts,tsx}, lib/**"), two, "not YAML");
        assert_eq!(globs("description: Style"), None);
        assert_eq!(globs("paths:"), None);
        assert_eq!(read("Use tabs.").unwrap().globs, None);
        assert_eq!(
            read("---\nx: 1\npaths: {a: b}\n---\nx").unwrap_err().line,
            3
        );
        assert_eq!(read("---\npaths: a{b\n---\nx").unwrap_err().line, 2);
    }

    #[test]
    fn globs_are_relative_to_the_top() {
        let table = [
            ("src/**/*.ts", "src/a/b.ts", true),
            ("src/**/*.ts", "src/b.ts", true),
            ("src/**/*.ts", "lib/src/b.ts", false),
            ("*.md", "README.md", true),
            ("*.md", "docs/a.md", false),
            ("**/*.md", "docs/a.md", true),
            ("./src/*.rs", "src/a.rs", true),
            ("src", "src/a/b.rs", true),
            ("src/", "src/a/b.rs", true),
            ("**/*.{ts,tsx}", "a/b.tsx", true),
            ("**/*.{ts,tsx}", "a/b.js", false),
        ];
        for (pattern, path, expected) in table {
            let globs = PathGlobs::new(vec![pattern.to_owned()]).unwrap();
            assert_eq!(globs.matches(Path::new(path)), expected, "{pattern} {path}");
            let globs = globs.within(Path::new("lib"));
            let below = Path::new("lib").join(path);
            assert_eq!(globs.matches(&below), expected, "{pattern} in lib");
            assert!(!globs.matches(Path::new("other")));
        }
    }
}
