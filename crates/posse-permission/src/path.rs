//! Paths in rules: gitignore patterns, and protected places. Never reads the disk.

use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::mirror::RulePaths;
use crate::rule_problem::RuleProblem;
use posse_port::tool::Workspace;

/// The pattern of `Read(…)` or `Edit(…)`.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    exact: Beneath,
    /// The same, ignoring case.
    folded: Beneath,
    /// The only path it names, if there are no wildcards.
    literal: Option<Literal>,
    /// Its components, if there are wildcards; `**` is any number of them.
    parts: Vec<String>,
    /// The deepest directory that everything it matches is in, or the only path that it names.
    start: PathBuf,
}

/// A path without wildcards.
#[derive(Clone, Debug)]
struct Literal {
    path: PathBuf,
    /// The name is meant at any depth.
    anywhere: bool,
    /// What is inside is meant, not the path itself.
    beneath: bool,
}

/// A gitignore pattern inside a directory.
#[derive(Clone, Debug)]
struct Beneath {
    base: PathBuf,
    matcher: Gitignore,
}

impl PathPattern {
    /// Parses a gitignore line that applies inside `base`.
    pub(super) fn new(base: &Path, line: &str) -> Result<Self, RuleProblem> {
        if line.trim_matches('/').is_empty() {
            return Err(RuleProblem::NoPath);
        }
        if line.starts_with('!') {
            return Err(RuleProblem::Negated);
        }
        let named = line.trim_end_matches("/**").trim_end_matches('/');
        let literal = (!named.contains(['*', '?', '[', '\\', '{'])).then(|| {
            let path = base.join(named.trim_start_matches('/'));
            Literal {
                path,
                anywhere: !named.contains('/') && line == named,
                beneath: line.ends_with("/**"),
            }
        });
        let anywhere = if named.contains('/') { "" } else { "**" };
        let above = base.to_string_lossy();
        let parts = above
            .split('/')
            .chain([anywhere])
            .chain(named.split('/'))
            .map(fold_text);
        let parts = parts.filter(|part| !part.is_empty()).collect();
        let start = match &literal {
            Some(literal) if literal.anywhere => base.to_owned(),
            Some(literal) => literal.path.clone(),
            None if !named.contains('/') => base.to_owned(),
            None => {
                let plain = named.split('/').filter(|part| !part.is_empty());
                let plain = plain.take_while(|part| !part.contains(['*', '?', '[', '\\', '{']));
                plain.fold(base.to_owned(), |path, part| path.join(part))
            }
        };
        let exact = Beneath::new(base.to_owned(), line)?;
        let folded = Beneath::new(fold(base), &line.to_lowercase())?;
        Ok(Self {
            exact,
            folded,
            literal,
            parts,
            start,
        })
    }

    /// Returns the path that it names; an error with the directory in which its matches are, if
    /// there may be several.
    pub(super) fn place(&self) -> Result<&Path, &Path> {
        match &self.literal {
            Some(literal) if !literal.anywhere => Ok(&self.start),
            _ => Err(&self.start),
        }
    }

    /// Returns true if the exact path matches. For allow rules.
    pub(super) fn allows(&self, path: &Path, workspace: &Workspace) -> bool {
        workspace
            .twins(path)
            .any(|path| self.exact.matches(&path, false))
    }

    /// Returns true if it names this file and no other.
    pub(super) fn is_just(&self, path: &Path, workspace: &Workspace) -> bool {
        let just = |named: &Literal| {
            !named.anywhere
                && !named.beneath
                && workspace.twins(path).any(|path| named.path == path)
        };
        self.literal.as_ref().is_some_and(just)
    }

    /// Returns true if the path could match: `.ENV` counts as `.env`, and what could be a
    /// directory is one. For deny and ask rules.
    pub(super) fn touches(&self, path: &Path, workspace: &Workspace) -> bool {
        workspace
            .lookalikes(path)
            .any(|path| self.is_touched(&path))
    }

