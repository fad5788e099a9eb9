//! A second opinion on how bash reads a text. The parser is not the shell that will run it: what
//! the two could read differently, no rule allows.

/// Why a text cannot be split into tokens by its characters alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It contains substitutions, which nest.
    Expands,
    /// Its quotes or here-documents are unusual.
    Odd,
}

/// The longest first.
const OPERATORS: &[&str] = &[
    "&>>", "<<<", "<<-", ";;&", "&&", "||", ";;", ";&", "<<", "<&", ">&", "<>", ">>", ">|", "&>",
    "|&", "&", "|", ";", "<", ">", "(", ")", "\n",
];

/// Maximum number and depth of brackets in a text with substitutions: the parser backtracks at
/// each level.
pub(super) const NESTING: usize = 8;

/// Maximum number of compound commands, since the parser recurses.
const MOST_COMPOUNDS: usize = 48;
/// Maximum number of `case` commands, where it also backtracks.
const MOST_CASES: usize = 4;

/// Maximum number of commands that are parsed.
const MOST_COMMANDS: usize = 256;

/// Maximum number of substitutions that are parsed.
const MOST_EXPANSIONS: usize = 64;

/// Returns the tokens of a text, as bash delimits them.
pub(super) fn tokens(text: &str) -> Result<Vec<String>, Doubt> {
    let mut lexer = Lexer {
        rest: text,
        tokens: Vec::new(),
        word: None,
        document: None,
    };
    while !lexer.rest.is_empty() {
        lexer.step()?;
    }
    lexer.end_word()?;
    match lexer.document {
        Some(_) => Err(Doubt::Odd),
        None => Ok(lexer.tokens),
    }
}

/// A here-document whose body has not begun.
struct Document {
    /// The line that ends it; empty until its word is known.
    end: String,
    strips: bool,
    expands: bool,
    /// The position of its body among the tokens.
    at: usize,
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<String>,
    word: Option<String>,
    document: Option<Document>,
}

