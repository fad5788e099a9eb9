//! Patterns for text: shell commands, tool names, host names.

/// Separates the words of a command, so that `rm "a b"` and `rm a b` differ.
pub(super) const BETWEEN: char = '\u{1f}';

/// Text in which `*` matches anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    /// The parts between the stars, in order.
    pieces: Vec<String>,
}

impl Glob {
    /// Parses a text; every `*` is a star.
    pub(super) fn new(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// Returns true if it matches only one text.
    pub(super) fn is_exact(&self) -> bool {
        self.pieces.len() == 1
    }

    /// Returns true if it matches everything.
    pub(super) fn is_everything(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.iter().all(String::is_empty)
    }

    /// Returns true if the text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        for piece in middle {
            // The first occurrence is enough: what is left for later parts only becomes longer.
            let Some(at) = rest.find(piece.as_str()) else {
                return false;
            };
            rest = rest.get(at + piece.len()..).unwrap_or_default();
        }
        rest.ends_with(last.as_str())
    }
}

/// The pattern of `Bash(…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    /// As it was written, for whole commands.
    written: String,
    /// For words separated by [`BETWEEN`].
    strict: Glob,
    /// For words separated by spaces.
    loose: Glob,
    /// For a pattern that ends in ` *` or `:*`: the part before, which matches the command
    /// without arguments.
    alone: Option<(Glob, Glob)>,
}

impl CommandPattern {
    /// Parses the specifier: quotes and spaces as in a shell, `*` as anything.
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim();
        let ended = text.strip_suffix(":*").map(|stem| format!("{stem} *"));
        let spelled = ended.unwrap_or_else(|| text.to_owned());
        let strict = words_of(&spelled);
        let pair = |words: &str| (Glob::new(words), Glob::new(&words.replace(BETWEEN, " ")));
        let alone = strict.strip_suffix(&format!("{BETWEEN}*")).map(pair);
        let (strict, loose) = pair(&strict);
        Self {
            written: text.to_owned(),
            strict,
            loose,
            alone,
        }
    }

    /// Returns true if it matches every command.
    pub(super) fn is_everything(&self) -> bool {
        self.strict.is_everything()
    }

    /// Returns true if it matches only one command.
    pub(super) fn is_exact(&self) -> bool {
        self.strict.is_exact()
    }

    /// Returns true if it is exactly this command.
    pub(super) fn is_written(&self, command: &str) -> bool {
        self.is_exact() && self.written == command.trim()
    }

    /// Returns true if it matches these words, as the command gets them, joined by [`BETWEEN`]. For
    /// allow rules.
    pub(super) fn allows(&self, words: &str) -> bool {
        let is_alone = |(strict, _): &(Glob, Glob)| strict.matches(words);
        self.strict.matches(words) || self.alone.as_ref().is_some_and(is_alone)
    }

    /// Returns true if it could match this text. For deny and ask rules.
    pub(super) fn touches(&self, text: &str) -> bool {
        self.loose.matches(text)
            || self
                .alone
                .as_ref()
                .is_some_and(|(_, loose)| loose.matches(text))
    }

    /// Returns how much it says, in bytes.
    pub(super) fn length(&self) -> usize {
        self.written.len()
    }

    /// Returns the name of the program that it is about, up to its first `*`.
    pub(super) fn program(&self) -> &str {
        let first = self.strict.pieces.first().map_or("", String::as_str);
        let word = first.split(BETWEEN).next().unwrap_or(first);
        word.rsplit('/').next().unwrap_or(word)
    }

    /// Returns the program whose every call it matches.
    pub(super) fn whole_program(&self) -> Option<&str> {
        let (alone, _) = self.alone.as_ref()?;
        let word = alone.pieces.first().filter(|_| alone.is_exact())?;
        let is_one = !word.contains(BETWEEN) && !word.is_empty();
        is_one.then(|| self.program())
    }

    /// Returns true if the pattern itself begins with these words.
    pub(super) fn begins_with(&self, words: &str) -> bool {
        self.written.starts_with(words)
    }
}

