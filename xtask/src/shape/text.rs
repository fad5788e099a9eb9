//! What the text holds: errors that are strings, shared locks, comments, and lines of tests.

use serde_json::Value;

use super::{Figure, rounded};
use crate::source::{Parsed, Token, Workspace};

pub(super) fn string_errors(workspace: &Workspace) -> Figure {
    let behind = string_errors_of(workspace);
    Figure {
        key: "string_errors",
        value: Value::from(behind.len()),
        behind,
    }
}

/// Every place that names a `Result` whose error is a `String`, as `file:line`.
pub(crate) fn string_errors_of(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for one in &workspace.crates {
        let aliases: Vec<&str> = one
            .files
            .iter()
            .flat_map(|file| aliases(&file.parsed))
            .collect();
        for file in &one.files {
            let tokens = &file.parsed.tokens;
            let lines = (0..tokens.len()).filter(|at| {
                let previous = at.checked_sub(1).and_then(|before| tokens.get(before));
                let defined = previous.is_some_and(|token| token.is("type"));
                let aliased = aliases.iter().any(|alias| tokens[*at].is(alias)) && !defined;
                aliased && tokens.get(at + 1).is_some_and(|next| next.is("<"))
                    || is_string_error(tokens, *at)
            });
            found.extend(lines.map(|at| format!("{}:{}", file.name, tokens[at].line)));
        }
    }
    found
}

/// Names of aliases whose error is a `String`.
fn aliases(parsed: &Parsed) -> Vec<&str> {
    let tokens = &parsed.tokens;
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let alias = tokens[at].is("type") && tokens.get(at + 1).is_some_and(Token::is_word);
        let equals = tokens[at..].iter().take(8).position(|token| token.is("="));
        if let Some(equals) = equals.filter(|_| alias) {
            let last = tokens[at + equals..].iter().position(|token| token.is(";"));
            let end = at + equals + last.unwrap_or_default();
            if (at + equals..end).any(|at| is_string_error(tokens, at)) {
                found.push(tokens[at + 1].text.as_str());
            }
        }
    }
    found
}

/// Returns true if `Result<…, String>` begins at `at`.
fn is_string_error(tokens: &[Token], at: usize) -> bool {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    if !is(at, "Result") || !is(at + 1, "<") {
        return false;
    }
    let (mut depth, mut brackets) = (0_usize, 0_usize);
    for (index, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.text.as_str() {
            "<" => depth += 1,
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets = brackets.saturating_sub(1),
            ">" if depth == 1 => return false,
            ">" => depth -= 1,
            "," if depth == 1 && brackets == 0 => {
                return is(index + 1, "String") && (is(index + 2, ">") || is(index + 2, ","));
            }
            ";" | "{" if brackets == 0 => return false,
            _ => {}
        }
    }
    false
}

pub(super) fn arc_locks(workspace: &Workspace) -> Figure {
    let (mut behind, mut lines) = (Vec::new(), 0);
    for file in workspace.crates.iter().flat_map(|one| &one.files) {
        let tokens = &file.parsed.tokens;
        lines += file.parsed.lines;
        for (at, token) in tokens.iter().enumerate() {
            let shared = token.is("Arc") && tokens.get(at + 1).is_some_and(|next| next.is("<"));
            // `Arc<Mutex<…>>`, or the same with a path before it.
            let inside = tokens[at..].iter().skip(2);
            let mut inside = inside.take_while(|token| token.is_word() || token.is("::"));
            if shared && inside.any(|token| token.is("Mutex") || token.is("RwLock")) {
                behind.push(format!("{}:{}", file.name, token.line));
            }
        }
    }
    Figure {
        key: "arc_locks_per_1k",
        value: rounded(behind.len() as f64 * 1000.0 / lines.max(1) as f64),
        behind,
    }
}

/// Lines of one file or many, by what they hold.
#[derive(Clone, Copy, Default)]
struct Lines {
    not_blank: usize,
    doc: usize,
    comment: usize,
    why: usize,
}

impl Lines {
    fn of(parsed: &Parsed) -> Self {
        let mut lines = Self {
            not_blank: parsed.lines - parsed.blank_lines,
            ..Self::default()
        };
        for comment in &parsed.comments {
            let count = comment.last_line - comment.line + 1;
            if comment.is_doc() {
                lines.doc += count;
                continue;
            }
            lines.comment += count;
            let words = comment.text.trim_start_matches(['/', '*']).trim();
            let says = words.chars().any(char::is_alphanumeric) && !words.starts_with("proves ");
            lines.why += if says { count } else { 0 };
        }
        lines
    }

    fn add(&mut self, other: Self) {
        self.not_blank += other.not_blank;
        self.doc += other.doc;
        self.comment += other.comment;
        self.why += other.why;
    }

    fn percent(self, count: usize) -> f64 {
        count as f64 * 100.0 / self.not_blank.max(1) as f64
    }
}

/// A share of all lines, and of those of each crate.
fn share(workspace: &Workspace, key: &'static str, count: impl Fn(Lines) -> usize) -> Figure {
    let (mut all, mut behind) = (Lines::default(), Vec::new());
    for one in &workspace.crates {
        let mut lines = Lines::default();
        for file in &one.files {
            lines.add(Lines::of(&file.parsed));
        }
        all.add(lines);
        let (count, percent) = (count(lines), lines.percent(count(lines)));
        let of = lines.not_blank;
        behind.push(format!(
            "{}: {count} of {of} lines, {percent:.2} %",
            one.name
        ));
    }
    Figure {
        key,
        value: rounded(all.percent(count(all))),
        behind,
    }
}

pub(super) fn comments(workspace: &Workspace) -> Figure {
    share(workspace, "comments_percent", |lines| {
        lines.doc + lines.comment
    })
}

pub(super) fn why(workspace: &Workspace) -> Figure {
    share(workspace, "why_percent", |lines| lines.why)
}

pub(super) fn tests_to_code(workspace: &Workspace) -> Figure {
    let files = workspace.crates.iter().flat_map(|one| &one.files);
    let code: usize = files.map(|file| file.parsed.lines).sum();
    let tests = workspace.test_lines;
    Figure {
        key: "tests_to_code",
        value: rounded(tests as f64 / code.max(1) as f64),
        behind: vec![format!("{tests} lines of tests, {code} of shipped code")],
    }
}