impl Lexer<'_> {
    fn step(&mut self) -> Result<(), Doubt> {
        let (c, next) = (self.at(0), self.at(1));
        match c {
            '\\' if next == '\n' => self.skip(2),
            '\\' => self.take(2),
            '\'' => {
                let end = self
                    .rest
                    .get(1..)
                    .and_then(|rest| rest.find('\''))
                    .ok_or(Doubt::Odd)?;
                let quoted = self.rest.get(..end + 2).unwrap_or_default();
                self.word.get_or_insert_default().push_str(quoted);
                self.rest = self.rest.get(end + 2..).unwrap_or_default();
            }
            '"' => self.double()?,
            '`' => return Err(Doubt::Expands),
            '$' if matches!(next, '(' | '{' | '[') => return Err(Doubt::Expands),
            '$' if matches!(next, '\'' | '"') => return Err(Doubt::Odd),
            '#' if self.word.is_none() => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = self.rest.get(end..).unwrap_or_default();
            }
            ' ' | '\t' => {
                self.end_word()?;
                self.skip(1);
            }
            '<' | '>' if next == '(' => return Err(Doubt::Expands),
            '(' if next == '(' => return Err(Doubt::Expands),
            '&' | '|' | ';' | '<' | '>' | '(' | ')' | '\n' => self.operator()?,
            _ => self.take(1),
        }
        Ok(())
    }

    fn at(&self, at: usize) -> char {
        self.rest.chars().nth(at).unwrap_or_default()
    }

    fn skip(&mut self, count: usize) {
        let mut rest = self.rest.chars();
        rest.by_ref().take(count).for_each(drop);
        self.rest = rest.as_str();
    }

    fn take(&mut self, count: usize) {
        let word = self.word.get_or_insert_default();
        word.extend(self.rest.chars().take(count));
        self.skip(count);
    }

    fn double(&mut self) -> Result<(), Doubt> {
        self.take(1);
        loop {
            match (self.at(0), self.at(1)) {
                _ if self.rest.is_empty() => return Err(Doubt::Odd),
                ('`', _) | ('$', '(' | '{' | '[') => return Err(Doubt::Expands),
                ('"', _) => {
                    self.take(1);
                    return Ok(());
                }
                ('\\', '\n') => self.skip(2),
                ('\\', _) => self.take(2),
                _ => self.take(1),
            }
        }
    }

    fn end_word(&mut self) -> Result<(), Doubt> {
        let Some(word) = self.word.take() else {
            return Ok(());
        };
        if let Some(document) = self
            .document
            .as_mut()
            .filter(|document| document.end.is_empty())
        {
            let quoted = ['\'', '"']
                .iter()
                .find_map(|c| word.strip_prefix(*c)?.strip_suffix(*c));
            let end = quoted.unwrap_or(&word);
            if end.is_empty() || !end.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(Doubt::Odd);
            }
            end.clone_into(&mut document.end);
            document.expands = quoted.is_none();
            document.at = self.tokens.len() + 1;
        }
        self.tokens.push(word);
        Ok(())
    }

    fn operator(&mut self) -> Result<(), Doubt> {
        self.end_word()?;
        let operator = OPERATORS
            .iter()
            .find(|operator| self.rest.starts_with(**operator));
        let Some(operator) = operator else {
            return Err(Doubt::Odd);
        };
        if self
            .document
            .as_ref()
            .is_some_and(|document| document.end.is_empty())
        {
            return Err(Doubt::Odd);
        }
        self.skip(operator.len());
        self.tokens.push((*operator).to_owned());
        match *operator {
            "<<" | "<<-" if self.document.is_some() => return Err(Doubt::Odd),
            "<<" | "<<-" => {
                let strips = *operator == "<<-";
                self.document = Some(Document {
                    end: String::new(),
                    strips,
                    expands: false,
                    at: 0,
                });
            }
            "\n" => {
                if let Some(document) = self.document.take() {
                    self.body(&document)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn body(&mut self, document: &Document) -> Result<(), Doubt> {
        let mut body = String::new();
        while !self.rest.is_empty() {
            let length = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
            let (line, rest) = self.rest.split_at(length);
            self.rest = rest;
            let line = if document.strips {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if line.trim_end_matches('\n') == document.end {
                self.tokens
                    .splice(document.at..document.at, [body, document.end.clone()]);
                return Ok(());
            }
            // Bash joins such lines before it looks for the end.
            if document.expands && line.ends_with("\\\n") {
                return Err(Doubt::Odd);
            }
            body.push_str(line);
        }
        Err(Doubt::Odd)
    }
}

/// How a text may be treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The parser reads it as bash does.
    Parser,
    /// The parser can be used but may be wrong: what is between separators counts as well.
    Both,
    /// The parser must not be used, since it could take forever.
    Separators,
}

/// Returns true if what ends a here-document is not a plain word: within `$(<< $( \t` the parser never
/// comes to an end, and takes all memory.
fn has_odd_delimiter(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<") {
        rest = after.trim_start_matches('<');
        let is_odd = match after.len() - rest.len() {
            0 => !begins_with_delimiter(rest),
            // `<<<` begins a word, not a document.
            1 => false,
            _ => true,
        };
        // Behind a backslash, the first is none.
        if is_odd || before.ends_with('\\') {
            return true;
        }
    }
    text.contains("<\\\n")
}

fn begins_with_delimiter(text: &str) -> bool {
    let word = text.strip_prefix('-').unwrap_or(text);
    let word = word.trim_start_matches([' ', '\t']);
    let end = word.find(|c: char| c.is_whitespace() || ";|&()<>".contains(c));
    let word = end.and_then(|end| word.get(..end)).unwrap_or(word);
    let within = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    let plain = within('\'')
        .or_else(|| within('"'))
        .or_else(|| word.strip_prefix('\\'));
    let plain = plain.unwrap_or(word);
    let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    !plain.is_empty() && plain.chars().all(is_plain)
}

/// Decides if the parser can be given a text, and be trusted.
pub(super) fn trust(text: &str) -> Trust {
    let expansions = text.matches(['$', '`']).count();
    let own = tokens(text);
    let commands = own.as_ref().map_or_else(
        |_| text.matches(['\n', ';', '|', '&']).count(),
        |tokens| tokens.iter().filter(|token| separates(token)).count(),
    );
    let compounds = own.as_ref().map_or_else(
        |_| compounds(text.split(|c: char| !(c.is_alphabetic() || c == '!'))),
        |tokens| compounds(tokens.iter().map(String::as_str)),
    );
    if compounds
        || commands > MOST_COMMANDS
        || (expansions > MOST_EXPANSIONS && nests(text))
        || has_odd_delimiter(text)
    {
        return Trust::Separators;
    }
    let same = own.as_ref().is_ok_and(|own| {
        super::parsed(|| brush_parser::tokenize_str(text).ok()).is_some_and(|theirs| {
            theirs
                .iter()
                .map(brush_parser::Token::to_str)
                .eq(own.iter().map(String::as_str))
        })
    });
    let depth = match &own {
        Ok(own) if same => deepest(own.iter().filter_map(|token| match token.as_str() {
            "(" | ")" | "{" | "}" => token.chars().next(),
            _ => None,
        }))
        .max(
            own.iter()
                .map(|token| deepest_within(token))
                .max()
                .unwrap_or_default(),
        ),
        // A closing bracket in quotes closes nothing, so that all opening ones are counted.
        _ if text.contains(['\'', '"', '\\', '#']) => text.matches(['(', '{', '[']).count(),
        _ => deepest(text.chars()),
    };
    match own {
        _ if depth > NESTING => Trust::Separators,
        Ok(_) if same => Trust::Parser,
        Err(Doubt::Expands) if !is_odd(text) => Trust::Parser,
        _ => Trust::Both,
    }
}

/// Returns true if there are too many compound commands among the words.
fn compounds<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let (mut all, mut cases) = (0, 0);
    for word in words {
        all += usize::from(matches!(
            word,
            "if" | "while" | "until" | "for" | "select" | "coproc" | "!"
        ));
        cases += usize::from(word == "case");
    }
    all > MOST_COMPOUNDS || cases > MOST_CASES
}

fn separates(token: &str) -> bool {
    matches!(
        token,
        "\n" | ";" | "|" | "&" | "&&" | "||" | "|&" | ";;" | ";&" | ";;&"
    )
}

/// Returns true if there are substitutions.
fn nests(text: &str) -> bool {
    text.contains("$(") || text.contains("${") || text.contains("$[") || text.contains('`')
}

/// Returns true if the text contains what the parser is known to read differently.
fn is_odd(text: &str) -> bool {
    let quotes = ["\\'", "\\$", "$'", "$\"", "<<$", "<<-$", "<<\\", "<<-\\"];
    quotes.iter().any(|odd| text.contains(odd)) || (text.contains("<<") && text.contains("\\\n"))
}

/// Returns how deeply brackets nest in a word, without quoted ones.
fn deepest_within(word: &str) -> usize {
    match Plain::new(word) {
        Some(plain) => deepest(
            plain
                .characters
                .iter()
                .filter(|(_, quoted)| !quoted)
                .map(|(c, _)| *c),
        ),
        None if word.contains(char::is_whitespace) => 0,
        None => deepest(word.chars()),
    }
}

fn deepest(characters: impl Iterator<Item = char>) -> usize {
    let (_, deepest) = characters.fold((0_usize, 0_usize), |(depth, deepest), c| match c {
        '(' | '{' | '[' => (depth + 1, deepest.max(depth + 1)),
        ')' | '}' | ']' => (depth.saturating_sub(1), deepest),
        _ => (depth, deepest),
    });
    deepest
}

/// A word from which bash only removes quotes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plain {
    /// Its characters, and whether they were quoted.
    pub(super) characters: Vec<(char, bool)>,
}