    /// Returns true if a shell's glob, made absolute, could match something that this pattern
    /// touches.
    pub(super) fn may_be(&self, glob: &Path, workspace: &Workspace) -> bool {
        workspace
            .lookalikes(glob)
            .any(|glob| self.stands_for(&glob))
    }

    /// Returns true if a shell's glob, made absolute, could match something that this pattern's
    /// own wildcards match.
    pub(super) fn may_meet(&self, glob: &Path, workspace: &Workspace) -> bool {
        let meets = |glob: &Path| {
            let glob = folded_parts(glob);
            glob.len() > DEEPEST || meet(&glob, &self.parts)
        };
        self.literal.is_none() && workspace.lookalikes(glob).any(|glob| meets(&glob))
    }

    fn is_touched(&self, path: &Path) -> bool {
        self.folded.matches(&fold(path), true)
    }

    fn stands_for(&self, glob: &Path) -> bool {
        let stand_in = glob.to_string_lossy().replace(['*', '?'], "x");
        if self.is_touched(Path::new(&stand_in)) {
            return true;
        }
        let Some(named) = &self.literal else {
            return false;
        };
        let literal = match (named.anywhere, glob.parent(), named.path.file_name()) {
            (true, Some(parent), Some(name)) => parent.join(name),
            _ => named.path.clone(),
        };
        let (glob, literal) = (folded_parts(glob), folded_parts(&literal));
        // A directory is only read through something inside it.
        glob.len() >= literal.len() + usize::from(named.beneath)
            && glob
                .iter()
                .zip(&literal)
                .all(|(glob, part)| overlap(glob, part))
    }
}

/// Globs that are deeper could match anything.
const DEEPEST: usize = 64;

/// Returns the components of a path in lower case.
fn folded_parts(path: &Path) -> Vec<String> {
    path.components()
        .skip(1)
        .map(|part| fold_text(&part.as_os_str().to_string_lossy()))
        .collect()
}

fn fold_text(text: &str) -> String {
    text.to_lowercase()
}

/// Returns true if some path matches both the glob and the pattern, component by component.
fn meet(glob: &[String], pattern: &[String]) -> bool {
    let Some((first, others)) = pattern.split_first() else {
        return true;
    };
    if first == "**" {
        return (0..=glob.len()).any(|at| meet(glob.get(at..).unwrap_or_default(), others));
    }
    glob.split_first()
        .is_some_and(|(part, beneath)| overlap(part, first) && meet(beneath, others))
}

/// Returns true if some name matches both a component of a shell's glob and one of a pattern.
pub(super) fn overlap(glob: &str, pattern: &str) -> bool {
    // The shell's wildcards do not match a leading dot.
    if glob.starts_with(['*', '?', '[']) && pattern.starts_with('.') {
        return false;
    }
    let (glob, pattern) = (wildcards(glob), wildcards(pattern));
    // A table instead of recursion, which would take exponential time with many stars. Each row
    // tells if the rests from here on can match.
    let mut below = vec![false; pattern.len() + 1];
    for at in (0..=glob.len()).rev() {
        let mut row = vec![false; pattern.len() + 1];
        for over in (0..=pattern.len()).rev() {
            let get = |row: &[bool], over: usize| row.get(over).copied().unwrap_or_default();
            let met = match (glob.get(at), pattern.get(over)) {
                (None, None) => true,
                (Some(Wild::Many), Some(_)) => get(&below, over) || get(&row, over + 1),
                (Some(Wild::Many), None) => get(&below, over),
                (_, Some(Wild::Many)) => get(&row, over + 1) || get(&below, over),
                (Some(Wild::Just(a)), Some(Wild::Just(b))) => a == b && get(&below, over + 1),
                (Some(_), Some(_)) => get(&below, over + 1),
                (Some(_), None) | (None, Some(_)) => false,
            };
            if let Some(cell) = row.get_mut(over) {
                *cell = met;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or_default()
}

/// A character of a component, or a wildcard.
enum Wild {
    Many,
    One,
    Just(char),
}

/// Parses a component. Whatever is not plain counts as a wildcard for anything.
fn wildcards(text: &str) -> Vec<Wild> {
    let mut out = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '*' | '\\' => Wild::Many,
            '?' => Wild::One,
            '[' | '{' => {
                let close = if c == '[' { ']' } else { '}' };
                if let Some((_, after)) = rest.as_str().rsplit_once(close) {
                    rest = after.chars();
                }
                Wild::Many
            }
            c => Wild::Just(c),
        });
    }
    out
}

