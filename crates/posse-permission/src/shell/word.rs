//! A shell word: what is known of its value before anything runs.

use brush_parser::ParserOptions;
use brush_parser::word::{
    self, Parameter, ParameterExpr, TildeExpr, WordPiece, WordPieceWithSource,
};

use super::lexical::Plain;
use posse_port::tool::Workspace;

/// A word without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its value, as far as it is known: what is not counts as empty, so that `c${x}url` is `curl`.
    pub(super) text: String,
    /// Whether the value is known for certain.
    pub(super) literal: bool,
    /// Whether unquoted wildcards stand in it.
    pub(super) glob: bool,
    /// The words that braces make of it.
    pub(super) spread: Vec<String>,
}

impl Word {
    /// A word that is just this text.
    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            literal: true,
            glob: false,
            spread: Vec::new(),
        }
    }

    /// The words that it stands for.
    pub(super) fn words(&self) -> Vec<Self> {
        if self.spread.is_empty() {
            return vec![self.clone()];
        }
        let word = |text: &String| Self {
            literal: false,
            glob: self.glob,
            ..Self::literal(text)
        };
        self.spread.iter().map(word).collect()
    }
}

/// A word, and the scripts that run to make it.
pub(super) struct Read {
    pub(super) word: Word,
    pub(super) scripts: Vec<String>,
}

/// Reads a word as bash would.
pub(super) fn read(raw: &str, workspace: &Workspace) -> Read {
    let pieces = super::parsed(|| word::parse(raw, &ParserOptions::default()).ok());
    let mut read = from_pieces(raw, pieces, Quoted::No, workspace);
    // A word is literal only if the parser and a second, simpler reading agree about it.
    let Some(plain) = Plain::new(raw) else {
        read.word.literal = false;
        return read;
    };
    read.word.spread = plain.spread();
    let mut text = plain.text();
    if let (Some(home), Some(rest)) = (&workspace.home, raw.strip_prefix('~'))
        && (rest.is_empty() || rest.starts_with('/'))
    {
        text.replace_range(..1, &home.to_string_lossy());
    }
    read.word.literal &= read.word.spread.is_empty() && text == read.word.text;
    read
}

/// Reads the body of a here-document whose delimiter is not quoted.
pub(super) fn read_document(raw: &str, workspace: &Workspace) -> Read {
    let pieces = super::parsed(|| word::parse_heredoc(raw, &ParserOptions::default()).ok());
    from_pieces(raw, pieces, Quoted::Yes, workspace)
}

fn from_pieces(
    raw: &str,
    pieces: Option<Vec<WordPieceWithSource>>,
    quoted: Quoted,
    workspace: &Workspace,
) -> Read {
    let word = Word::literal("");
    let mut reader = Reader {
        word,
        scripts: Vec::new(),
        hides: false,
        workspace,
    };
    match pieces {
        Some(pieces) => reader.pieces(&pieces, quoted),
        None => {
            reader.word.text = brush_parser::unquote_str(raw);
            reader.unknown();
        }
    }
    let mut scripts = reader.scripts;
    if reader.hides {
        scripts.extend(substitutions(raw));
    }
    Read {
        word: reader.word,
        scripts,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Quoted {
    Yes,
    No,
}

struct Reader<'a> {
    word: Word,
    scripts: Vec<String>,
    /// Whether something was met that can hold substitutions deeper within.
    hides: bool,
    workspace: &'a Workspace,
}

impl Reader<'_> {
    fn unknown(&mut self) {
        self.word.literal = false;
        self.hides = true;
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: Quoted) {
        for piece in pieces {
            self.piece(&piece.piece, quoted);
        }
    }

    fn piece(&mut self, piece: &WordPiece, quoted: Quoted) {
        match piece {
            WordPiece::Text(text) => {
                if quoted == Quoted::No {
                    self.word.glob |= text.contains(['*', '?', '[']);
                }
                self.word.text.push_str(text);
            }
            WordPiece::SingleQuotedText(text) => self.word.text.push_str(text),
            WordPiece::AnsiCQuotedText(text) => match ansi_c(text) {
                Some(text) => self.word.text.push_str(&text),
                None => self.unknown(),
            },
            WordPiece::EscapeSequence(escape) => {
                let escaped = escape.strip_prefix('\\').unwrap_or(escape);
                // A backslash at the end of a line joins the lines, and both characters vanish.
                if escaped != "\n" {
                    self.word.text.push_str(escaped);
                }
            }
            WordPiece::DoubleQuotedSequence(pieces)
            | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                self.pieces(pieces, Quoted::Yes);
            }
            WordPiece::TildeExpansion(tilde) => self.tilde(tilde),
            WordPiece::ParameterExpansion(expression) => self.parameter(expression),
            WordPiece::CommandSubstitution(script)
            | WordPiece::BackquotedCommandSubstitution(script) => {
                self.word.literal = false;
                self.scripts.push(script.clone());
            }
            WordPiece::ArithmeticExpression(_) => self.unknown(),
        }
    }

    fn tilde(&mut self, tilde: &TildeExpr) {
        let place = match tilde {
            TildeExpr::Home => self.workspace.home.as_deref(),
            TildeExpr::WorkingDir => Some(self.workspace.cwd.as_path()),
            _ => None,
        };
        match place {
            Some(place) => self.word.text.push_str(&place.to_string_lossy()),
            None => self.unknown(),
        }
    }

    /// Only what the environment is known to hold; and that a script can have changed.
    fn parameter(&mut self, expression: &ParameterExpr) {
        // Never literal, because a script can change it; the usual value is there for deny rules.
        self.unknown();
        let ParameterExpr::Parameter {
            parameter: Parameter::Named(name),
            indirect: false,
        } = expression
        else {
            return;
        };
        let place = match name.as_str() {
            "HOME" => self.workspace.home.as_deref(),
            "PWD" => Some(self.workspace.cwd.as_path()),
            _ => None,
        };
        if let Some(place) = place {
            self.word.text.push_str(&place.to_string_lossy());
        }
    }
}

