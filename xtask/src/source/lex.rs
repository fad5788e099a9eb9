//! Splits Rust source into tokens and comments, each with its line. It knows no grammar.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or a keyword.
    Word,
    /// Punctuation: one character, or `::`, `->`, `=>`.
    Symbol,
    /// A string, a character or a number.
    Literal,
    Lifetime,
}

/// One token and the line on which it begins.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    /// Returns true for a keyword or a symbol of exactly this text. A literal never is one.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Symbol) && self.text == text
    }

    pub(crate) fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }
}

/// A comment, with its marks.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) last_line: usize,
}

impl Comment {
    pub(crate) fn is_doc(&self) -> bool {
        let text = &self.text;
        let line = text.starts_with("//!") || text.starts_with("///") && !text.starts_with("////");
        let block = text.starts_with("/*!") || text.starts_with("/**") && text.len() > 4;
        line || block
    }
}

/// Everything of a file but its white space.
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
}

/// Splits `text`. Source that does not compile gives some tokens and never a panic.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        lexed: Lexed {
            tokens: Vec::new(),
            comments: Vec::new(),
        },
    };
    while lexer.at < text.len() {
        lexer.next();
    }
    lexer.lexed
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    lexed: Lexed,
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        let byte = self.text.as_bytes().get(self.at + ahead);
        byte.copied().unwrap_or_default()
    }

    fn next(&mut self) {
        match self.peek(0) {
            b'\n' => {
                self.line += 1;
                self.at += 1;
            }
            byte if byte.is_ascii_whitespace() => self.at += 1,
            b'/' if self.peek(1) == b'/' => {
                let rest = &self.text.as_bytes()[self.at..];
                let length = rest.iter().position(|byte| *byte == b'\n');
                self.comment(length.unwrap_or(rest.len()));
            }
            b'/' if self.peek(1) == b'*' => self.comment(self.block_comment()),
            b'"' => self.token(TokenKind::Literal, self.quoted(0, b'"')),
            b'\'' => self.quote(),
            byte if byte.is_ascii_digit() => self.token(TokenKind::Literal, self.number()),
            byte if continues_word(byte) => self.word(),
            _ => self.symbol(),
        }
    }

    /// Takes `length` bytes as a token, and counts their lines.
    fn token(&mut self, kind: TokenKind, length: usize) {
        let text = self.take(length);
        let line = self.line;
        self.line += text.matches('\n').count();
        self.lexed.tokens.push(Token { kind, text, line });
    }

    fn comment(&mut self, length: usize) {
        let text = self.take(length);
        let line = self.line;
        self.line += text.matches('\n').count();
        self.lexed.comments.push(Comment {
            text,
            line,
            last_line: self.line,
        });
    }

    fn take(&mut self, length: usize) -> String {
        let end = (self.at + length).min(self.text.len());
        let text = self.text.get(self.at..end).unwrap_or_default().to_owned();
        self.at = end;
        text
    }

    /// The length of a block comment, which may hold others.
    fn block_comment(&self) -> usize {
        let (mut at, mut depth) = (0, 0);
        while self.at + at < self.text.len() {
            match (self.peek(at), self.peek(at + 1)) {
                (b'/', b'*') => (at, depth) = (at + 2, depth + 1),
                (b'*', b'/') => (at, depth) = (at + 2, depth - 1),
                _ => at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        at
    }

    /// The length of a quoted literal whose opening quote stands `before` bytes ahead.
    fn quoted(&self, before: usize, quote: u8) -> usize {
        let mut at = before + 1;
        while self.at + at < self.text.len() && self.peek(at) != quote {
            at += if self.peek(at) == b'\\' { 2 } else { 1 };
        }
        at + 1
    }

    /// A lifetime or a character.
    fn quote(&mut self) {
        let named = continues_word(self.peek(1)) && self.peek(1) < 0x80 && self.peek(2) != b'\'';
        if named {
            let mut length = 1;
            while continues_word(self.peek(length)) {
                length += 1;
            }
            self.token(TokenKind::Lifetime, length);
        } else {
            self.token(TokenKind::Literal, self.quoted(0, b'\''));
        }
    }

    fn number(&self) -> usize {
        let mut at = 0;
        while continues_word(self.peek(at))
            || self.peek(at) == b'.' && self.peek(at + 1).is_ascii_digit()
        {
            at += 1;
        }
        at
    }

    /// A word, or a literal with a prefix: `r"…"`, `br#"…"#`, `b'x'`, `c"…"`.
    fn word(&mut self) {
        let mut length = 0;
        while continues_word(self.peek(length)) {
            length += 1;
        }
        let prefix = &self.text[self.at..self.at + length];
        let is_raw = matches!(prefix, "r" | "br" | "cr");
        let mut hashes = 0;
        while is_raw && self.peek(length + hashes) == b'#' {
            hashes += 1;
        }
        match self.peek(length + hashes) {
            b'"' if is_raw => {
                let begin = length + hashes + 1;
                let close = format!("\"{}", "#".repeat(hashes));
                let rest = self.text.get(self.at + begin..).unwrap_or_default();
                let body = rest.find(&close).unwrap_or(rest.len());
                self.token(TokenKind::Literal, begin + body + close.len());
            }
            b'"' if matches!(prefix, "b" | "c") => {
                self.token(TokenKind::Literal, self.quoted(length, b'"'));
            }
            b'\'' if prefix == "b" => self.token(TokenKind::Literal, self.quoted(length, b'\'')),
            _ if prefix == "r" && hashes == 1 => {
                self.at += 2;
                self.word();
            }
            _ => self.token(TokenKind::Word, length),
        }
    }

    fn symbol(&mut self) {
        let pair = (self.peek(0), self.peek(1));
        let is_pair = matches!(pair, (b':', b':') | (b'-', b'>') | (b'=', b'>'));
        self.token(TokenKind::Symbol, if is_pair { 2 } else { 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        lex(source)
            .tokens
            .into_iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn literals_hide_what_looks_like_code() {
        assert_eq!(
            texts(r##"a("use x; // no", r#"{"}"#, b'\'', '"', 'a', &'a str, 1.5e3, 0..9)"##),
            [
                "a",
                "(",
                "\"use x; // no\"",
                ",",
                "r#\"{\"}\"#",
                ",",
                "b'\\''",
                ",",
                "'\"'",
                ",",
                "'a'",
                ",",
                "&",
                "'a",
                "str",
                ",",
                "1.5e3",
                ",",
                "0",
                ".",
                ".",
                "9",
                ")"
            ]
        );
        assert_eq!(
            texts("r#type::x -> '→' \"\\\\\" y"),
            ["type", "::", "x", "->", "'→'", "\"\\\\\"", "y"]
        );
    }

    #[test]
    fn comments_keep_their_lines() {
        let lexed = lex("//! doc\na /* b /* c */\n */ d // e\n//// f\n\"g\nh\" i");
        let comments: Vec<_> = lexed
            .comments
            .iter()
            .map(|comment| (comment.line, comment.last_line, comment.is_doc()))
            .collect();
        assert_eq!(
            comments,
            [(1, 1, true), (2, 3, false), (3, 3, false), (4, 4, false)]
        );
        let tokens: Vec<_> = lexed
            .tokens
            .iter()
            .map(|token| (token.text.as_str(), token.line))
            .collect();
        assert_eq!(tokens, [("a", 2), ("d", 3), ("\"g\nh\"", 5), ("i", 6)]);
    }
}