impl Beneath {
    fn new(base: PathBuf, line: &str) -> Result<Self, RuleProblem> {
        let mut builder = GitignoreBuilder::new(&base);
        // Otherwise it would be a comment, and the rule would silently match nothing.
        let line = if line.starts_with('#') {
            format!("\\{line}")
        } else {
            line.to_owned()
        };
        builder
            .add_line(None, &line)
            .map_err(|error| RuleProblem::Pattern(error.to_string()))?;
        let matcher = builder
            .build()
            .map_err(|error| RuleProblem::Pattern(error.to_string()))?;
        Ok(Self { base, matcher })
    }

    fn matches(&self, path: &Path, is_directory: bool) -> bool {
        // Component by component: `/w-evil` is not inside `/w`.
        path.strip_prefix(&self.base).is_ok_and(|inside| {
            !inside.as_os_str().is_empty()
                && self
                    .matcher
                    .matched_path_or_any_parents(inside, is_directory)
                    .is_ignore()
        })
    }
}

/// Returns the path as a file system that ignores case sees it.
fn fold(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}

/// Makes a path absolute and removes `.` and `..`, by its text alone. Detours through `/proc` are
/// resolved.
pub(super) fn absolute(cwd: &Path, path: &str) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in cwd.join(path).components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(part) => out.push(part),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
        // After every component, because a `..` that follows counts from where the link leads.
        if let Some(real) = behind_proc(cwd, &out) {
            out = real;
        }
    }
    out
}

/// Returns what `/proc/self/root` and `/proc/self/cwd` refer to, for a command that runs in this
/// directory.
pub fn behind_proc(cwd: &Path, path: &Path) -> Option<PathBuf> {
    let mut parts = path
        .strip_prefix("/proc")
        .ok()?
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let last = parts.next_back()?;
    let who = parts.next()?;
    if !(who == "self" || who == "thread-self" || who.chars().all(|c| c.is_ascii_digit())) {
        return None;
    }
    match &*last {
        "root" => Some(PathBuf::from("/")),
        "cwd" => Some(cwd.to_owned()),
        _ => None,
    }
}

/// Returns true if the path is inside one of the roots.
pub(super) fn is_beneath(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// Files that run later or define what may run: a rule cannot allow editing them.
const PROTECTED: &[&str] = &[
    // Version control, and what tools of our kind are told by.
    ".git",
    ".gitmodules",
    ".gitconfig",
    ".posse",
    ".claude",
    ".agent",
    ".codex",
    ".cursor",
    ".gemini",
    ".mcp.json",
    // Editors and package tools that run what they read.
    ".vscode",
    ".idea",
    ".envrc",
    ".npmrc",
    ".ripgreprc",
    ".bazelrc",
    ".cargo",
    ".devcontainer",
    ".exrc",
    ".gdbinit",
    ".githooks",
    ".husky",
    ".lldbinit",
    ".mise.toml",
    ".nvimrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".tool-versions",
    ".vimrc",
    ".yarn",
    ".yarnrc.yml",
    ".zed",
    // Shells.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
];

/// Files that run later, too, but that people edit often: nobody edits them unasked in mode
/// acceptEdits, and a rule can allow it. With `HEAD` a directory can become a repository.
const WATCHED: &[&str] = &[
    ".github/workflows",
    "conftest.py",
    HEAD,
    "mise.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
];

/// Returns true if a file of this name may be protected or watched.
pub fn may_be_guarded(name: &std::ffi::OsStr) -> bool {
    let is_last = |guarded: &&str| {
        let last = guarded.rsplit('/').next().unwrap_or_default();
        name.eq_ignore_ascii_case(last)
    };
    PROTECTED.iter().chain(WATCHED).any(is_last)
}

/// Returns the names of files that must not appear in a directory that people work in. `unasked` if
/// no person has agreed to what makes them.
pub fn guarded_names(unasked: bool) -> Vec<&'static str> {
    // Package tools make it; what they run in it is named by a file that is protected.
    let made = ".yarn";
    let protected = PROTECTED.iter().filter(|name| **name != made);
    let watched = WATCHED.iter().filter(|name| unasked && **name != HEAD);
    protected
        .chain(watched.filter(|name| !name.contains('/')))
        .copied()
        .collect()
}