/// Returns the words of a pattern separated by [`BETWEEN`], without quotes that are closed.
fn words_of(text: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\\', None) => out.extend(characters.next()),
            (c, None) if c.is_whitespace() => {
                if !out.ends_with(BETWEEN) {
                    out.push(BETWEEN);
                }
            }
            (c, _) => out.push(c),
        }
    }
    if quote.is_some() {
        // A quote that is never closed does not quote anything.
        return text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(&BETWEEN.to_string());
    }
    out
}

/// A host, or with `*.` all hosts below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Any,
    Itself(String),
    Beneath(String),
}

impl Domain {
    /// Parses what follows `domain:`; `None` if it is not a host name.
    pub(super) fn new(text: &str) -> Option<Self> {
        // In DNS a dot at the end names the same host.
        let text = text.trim_end_matches('.').to_lowercase();
        if text == "*" {
            return Some(Self::Any);
        }
        let (name, beneath) = text
            .strip_prefix("*.")
            .map_or((text.as_str(), false), |name| (name, true));
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '[' | ']');
        let labels = !name.is_empty() && name.split('.').all(|label| !label.is_empty());
        if !labels || !name.chars().all(plain) {
            return None;
        }
        Some(if beneath {
            Self::Beneath(name.to_owned())
        } else {
            Self::Itself(name.to_owned())
        })
    }

    /// Returns the host that it is, or that it is below.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Any => None,
            Self::Itself(name) | Self::Beneath(name) => Some(name),
        }
    }

    /// Compares label by label: neither `python.org.evil.example` nor `xpython.org` is below
    /// `python.org`.
    pub(super) fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_lowercase();
        match self {
            Self::Any => true,
            Self::Itself(name) => host == *name,
            Self::Beneath(name) => host
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_programs() {
        for (pattern, program) in [
            ("curl *", Some("curl")),
            ("curl:*", Some("curl")),
            ("/usr/bin/curl *", Some("curl")),
            ("curl", None),
            ("curl -X *", None),
            ("cur* *", None),
            ("*", None),
        ] {
            let whole = CommandPattern::new(pattern);
            assert_eq!(whole.whole_program(), program, "{pattern}");
        }
    }

    #[test]
    fn commands() {
        let table: &[(&str, &[&str], bool)] = &[
            ("npm run build", &["npm", "run", "build"], true),
            ("npm run build", &["npm", "run", "build", "x"], false),
            ("git diff *", &["git", "diff", "--stat"], true),
            ("git diff *", &["git", "diff"], true),
            ("git diff *", &["git", "difftool"], false),
            ("git diff:*", &["git", "diff", "--stat"], true),
            ("git diff:*", &["git", "difftool"], false),
            ("ls*", &["lsof"], true),
            ("ls *", &["lsof"], false),
            ("git * main", &["git", "push", "origin", "main"], true),
            ("git * main", &["git", "push", "origin", "other"], false),
            ("rm a b", &["rm", "a b"], false),
            ("rm 'a b'", &["rm", "a b"], true),
            ("*", &["anything", "at all"], true),
            ("a*a", &["a"], false),
        ];
        for (pattern, words, expected) in table {
            assert_eq!(
                CommandPattern::new(pattern).allows(&words.join(&BETWEEN.to_string())),
                *expected,
                "{pattern} and {words:?}"
            );
        }
    }

    #[test]
    fn hosts() {
        let table = [
            ("docs.python.org", "docs.python.org", true),
            ("docs.python.org", "DOCS.Python.org.", true),
            ("docs.python.org", "docs.python.org.evil.example", false),
            ("python.org", "docs.python.org", false),
            ("*.python.org", "docs.python.org", true),
            ("*.python.org", "python.org", false),
            ("*.python.org", "evilpython.org", false),
            ("*", "anything.example", true),
        ];
        for (pattern, host, expected) in table {
            assert_eq!(
                Domain::new(pattern).unwrap().matches(host),
                expected,
                "{pattern} and {host}"
            );
        }
        for bad in ["", "a b", "*.*", "a..b", "a/b", "*.*.x"] {
            assert_eq!(Domain::new(bad), None, "{bad}");
        }
    }
}
