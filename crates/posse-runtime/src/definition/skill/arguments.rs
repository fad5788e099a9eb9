//! What is written after a skill's name, and how it is taken apart.

/// A prompt that calls something: `/name` and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called<'a> {
    /// The name, without the slash.
    pub name: &'a str,
    /// What follows, without white space around it.
    pub arguments: &'a str,
}

impl<'a> Called<'a> {
    /// What a prompt calls, if it looks as if it called anything.
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

/// The words of a text, as a shell would see them: quotes hold words together, a backslash takes the meaning
/// from what follows it. A quote that is never closed ends with the text.
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

/// A word as a shell reads it: as it is where nothing in it means anything, else in single quotes.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '+')
    };
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The quotes and parentheses of a command that are open, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Quotes(Vec<char>);

impl Quotes {
    /// Whether a quote is open.
    pub(super) fn open(&self) -> bool {
        matches!(self.0.last(), Some('\'' | '"'))
    }

    /// Reads on in the command.
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

    /// A value for this place. Open quotes are closed before it and opened after it: inside of them others
    /// would mean nothing.
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
