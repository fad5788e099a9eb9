//! Parses what is written after a skill's name.

/// A prompt that calls something: `/name` and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called<'a> {
    /// The name, without the slash.
    pub name: &'a str,
    /// What follows it, trimmed.
    pub arguments: &'a str,
}

impl<'a> Called<'a> {
    /// Parses a prompt; none if it does not look like a call.
    pub fn read(prompt: &'a str) -> Option<Self> {
        let rest = prompt.strip_prefix('/')?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        let fits = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '-'));
        (begins && fits).then_some(Self {
            name,
            arguments: arguments.trim(),
        })
    }
}

/// Splits a text into words like a shell: quotes hold words together, a backslash escapes the next
/// character. An open quote ends with the text.
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') if matches!(chars.peek(), Some('"' | '\\' | '$' | '`')) => {
                word.get_or_insert_default().extend(chars.next());
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => {
                if let Some(next) = chars.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Quotes a word for a shell, if it needs quotes.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '+')
    };
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Open quotes and parentheses of a command, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Quotes(Vec<char>);

impl Quotes {
    /// Returns true if a quote is open.
    pub(super) fn open(&self) -> bool {
        matches!(self.0.last(), Some('\'' | '"'))
    }

    /// Continues with the next part of the command.
    pub(super) fn read(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (self.0.last(), c) {
                (Some('\''), '\'') | (Some('"'), '"') | (Some('('), ')') => drop(self.0.pop()),
                (Some('\''), _) => {}
                (_, '\\') => drop(chars.next()),
                (Some('"'), '$') if chars.peek() == Some(&'(') => self.0.extend(chars.next()),
                (Some('"'), _) => {}
                (_, '\'' | '"' | '(') => self.0.push(c),
                _ => {}
            }
        }
    }

    /// Returns a value for this place. Open quotes are closed before it and opened after it,
    /// because other quotes mean nothing inside them.
    pub(super) fn put(&self, value: &str) -> String {
        match self.0.last() {
            Some(quote @ ('\'' | '"')) => format!("{quote}{}{quote}", quoted(value)),
            _ => quoted(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let table: [(&str, &[&str]); 12] = [
            ("", &[]),
            ("  \n ", &[]),
            ("a b\tc\nd", &["a", "b", "c", "d"]),
            ("'a b' c", &["a b", "c"]),
            ("\"a b\"c", &["a bc"]),
            (r#""say \"hi\" \n" x"#, &[r#"say "hi" \n"#, "x"]),
            (r"'a\' b", &[r"a\", "b"]),
            (r"a\ b", &["a b"]),
            ("'' \"\"", &["", ""]),
            ("'open end", &["open end"]),
            ("$HOME *.rs `ls`", &["$HOME", "*.rs", "`ls`"]),
            (r"end\", &["end"]),
        ];
        for (text, words) in table {
            assert_eq!(split(text), words, "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_call() {
        let read = |prompt| Called::read(prompt).map(|called| (called.name, called.arguments));
        assert_eq!(read("/review"), Some(("review", "")));
        assert_eq!(read("/git:tidy_up  a  b \n"), Some(("git:tidy_up", "a  b")));
        assert_eq!(
            read("/review\nall of this"),
            Some(("review", "all of this"))
        );
        for prompt in [
            "review",
            "",
            "/",
            "/ review",
            "/etc/passwd is odd",
            "//x",
            "/-x",
            "/a.b",
            "see /review",
            " /review",
        ] {
            assert_eq!(read(prompt), None, "{prompt}");
        }
    }
}
