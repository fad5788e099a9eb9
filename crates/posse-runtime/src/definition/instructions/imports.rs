//! References from one memory file to others: `@docs/style.md`. Pure.

use std::path::{Path, PathBuf};

/// Maximum number of imports that lead from a memory file to another.
pub const DEPTH: usize = 5;

/// Characters that end a sentence and not a path.
const PUNCTUATION: &[char] = &[
    '.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '*', '_',
];

/// Returns what the text imports, in order and each once. Code is skipped: an `@` in it means
/// something else.
pub fn imports(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in references(text) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Returns true if a text has nothing but imports.
pub fn only_imports(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    !words.is_empty() && words.len() == references(text).len()
}

/// Returns the path that an import names. `directory` is that of the file with the import.
pub fn target(name: &str, directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match name.strip_prefix("~/") {
        Some(rest) => home.map(|home| home.join(rest)),
        None => Some(directory.join(name)),
    }
}

/// Returns true if a name is probably meant as a file: `@docs/style.md`, but not `@someone`.
pub fn is_file_name(name: &str) -> bool {
    name.contains(['/', '.'])
}

/// Returns all references.
fn references(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut fence, mut paragraph) = (None, String::new());
    for line in text.split_inclusive('\n') {
        match (fence, fence_of(line)) {
            (None, opening @ Some(_)) => {
                found.extend(in_paragraph(&std::mem::take(&mut paragraph)));
                fence = opening;
            }
            (Some(opening), Some(closing)) if closes(opening, closing, line) => fence = None,
            (Some(_), _) => {}
            (None, None) if line.trim().is_empty() => {
                found.extend(in_paragraph(&std::mem::take(&mut paragraph)));
            }
            (None, None) => paragraph.push_str(line),
        }
    }
    found.extend(in_paragraph(&paragraph));
    found
}

/// Returns the references in a paragraph outside code spans.
fn in_paragraph(text: &str) -> Vec<String> {
    let (mut found, mut at, mut before) = (Vec::new(), 0, ' ');
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match c {
            '`' => code_span(rest),
            '@' if before.is_whitespace() => {
                found.extend(name(&rest[1..]));
                1
            }
            c => c.len_utf8(),
        };
        before = c;
    }
    found
}

/// Returns the length of the code span at the beginning of a text, or of its backticks if nothing
/// closes it.
fn code_span(text: &str) -> usize {
    let ticks = run(text);
    let mut at = ticks;
    while let Some(next) = text[at..].find('`') {
        let closing = run(&text[at + next..]);
        at += next + closing;
        if closing == ticks {
            return at;
        }
    }
    ticks
}

/// Returns the number of backticks at the beginning of a text.
fn run(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// Returns the name at the beginning of a text. A space in it is written `\ `, or the name is in
/// quotes.
fn name(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix('"') {
        let (name, _) = rest.split_once('"')?;
        let is_name = !name.trim().is_empty() && !name.contains('\n');
        return is_name.then(|| name.to_owned());
    }
    let (mut name, mut escaped) = (String::new(), false);
    for c in text.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            c if escaped => {
                if c != ' ' {
                    name.push('\\');
                }
                name.push(c);
                escaped = false;
            }
            '`' => break,
            c if c.is_whitespace() => break,
            c => name.push(c),
        }
    }
    let name = name.trim_end_matches(PUNCTUATION);
    let begins = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '~' | '_' | '-');
    (name.starts_with(begins) && name.contains(char::is_alphanumeric)).then(|| name.to_owned())
}

/// Returns the character and the length of a code fence, if the line begins with one.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let text = line.trim_start_matches([' ', '\t', '>']);
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.len() - text.trim_start_matches(mark).len();
    // Backticks later in the line make it a code span.
    let rest = &text[length..];
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
}

/// Returns true if a fence ends the one that is open.
fn closes(opening: (char, usize), closing: (char, usize), line: &str) -> bool {
    let rest = line.trim_start_matches([' ', '\t', '>']).trim_end();
    closing.0 == opening.0 && closing.1 >= opening.1 && rest.len() == closing.1
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves FC-09 (part: imports)
    #[test]
    fn imports_stand_outside_code() {
        let table: [(&str, &[&str]); 15] = [
            ("@docs/style.md", &["docs/style.md"]),
            (
                "See @README and\n- @a.md, (not) @b.md.",
                &["README", "a.md", "b.md"],
            ),
            (
                "@~/mine.md @/etc/x @../up.md",
                &["~/mine.md", "/etc/x", "../up.md"],
            ),
            ("me@example.com, (@x)", &[]),
            ("`@a.md` and ``x ` @b.md`` @c.md", &["c.md"]),
            ("a `span\nover @a.md lines` @b.md", &["b.md"]),
            ("an open ` tick @a.md\n\n` @b.md", &["a.md", "b.md"]),
            ("```\n@a.md\n```\n@b.md", &["b.md"]),
            ("~~~sh\n```\n@a.md\n~~~\n@b.md", &["b.md"]),
            ("````\n```\n@a.md\n````\n@b.md", &["b.md"]),
            ("```x` @a.md", &["a.md"]),
            ("@my\\ notes.md", &["my notes.md"]),
            ("@\"my notes.md\", @\"\" @\"open", &["my notes.md"]),
            ("@a.md @a.md", &["a.md"]),
            ("@ @@x @, @-", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(imports(text), expected, "{text}");
        }
    }

    #[test]
    fn a_file_of_imports_says_nothing_itself() {
        for text in ["@AGENTS.md\n", "@a.md\n\n@b.md"] {
            assert!(only_imports(text), "{text}");
        }
        for text in ["", "See @AGENTS.md", "`@a.md`"] {
            assert!(!only_imports(text), "{text}");
        }
    }

    #[test]
    fn a_name_leads_from_the_file_that_has_it() {
        let directory = Path::new("/w/docs");
        let to = |name| target(name, directory, Some(Path::new("/h")));
        assert_eq!(to("a.md"), Some("/w/docs/a.md".into()));
        assert_eq!(to("/a.md"), Some("/a.md".into()));
        assert_eq!(to("~/a.md"), Some("/h/a.md".into()));
        assert_eq!(target("~/a.md", directory, None), None);
        assert!(is_file_name("docs/x") && is_file_name("x.md") && !is_file_name("someone"));
    }
}
