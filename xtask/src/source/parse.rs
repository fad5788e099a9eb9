//! Reads one file: its modules, imports, paths, types, impls and lines, without what only tests see.

mod fields;
mod items;
mod paths;
mod signatures;
mod strip;

use super::lex::{self, Comment, Token, TokenKind};

/// What a file holds besides its tests. A `scope` is the path of inline modules within the file.
#[derive(Default)]
pub(crate) struct Parsed {
    pub(crate) modules: Vec<ModuleItem>,
    pub(crate) imports: Vec<Import>,
    pub(crate) paths: Vec<PathUse>,
    /// Names that the file's modules define, other than modules.
    pub(crate) names: Vec<(Vec<String>, String)>,
    pub(crate) types: Vec<TypeItem>,
    pub(crate) impls: Vec<ImplItem>,
    /// Where the `use` of its modules stand among the tokens.
    module_uses: Vec<usize>,
    pub(crate) functions: Vec<FunctionItem>,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    /// Lines of code that is not for tests, blank ones among them.
    pub(crate) lines: usize,
    pub(crate) blank_lines: usize,
    /// Lines that only tests see.
    pub(crate) test_lines: usize,
}

/// `mod name;` or `mod name { … }`.
pub(crate) struct ModuleItem {
    pub(crate) scope: Vec<String>,
    pub(crate) name: String,
    pub(crate) inline: bool,
    /// The tokens between its braces, if it is inline.
    pub(crate) body: (usize, usize),
}

/// One name that a `use` brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) scope: Vec<String>,
    pub(crate) path: Vec<String>,
    /// What it is called here; none for a glob.
    pub(crate) name: Option<String>,
    /// False for a `use` inside a function.
    pub(crate) of_module: bool,
    pub(crate) line: usize,
}

/// A path that is used in place, `crate::a::b()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathUse {
    pub(crate) scope: Vec<String>,
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// A struct, an enum, a trait or a type alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeItem {
    pub(crate) scope: Vec<String>,
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Fields of a struct.
    pub(crate) fields: usize,
    /// Fields of a struct whose type is `bool`.
    pub(crate) bools: usize,
    /// Fields of a struct, variants of an enum, functions of a trait.
    pub(crate) members: Vec<String>,
}

/// An impl block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImplItem {
    pub(crate) scope: Vec<String>,
    /// The type, without its parameters.
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    pub(crate) methods: Vec<String>,
    pub(crate) is_trait: bool,
}

/// A function that is not in an impl or a trait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionItem {
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// A function or a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Its parameters, `self` among them; each part of a tuple that is taken apart counts.
    pub(crate) parameters: usize,
}

/// Reads a file.
pub(crate) fn parse(text: &str) -> Parsed {
    let lexed = lex::lex(text);
    let (tokens, test) = strip::without_tests(lexed.tokens);
    let in_test = |line: usize| {
        test.iter()
            .any(|(first, last)| (*first..=*last).contains(&line))
    };
    let mut parsed = Parsed {
        comments: lexed.comments,
        ..Parsed::default()
    };
    parsed.comments.retain(|comment| !in_test(comment.line));
    for (number, line) in text.lines().enumerate() {
        if in_test(number + 1) {
            parsed.test_lines += 1;
        } else {
            parsed.lines += 1;
            parsed.blank_lines += usize::from(line.trim().is_empty());
        }
    }
    items::read(&tokens, (0, tokens.len()), &mut Vec::new(), &mut parsed);
    paths::read(&tokens, &mut parsed);
    signatures::read(&tokens, &mut parsed);
    parsed.tokens = tokens;
    parsed
}

/// Returns the index after the group that opens at `at`, or the end.
fn after_group(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if token.kind != TokenKind::Symbol {
            continue;
        }
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the index after the `<…>` that opens at `at`; `at` itself if none does.
fn after_generics(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut index = at;
    while let Some(token) = tokens.get(index) {
        if token.is("<") {
            depth += 1;
        } else if token.is(">") {
            depth = depth.saturating_sub(1);
        } else if depth > 0 && (token.is("(") || token.is("[") || token.is("{")) {
            index = after_group(tokens, index);
            continue;
        }
        if depth == 0 {
            return index + usize::from(token.is(">"));
        }
        index += 1;
    }
    index
}

#[cfg(test)]
mod tests;
