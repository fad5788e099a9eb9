//! Colours for a line of source code.
//!
//! A line is coloured by itself: while a reply streams, a line is printed once and never changes,
//! so nothing may depend on the lines around it.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::tame::one_line;
use crate::theme::ColorRole;
use keywords::{C, DATA, GO, JAVA, PYTHON, RUST, SCRIPT, SHELL, SQL};

mod keywords;

/// Returns one line of code, tamed and coloured for the language.
///
/// The language is the first word after a code fence, in any case. The text of an unknown one has
/// one colour.
pub fn code_line(line: &str, language: &str) -> Line<'static> {
    let line = one_line(line);
    let Some(grammar) = Grammar::of(language) else {
        return Line::from(Span::styled(line, ColorRole::Code.style()));
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut rest = line.as_str();
    let mut before = None;
    while !rest.is_empty() {
        let (length, style) = grammar.token(rest, before);
        let (token, after) = rest.split_at(length);
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(token),
            _ => spans.push(Span::styled(token.to_owned(), style)),
        }
        before = token.chars().next_back();
        rest = after;
    }
    Line::from(spans)
}

/// What is special in a language.
struct Grammar {
    keywords: &'static [&'static str],
    ignores_case: bool,
    comments: &'static [&'static str],
    has_block_comments: bool,
    quotes: &'static str,
}

impl Grammar {
    fn of(language: &str) -> Option<Self> {
        let slashes: &[&str] = &["//"];
        let hash: &[&str] = &["#"];
        let (keywords, comments, quotes) = match language.to_ascii_lowercase().as_str() {
            "rust" | "rs" => (RUST, slashes, "\"'"),
            "python" | "py" | "python3" => (PYTHON, hash, "\"'"),
            "javascript" | "js" | "jsx" | "mjs" | "typescript" | "ts" | "tsx" => {
                (SCRIPT, slashes, "\"'`")
            }
            "go" | "golang" => (GO, slashes, "\"'`"),
            "c" | "h" | "cpp" | "c++" | "cc" | "cxx" | "hpp" => (C, slashes, "\"'"),
            "java" => (JAVA, slashes, "\"'"),
            "sh" | "bash" | "zsh" | "shell" | "console" => (SHELL, hash, "\"'"),
            "toml" | "yaml" | "yml" => (DATA, hash, "\"'"),
            "json" | "jsonc" | "json5" => (DATA, slashes, "\""),
            "sql" => (SQL, &["--"][..], "'\""),
            _ => return None,
        };
        Some(Self {
            keywords,
            ignores_case: comments == ["--"],
            comments,
            has_block_comments: comments != hash,
            quotes,
        })
    }

    /// Returns the bytes and the style of the token at the beginning of a text.
    fn token(&self, text: &str, before: Option<char>) -> (usize, Style) {
        let first = text.chars().next().unwrap_or(' ');
        let follows_word = before.is_some_and(is_word);
        if let Some(length) = self.comment(text, before) {
            return (length, ColorRole::Comment.style().dim());
        }
        if self.quotes.contains(first)
            && let Some(length) = string(text, first)
            && (first != '\'' || self.keywords != RUST || is_rust_character(&text[1..length - 1]))
        {
            return (length, ColorRole::String.style());
        }
        let length = text
            .find(|character| !is_word(character))
            .unwrap_or(text.len());
        if first.is_ascii_digit() && !follows_word {
            return (number(text), ColorRole::Number.style());
        }
        if length > 0 {
            let style = if self.is_keyword(&text[..length]) {
                ColorRole::Keyword.style()
            } else {
                Style::new()
            };
            return (length, style);
        }
        (first.len_utf8(), Style::new())
    }

    /// Returns the bytes of a comment at the beginning of a text.
    fn comment(&self, text: &str, before: Option<char>) -> Option<usize> {
        if self.has_block_comments && text.starts_with("/*") {
            return Some(text.find("*/").map_or(text.len(), |end| end + 2));
        }
        let mark = self.comments.iter().find(|mark| text.starts_with(**mark))?;
        // `$#` and `a#b` in a shell are not comments.
        let begins = *mark != "#" || before.is_none_or(char::is_whitespace);
        begins.then_some(text.len())
    }

    fn is_keyword(&self, word: &str) -> bool {
        if self.ignores_case {
            let lower = word.to_ascii_lowercase();
            return self.keywords.contains(&lower.as_str());
        }
        self.keywords.contains(&word)
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the bytes of a string literal, up to its closing quote.
fn string(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Some(at + character.len_utf8()),
            _ => {}
        }
    }
    // A single quote alone is a lifetime or an apostrophe; others open a string of many lines.
    (quote != '\'').then_some(text.len())
}

/// Returns true for what may stand in single quotes in Rust, where they also begin lifetimes.
fn is_rust_character(inside: &str) -> bool {
    inside.starts_with('\\') || inside.chars().count() == 1
}

/// Returns the bytes of a number with its fraction, its exponent and its suffix.
fn number(text: &str) -> usize {
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        let next = text[at + character.len_utf8()..].chars().next();
        let is_point = character == '.' && next.is_some_and(|next| next.is_ascii_digit());
        let is_sign = matches!(character, '+' | '-')
            && matches!(previous, 'e' | 'E')
            && !text.starts_with("0x");
        if !is_word(character) && !is_point && !is_sign {
            return at;
        }
        previous = character;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks comments with `c`, strings `s`, numbers `n`, keywords `k`, others `.`.
    fn check(language: &str, line: &str, expected: &str) {
        let marks: String = code_line(line, language)
            .spans
            .iter()
            .flat_map(|span| {
                let mark = match span.style {
                    style if style == ColorRole::Comment.style().dim() => 'c',
                    style if style == ColorRole::String.style() => 's',
                    style if style == ColorRole::Number.style() => 'n',
                    style if style == ColorRole::Keyword.style() => 'k',
                    _ => '.',
                };
                std::iter::repeat_n(mark, span.content.chars().count())
            })
            .collect();
        assert_eq!(marks, expected, "{line}");
    }

    #[test]
    fn colours_each_language() {
        check("rust", "let x = \"a\\\"b\"; // c", "kkk.....ssssss..cccc");
        check(
            "Rust",
            "fn f<'a>(c: char) -> '\\n'",
            "kk...................ssss",
        );
        check("rs", "x1 = 1.5e-3 + 0xff..2", ".....nnnnnn...nnnn..n");
        check("python", "if x: # why", "kk....ccccc");
        check("ts", "const s = `a ${b}`", "kkkkk.....ssssssss");
        check("go", "func f() /* a */ {}", "kkkk.....ccccccc...");
        check("c++", "return \"open", "kkkkkk.sssss");
        check("java", "new A(10)", "kkk...nn.");
        check("sh", "if [ $# = 1 ]; then", "kk........n....kkkk");
        check("json", "{\"a\": true, \"b\": 12}", ".sss..kkkk..sss..nn.");
        check("yaml", "a: 'b' # c", "...sss.ccc");
        check("sql", "SELECT a FROM t -- x", "kkkkkk...kkkk...cccc");
        check("", "let x = 1", ".........");
    }

    #[test]
    fn every_line_keeps_its_text() {
        for line in [
            "",
            "'",
            "\"",
            "é\"日",
            "/*",
            "0",
            "0.",
            "\\",
            "a'b'c",
            "\t\u{1b}[m",
        ] {
            for language in ["rust", "sh", "sql", "json", "none"] {
                let shown = code_line(line, language).to_string();
                assert_eq!(shown, one_line(line), "{language}");
            }
        }
    }
}
