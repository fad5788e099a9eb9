//! The rules that a person is offered for a command line: one that names each command in full, and
//! one with `*` where the program and its subcommand are known.

use super::options::{SAFE_OPTIONS, always_reaches};
use super::word::Word;
use super::{GIT_READERS, Line, POSSE, joined, within};
use crate::Policy;
use crate::pattern::CommandPattern;
use crate::rule::About;

/// Programs whose subcommands may be generalised: with any arguments they run and write what the
/// subcommand is for. What goes further is in the table of options.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "bench", "build", "check", "clippy", "doc", "metadata", "test", "tree",
        ],
    ),
    ("git", &["add", "commit"]),
    ("git", GIT_READERS),
    ("npm", &["ls", "outdated", "test", "view"]),
];

/// Programs without subcommands that only read what they are given.
const SEARCHERS: &[&str] = &["find", "rg"];

/// Programs that run what they are given to read, unless a file is named: the same words may do
/// anything. A table, not a proof, as that of the options.
const INTERPRETERS: &[&str] = &[
    "at",
    "batch",
    "bc",
    "bun",
    "crontab",
    "deno",
    "ftp",
    "gdb",
    "irb",
    "lua",
    "mysql",
    "node",
    "perl",
    "php",
    "psql",
    "python",
    "redis-cli",
    "ruby",
    "sftp",
    "sqlite3",
    "ssh",
    "telnet",
];

impl Line<'_> {
    /// Returns rules that could allow the line, from narrow to wide: each list has a rule for every
    /// command that is not allowed yet. Empty if no rule covers the line soundly.
    pub(in super::super) fn rules_to_allow(&self, policy: &Policy) -> Vec<Vec<String>> {
        let Some(commands) = self.unallowed(policy) else {
            return Vec::new();
        };
        let exact: Option<Vec<String>> = commands.iter().map(|words| in_full(words)).collect();
        let wide: Option<Vec<String>> = commands.iter().map(|words| of_its_kind(words)).collect();
        let mut sets: Vec<Vec<String>> = [exact, wide].into_iter().flatten().collect();
        for rules in &mut sets {
            rules.sort();
            rules.dedup();
        }
        sets
    }

    /// Returns the commands that no rule allows; `None` if rules could allow them but would allow
    /// more than what can be seen.
    fn unallowed(&self, policy: &Policy) -> Option<Vec<&[Word]>> {
        let unsound = self.beyond_rules().is_some()
            || self.script.has_input
            || self.script.files.iter().any(|file| !file.is_free())
            // In another directory the same words do something else.
            || self.places.len() > 1;
        if unsound {
            return None;
        }
        let patterns = policy.allow.iter().filter_map(|rule| match &rule.about {
            About::Command(pattern) => Some(pattern),
            _ => None,
        });
        let allowing: Vec<&CommandPattern> = patterns.collect();
        let mut found = Vec::new();
        for command in &self.script.commands {
            let words = command.words.as_slice();
            if within::could_run(words, POSSE) || !command.variables.is_empty() {
                return None;
            }
            let allowed = || self.command_allowed(command, &allowing, policy).is_ok();
            if command.within || allowed() {
                continue;
            }
            if !is_told_by_its_words(words) {
                return None;
            }
            found.push(words);
        }
        Some(found)
    }
}

/// Returns true if a command does the same whatever it is given to read and whatever ran before.
fn is_told_by_its_words(words: &[Word]) -> bool {
    let inner = within::innermost(words);
    let name = within::name(inner);
    let named_file = inner.len() > 1 && !inner.iter().any(|word| word.text.starts_with('-'));
    let interprets = INTERPRETERS
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(is_version));
    !inner.is_empty()
        && !within::wraps(inner)
        && !within::is_shell(inner)
        && !always_reaches(name)
        && !matches!(name, "cd" | "pushd" | "popd")
        && (!interprets || named_file)
}

/// Returns true for what follows the name of an interpreter, as in `python3.12`.
fn is_version(rest: &str) -> bool {
    rest.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Returns the rule that names a command in full; `None` if none can.
fn in_full(words: &[Word]) -> Option<String> {
    if !words.iter().all(|word| word.literal && !word.glob) {
        return None;
    }
    // As text of a command, a first word like `A=b` would set a variable.
    if words.first()?.text.contains('=') {
        return None;
    }
    let quoted: Option<Vec<String>> = words.iter().map(|word| quoted(&word.text)).collect();
    let text = quoted?.join(" ");
    let pattern = CommandPattern::new(&text);
    (pattern.is_exact() && pattern.allows(&joined(words))).then(|| format!("Bash({text})"))
}

/// Returns a word as a shell and a rule read it alike.
fn quoted(word: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if word.contains(['*', '\'']) || word.contains(char::is_control) {
        return None;
    }
    Some(match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{word}'"),
    })
}

/// Returns the rule for the program and subcommand with any arguments; `None` if that would be more
/// than the same kind of command.
fn of_its_kind(words: &[Word]) -> Option<String> {
    let inner = within::innermost(words);
    let text = |at: usize| {
        let word = inner.get(at).filter(|word| word.literal && !word.glob)?;
        Some(word.text.as_str())
    };
    let program = text(0)?;
    if SAFE_OPTIONS.contains(&program) || SEARCHERS.contains(&program) {
        return Some(format!("Bash({program} *)"));
    }
    let subcommand = text(1)?;
    let known = |(name, subcommands): &(&str, &[&str])| {
        *name == program && subcommands.contains(&subcommand)
    };
    if SUBCOMMANDS.iter().any(known) {
        return Some(format!("Bash({program} {subcommand} *)"));
    }
    let script = text(2).filter(|_| (program, subcommand) == ("npm", "run"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    let named =
        script.starts_with(|c: char| c.is_ascii_alphanumeric()) && script.chars().all(plain);
    named.then(|| format!("Bash(npm run {script} *)"))
}