/// With it a directory can become a repository, and many programs write one.
const HEAD: &str = "HEAD";

/// Returns the watched name in a path.
pub(super) fn watched(path: &Path, workspace: &Workspace) -> Option<&'static str> {
    let parts = folded_parts(&Path::new("/").join(inside(path, workspace)));
    let is_named = |watched: &&&str| {
        let names: Vec<String> = watched.split('/').map(fold_text).collect();
        parts.windows(names.len()).any(|parts| parts == names)
    };
    WATCHED.iter().find(is_named).copied()
}

/// Returns the protected name in the path, whether or not it exists. Names of roots do not count:
/// a worktree is inside a `.posse`.
pub(super) fn protected(path: &Path, workspace: &Workspace) -> Option<&'static str> {
    named_protected(path, workspace, |name, part| name == part)
}

/// Returns the protected name that a shell's glob, made absolute, could match.
pub(super) fn may_be_protected(glob: &Path, workspace: &Workspace) -> Option<&'static str> {
    named_protected(glob, workspace, |name, part| overlap(part, name))
}

/// Returns the part of a path inside the deepest root that has it: a worktree lies in posse's home,
/// and `.posse` above it must not protect everything inside.
fn inside<'p>(path: &'p Path, workspace: &Workspace) -> &'p Path {
    let tops = workspace.tops().filter(|top| path.starts_with(top));
    let top = tops.max_by_key(|top| top.components().count());
    top.and_then(|top| path.strip_prefix(top).ok())
        .unwrap_or(path)
}

