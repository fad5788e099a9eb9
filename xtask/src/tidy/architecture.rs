//! ARCHITECTURE.md: that it can be held in the head, and that what it names exists.

use std::path::Path;

use anyhow::Result;
use regex::Regex;

use crate::source::{Workspace, text_of};

const PAGE: &str = "ARCHITECTURE.md";

/// Longer than this, nobody holds it in the head.
const MOST_LINES: usize = 220;

/// Directories that hold nothing a page could name.
const SKIPPED: &[&str] = &["target", ".git"];

/// What the page says that is not so, and how long it is.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let path = workspace.root.join(PAGE);
    if !path.is_file() {
        return Ok(vec![format!("{PAGE} is missing")]);
    }
    let text = text_of(&path)?;
    let mut paths = Vec::new();
    list(&workspace.root, "", &mut paths)?;
    let known = Known { workspace, paths };
    let mut faults = Vec::new();
    let lines = text.lines().count();
    if lines > MOST_LINES {
        faults.push(format!("{PAGE}: {lines} lines, at most {MOST_LINES}"));
    }
    // In a sentence what stands between backticks, in a picture whatever looks like a file.
    let span = Regex::new("`([^`\\s]+)`")?;
    let file = Regex::new(r"([\w./{},-]+\.rs(?::[\w:]+)?)")?;
    let mut in_picture = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_picture = !in_picture;
            continue;
        }
        let words = if in_picture { &file } else { &span };
        for found in words.captures_iter(line) {
            let missing = known.missing(&found[1]);
            faults.extend(missing.map(|what| format!("{PAGE}:{}: {what}", number + 1)));
        }
    }
    Ok(faults)
}

/// Collects every path below a directory, without what is built.
fn list(directory: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}/{name}");
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &path, paths)?;
        }
        paths.push(path);
    }
    Ok(())
}

/// What can be named.
struct Known<'a> {
    workspace: &'a Workspace,
    /// Every file and directory, from the root on, each with a `/` before it.
    paths: Vec<String>,
}

impl Known<'_> {
    /// Says what of the words between two backticks does not exist.
    fn missing(&self, words: &str) -> Option<String> {
        let words = words.split('(').next().unwrap_or_default();
        if let Some((file, function)) = words.split_once(".rs:") {
            let file = format!("{file}.rs");
            let function = function.rsplit("::").next().unwrap_or_default();
            return self.missing_function(&file, function);
        }
        if is_path(words) {
            let missing = expanded(words)
                .into_iter()
                .find(|path| !self.has_path(path));
            return missing.map(|path| format!("there is no {path}"));
        }
        let mut names = words.rsplit("::");
        let (last, before) = (names.next()?, names.next()?);
        let is_name = |name: &str| {
            name.chars().all(|one| one.is_alphanumeric() || one == '_') && !name.is_empty()
        };
        let ours = is_name(last) && is_name(before) && !self.is_foreign(words);
        (ours && !self.has_member(before, last)).then(|| format!("there is no {words}"))
    }

    fn missing_function(&self, file: &str, function: &str) -> Option<String> {
        if !self.has_path(file) {
            return Some(format!("there is no {file}"));
        }
        let suffix = format!("/{file}");
        let sources = self.workspace.crates.iter().flat_map(|one| &one.files);
        let mut named = sources.filter(|source| format!("/{}", source.name).ends_with(&suffix));
        let has = named.any(|source| {
            let parsed = &source.parsed;
            let mut methods = parsed.impls.iter().flat_map(|item| &item.methods);
            let mut members = parsed.types.iter().flat_map(|item| &item.members);
            parsed.functions.iter().any(|item| item.name == function)
                || methods.any(|name| name == function)
                || members.any(|name| name == function)
        });
        (!has).then(|| format!("there is no {function} in {file}"))
    }

    /// Returns true if a path ends so; `dir/` is a directory.
    fn has_path(&self, path: &str) -> bool {
        let suffix = format!("/{}", path.trim_matches('/'));
        self.paths.iter().any(|known| known.ends_with(&suffix))
    }

    /// Returns true for paths of other crates, `std::fs`.
    fn is_foreign(&self, words: &str) -> bool {
        let first = words.split("::").next().unwrap_or_default();
        let files = self.workspace.crates.iter().flat_map(|one| &one.modules);
        let ours = files
            .into_iter()
            .any(|module| module.path.iter().any(|name| name == first));
        let lower = first.chars().next().is_some_and(char::is_lowercase);
        lower && !ours && !first.starts_with("posse_")
    }

    /// Returns true if a type, or a module, of this name has such a member.
    fn has_member(&self, owner: &str, member: &str) -> bool {
        self.workspace.crates.iter().any(|one| {
            let mut modules = one.modules.iter();
            let in_module = modules.any(|module| {
                module.path.last().is_some_and(|last| last == owner) && module.defines(member)
            });
            in_module
                || one.files.iter().any(|file| {
                    let mut impls = file.parsed.impls.iter();
                    let mut types = file.parsed.types.iter();
                    impls.any(|item| {
                        item.path.last().is_some_and(|last| last == owner)
                            && item.methods.iter().any(|name| name == member)
                    }) || types.any(|item| {
                        item.name == owner && item.members.iter().any(|name| name == member)
                    })
                })
        })
    }
}