/// What `$'…'` says; `None` for escapes that are not understood.
fn ansi_c(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let (radix, most, first) = match rest.next()? {
            'n' => {
                out.push('\n');
                continue;
            }
            't' => {
                out.push('\t');
                continue;
            }
            c @ ('\\' | '\'' | '"' | '?') => {
                out.push(c);
                continue;
            }
            'x' => (16, 2, None),
            'u' => (16, 4, None),
            'U' => (16, 8, None),
            c @ '0'..='7' => (8, 2, Some(c)),
            _ => return None,
        };
        let mut digits = String::from_iter(first);
        for _ in 0..most {
            digits.extend(rest.next_if(|c| c.is_digit(radix)));
        }
        let value = u32::from_str_radix(&digits, radix).ok()?;
        // Bytes above ASCII would be parts of a character.
        out.push(char::from_u32(value).filter(|c| c.is_ascii() && *c != '\0' || most > 2)?);
    }
    Some(out)
}

/// The scripts of the outermost `$(…)`, `` `…` ``, `<(…)` and `>(…)` in a text, found by their brackets
/// alone. What is found is only held against what is denied.
pub(super) fn substitutions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '<', '>', '`']) {
        let here = rest.get(at..).unwrap_or_default();
        let inner = here.get(1..).unwrap_or_default();
        let (inner, length) = match inner.strip_prefix('(') {
            _ if here.starts_with('`') => (inner, inner.find('`').unwrap_or(inner.len())),
            Some(inner) => (inner, closing(inner)),
            None => {
                rest = inner;
                continue;
            }
        };
        let (script, after) = inner.split_at(length);
        found.push(script.to_owned());
        rest = after.get(1..).unwrap_or_default();
    }
    found
}

/// Where the bracket that stands before `text` closes.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', None | Some('"')) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let workspace = Workspace {
            cwd: "/w".into(),
            roots: vec!["/w".into()],
            spill: "/spill".into(),
            home: Some("/h".into()),
            mirror: None,
            notes: None,
        };
        let table = [
            ("plain", "plain", true, false),
            ("\"cu\"rl", "curl", true, false),
            ("t''ouch", "touch", true, false),
            ("\\t\\o\\u\\c\\h", "touch", true, false),
            ("$'\\x74ouch'", "touch", false, false),
            ("$'\\164ouch'", "touch", false, false),
            ("\"a\\.b$\"", "a\\.b$", true, false),
            ("{-exec\"\",touch}", "{-exec,touch}", false, false),
            ("c${x}url", "curl", false, false),
            ("'$(x)'", "$(x)", true, false),
            ("\"$(x)\"", "", false, false),
            ("*.rs", "*.rs", true, true),
            ("'*.rs'", "*.rs", true, false),
            ("{touch,PWNED}", "{touch,PWNED}", false, false),
            ("~/.bashrc", "/h/.bashrc", true, false),
            ("\"$HOME/\"", "/h/", false, false),
        ];
        for (raw, text, literal, glob) in table {
            let word = read(raw, &workspace).word;
            assert_eq!(
                (word.text.as_str(), word.literal, word.glob),
                (text, literal, glob),
                "{raw}"
            );
        }
        assert_eq!(
            read("\"${x:-$(touch a)}\"", &workspace).scripts,
            ["touch a"]
        );
        assert_eq!(
            read("$((a[$(touch a)]))", &workspace).scripts,
            ["(a[$(touch a)])"]
        );
        assert_eq!(
            substitutions("x $(echo ')' $(b)) <(c) `d`"),
            ["echo ')' $(b)", "c", "d"]
        );
        assert_eq!(read("`touch a`", &workspace).scripts, ["touch a"]);
    }
}