/// Returns the protected name inside the workspace's part of a path.
fn named_protected(
    path: &Path,
    workspace: &Workspace,
    is: impl Fn(&str, &str) -> bool,
) -> Option<&'static str> {
    inside(path, workspace).components().find_map(|part| {
        let part = part.as_os_str().to_string_lossy().to_lowercase();
        PROTECTED.iter().find(|name| is(name, &part)).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(roots: &[&str]) -> Workspace {
        Workspace {
            cwd: "/w".into(),
            roots: roots.iter().map(PathBuf::from).collect(),
            spill: "/spill".into(),
            home: None,
            mirror: None,
            notes: None,
        }
    }

    #[test]
    fn patterns() {
        let table = [
            ("/w", "/secrets/**", "/w/secrets/a/b", true),
            ("/w", "/secrets/**", "/w/sub/secrets/a", false),
            ("/w", "/secrets/**", "/w-evil/secrets/a", false),
            ("/w", "/src", "/w/src/deep/a.rs", true),
            ("/w", "*.pem", "/w/deep/key.pem", true),
            ("/w", ".env", "/w/deep/.env", true),
            ("/w", ".env", "/w/.environment", false),
            ("/", "/etc/**", "/etc/passwd", true),
        ];
        for (base, line, path, expected) in table {
            let pattern = PathPattern::new(Path::new(base), line).unwrap();
            assert_eq!(
                pattern.allows(Path::new(path), &workspace(&[])),
                expected,
                "{line} beneath {base} and {path}"
            );
            assert_eq!(
                pattern.touches(Path::new(path), &workspace(&[])),
                expected,
                "{line} beneath {base} and {path}"
            );
        }
    }

    #[test]
    fn denying_ignores_case_and_allowing_does_not() {
        let pattern = PathPattern::new(Path::new("/w"), ".env").unwrap();
        assert!(pattern.touches(Path::new("/W/.ENV"), &workspace(&[])));
        assert!(!pattern.allows(Path::new("/w/.ENV"), &workspace(&[])));
    }

    #[test]
    fn globs_that_may_be_a_denied_file() {
        let pattern = PathPattern::new(Path::new("/w"), ".env").unwrap();
        let beneath = PathPattern::new(Path::new("/w"), "/secrets/**").unwrap();
        for (glob, expected) in [
            ("/w/.e*v", true),
            ("/w/.*", true),
            ("/w/*", false),
            ("/w/src/.e??", true),
        ] {
            assert_eq!(
                pattern.may_be(Path::new(glob), &workspace(&[])),
                expected,
                "{glob}"
            );
        }
        for (glob, expected) in [
            ("/w/secrets/*", true),
            ("/w/sec*", false),
            ("/w/s*/key", true),
            ("/w/x*", false),
        ] {
            assert_eq!(
                beneath.may_be(Path::new(glob), &workspace(&[])),
                expected,
                "{glob}"
            );
        }
    }

    #[test]
    fn globs_that_meet_wildcards() {
        let table = [
            ("*.pem", "/w/key.p*", true),
            ("*.pem", "/w/key.pe[m]", true),
            ("*.pem", "/w/deep/*", true),
            ("*.pem", "/w/*.rs", false),
            ("**/.env", "/w/a/.e*v", true),
            ("**/.env", "/w/.en[v]", true),
            ("**/.env", "/w/*", false),
            ("/secrets/*.key", "/w/s*/a.k?y", true),
            ("/secrets/*.key", "/w/src/*.k?y", false),
            ("*.pem", "/out/*.pem", false),
        ];
        for (line, glob, expected) in table {
            let pattern = PathPattern::new(Path::new("/w"), line).unwrap();
            assert_eq!(
                pattern.may_meet(Path::new(glob), &workspace(&[])),
                expected,
                "{line} and {glob}"
            );
        }
        let workspace = workspace(&["/w"]);
        for (glob, expected) in [
            ("/w/.gi?/x", true),
            ("/w/.[g]it/x", true),
            ("/w/*/x", false),
            ("/w/.gitig*", false),
        ] {
            assert_eq!(
                may_be_protected(Path::new(glob), &workspace).is_some(),
                expected,
                "{glob}"
            );
        }
    }

    #[test]
    fn paths_are_made_absolute() {
        let table = [
            ("a/./b/../c", "/w/a/c"),
            ("/x/../../y", "/y"),
            ("/proc/self/root/w/.env", "/w/.env"),
            ("/proc/self/cwd/.env", "/w/.env"),
            ("/proc/12/cwd/.env", "/w/.env"),
            ("/proc/self/environ", "/proc/self/environ"),
        ];
        for (given, expected) in table {
            assert_eq!(
                absolute(Path::new("/w"), given),
                Path::new(expected),
                "{given}"
            );
        }
    }

    #[test]
    fn protected_places() {
        let workspace = workspace(&["/h/.posse/trees/a", "/w"]);
        let table = [
            ("/w/.git", true),
            ("/w/deep/.GIT/hooks/x", true),
            ("/w/.posse/settings.json", true),
            ("/w/.gitignore", false),
            ("/h/.posse/trees/a/src/main.rs", false),
            ("/h/.posse/trees/a/.mcp.json", true),
            ("/h/.bashrc", true),
        ];
        for (path, expected) in table {
            assert_eq!(
                protected(Path::new(path), &workspace).is_some(),
                expected,
                "{path}"
            );
        }
    }
}