/// Returns true for what looks like a file or a directory of the checkout.
fn is_path(words: &str) -> bool {
    const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".sql", ".sh", "/"];
    let plain = words
        .chars()
        .all(|one| one.is_alphanumeric() || "/._-{},".contains(one));
    plain && ENDINGS.iter().any(|ending| words.ends_with(ending)) && !words.starts_with('.')
}

/// `a/{b,c}.rs` means two paths.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, (inside, after))) = path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![path.to_owned()];
    };
    inside
        .split(',')
        .map(|one| format!("{before}{one}{after}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::made::Checkout;

    #[test]
    fn what_does_not_exist_is_found() {
        let page = "# A\n`room/` and `room/{part,gone}.rs`, `src/lib.rs`, `cargo xtask tidy`, `a_table`\n\
                    `Part::work`, `Part::rest`, `Kind::One`, `Kind::Three`, `Works::work`, `std::fs`, `part::make`\n\
                    `room/part.rs:make`, `part.rs:Part::work`, `part.rs:nothing`, `no.rs:make`, `Part::work(x)`\n\
                    ```\nroom/  part.rs (parts), lost.rs, `a picture`\n```\n";
        let checkout = Checkout::new(&[
            ("../ARCHITECTURE.md", page),
            ("posse-a/src/lib.rs", "mod room;\n"),
            ("posse-a/src/room.rs", "mod part;\n"),
            (
                "posse-a/src/room/part.rs",
                "pub struct Part;\nimpl Part { fn work() {} }\nenum Kind { One, Two }\n\
                 trait Works { fn work(); }\nfn make() {}\n",
            ),
        ]);
        assert_eq!(
            check(&checkout.read()).unwrap(),
            [
                "ARCHITECTURE.md:2: there is no room/gone.rs",
                "ARCHITECTURE.md:3: there is no Part::rest",
                "ARCHITECTURE.md:3: there is no Kind::Three",
                "ARCHITECTURE.md:4: there is no nothing in part.rs",
                "ARCHITECTURE.md:4: there is no no.rs",
                "ARCHITECTURE.md:6: there is no lost.rs",
            ]
        );
    }

    #[test]
    fn a_page_that_is_too_long_is_found() {
        let page = "a\n".repeat(MOST_LINES + 1);
        let checkout = Checkout::new(&[("../ARCHITECTURE.md", &page), ("posse-a/src/lib.rs", "")]);
        assert_eq!(
            check(&checkout.read()).unwrap(),
            ["ARCHITECTURE.md: 221 lines, at most 220"]
        );
    }
}