impl Plain {
    /// Parses a word; `None` if it contains more than quotes.
    pub(super) fn new(raw: &str) -> Option<Self> {
        let mut characters = Vec::new();
        let mut rest = raw.chars().peekable();
        let mut quote = None;
        while let Some(c) = rest.next() {
            match (c, quote) {
                ('\'', None) | ('"', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (c, Some('\'')) => characters.push((c, true)),
                ('\\', None) => match rest.next()? {
                    '\n' => {}
                    c => characters.push((c, true)),
                },
                ('\\', Some(_)) => {
                    match rest.next_if(|c| matches!(c, '$' | '`' | '"' | '\\' | '\n')) {
                        Some('\n') => {}
                        Some(c) => characters.push((c, true)),
                        None => characters.push(('\\', true)),
                    }
                }
                ('`', _) => return None,
                ('$', _) => {
                    let expands = |c: &char| c.is_alphanumeric() || "_@*#?-$!({[".contains(*c);
                    let quotes = |c: &char| quote.is_none() && matches!(c, '\'' | '"');
                    if rest.peek().is_some_and(|c| expands(c) || quotes(c)) {
                        return None;
                    }
                    characters.push((c, quote.is_some()));
                }
                // These end a word: the parser has missed its end.
                (' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')', None) => return None,
                (c, quote) => characters.push((c, quote.is_some())),
            }
        }
        quote.is_none().then_some(Self { characters })
    }

    pub(super) fn text(&self) -> String {
        self.characters.iter().map(|(c, _)| c).collect()
    }

    /// Returns the words that braces expand to; empty if there are no such braces.
    pub(super) fn spread(&self) -> Vec<String> {
        let bare = |wanted: char| {
            self.characters
                .iter()
                .filter(|c| **c == (wanted, false))
                .count()
        };
        let dots = self
            .characters
            .windows(2)
            .any(|pair| pair == [('.', false), ('.', false)]);
        if bare('{') == 0 || (bare(',') == 0 && !dots) {
            return Vec::new();
        }
        let apart = |c: &(char, bool)| !c.1 && matches!(c.0, '{' | '}' | ',');
        let text = |part: &[(char, bool)]| part.iter().map(|(c, _)| c).collect::<String>();
        let mut words = if bare('{') > NESTING {
            Vec::new()
        } else {
            spread(&self.characters)
        };
        words.truncate(MOST_EXPANSIONS);
        let mut words: Vec<_> = words.iter().map(|word| text(word)).collect();
        words.extend(self.characters.split(apart).map(text));
        words.retain(|word| !word.is_empty());
        words
    }
}

/// Expands braces as bash does, one after another.
fn spread(word: &[(char, bool)]) -> Words {
    for (open, _) in word.iter().enumerate().filter(|(_, c)| **c == ('{', false)) {
        let (before, inner) = (
            word.get(..open).unwrap_or_default(),
            word.get(open + 1..).unwrap_or_default(),
        );
        let Some((parts, after)) = alternatives(inner) else {
            continue;
        };
        let rests = spread(after);
        let mut words = Vec::new();
        for part in parts.iter().flat_map(|part| spread(part)) {
            for rest in &rests {
                if words.len() < MOST_EXPANSIONS {
                    words.push([before, &part, rest].concat());
                }
            }
        }
        return words;
    }
    vec![word.to_vec()]
}

type Characters = [(char, bool)];
type Words = Vec<Vec<(char, bool)>>;

/// Returns the parts between the commas up to the closing brace, and what follows it.
fn alternatives(inner: &Characters) -> Option<(Words, &Characters)> {
    let mut parts = vec![Vec::new()];
    let mut depth = 0_usize;
    for (at, c) in inner.iter().enumerate() {
        match c {
            ('}', false) if depth == 0 => {
                let after = inner.get(at + 1..).unwrap_or_default();
                return match parts.as_slice() {
                    [range] => range_of(range).map(|parts| (parts, after)),
                    _ => Some((parts, after)),
                };
            }
            (',', false) if depth == 0 => {
                parts.push(Vec::new());
                continue;
            }
            ('{', false) => depth += 1,
            ('}', false) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(*c);
        }
    }
    None
}

/// Expands `a..e`, for single characters only.
fn range_of(range: &Characters) -> Option<Words> {
    let [(from, _), ('.', false), ('.', false), (to, _), ..] = range else {
        return None;
    };
    let (from, to) = (from.min(to), from.max(to));
    Some(
        (*from..=*to)
            .take(MOST_EXPANSIONS)
            .map(|c| vec![(c, false)])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parser_is_believed() {
        let table = [
            ("ls -l 'a b' \"c $d\" | wc 2>&1", Trust::Parser),
            (
                "grep 'x$' a && grep \"y$\" b; echo a\\ b # c",
                Trust::Parser,
            ),
            ("cat <<'EOF' | wc\n$(x) ' \"\nEOF\nls", Trust::Parser),
            ("cat <<-E\n\ta\n\tE\nls", Trust::Parser),
            (
                "git commit -m 'don'\\''t (a) (b) (c) (d) (e) (f) (g) (h) (i)'",
                Trust::Parser,
            ),
            ("grep \"a\\.b\" c; echo \"\\\"\"; ls \\\n-l", Trust::Parser),
            ("echo \"$(cat <<'EOF'\nx\nEOF\n)\"", Trust::Parser),
            ("echo \\$'\\'; touch PWNED; echo '\\'", Trust::Both),
            ("cat <<EOF\nE\\\nOF\ntouch PWNED\nEOF\n", Trust::Both),
            (
                "cat <<$'EOF'\nx\nEOF\ntouch PWNED\n$EOF\n",
                Trust::Separators,
            ),
            ("cat <<'a b'\nx\na b\n", Trust::Separators),
            ("cat \\<<<-E", Trust::Separators),
            ("cat <<< $(x); echo $((1 << 2))", Trust::Parser),
            ("ls 'a", Trust::Both),
            ("((((((((( ls )))))))))", Trust::Separators),
        ];
        for (text, expected) in table {
            assert_eq!(trust(text), expected, "{text}: {:?}", tokens(text));
        }
        assert_eq!(trust(&"ls;".repeat(300)), Trust::Separators);
    }

    #[test]
    fn braces() {
        let table: &[(&str, &[&str])] = &[
            ("a{b,c}d", &["abd", "acd", "a", "b", "c", "d"]),
            ("{.env\"\",a}", &[".env", "a", ".env", "a"]),
            (".en{v..v}", &[".env", ".en", "v..v"]),
            ("'{a,b}'", &[]),
            ("{}", &[]),
            ("{a}", &[]),
        ];
        for (raw, expected) in table {
            assert_eq!(Plain::new(raw).unwrap().spread(), *expected, "{raw}");
        }
    }
}
