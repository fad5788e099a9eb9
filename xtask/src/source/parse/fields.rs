//! Reads the fields of a struct.

use super::super::lex::Token;
use super::{after_generics, after_group};

/// Returns the fields of the struct whose name ends before `at`, and how many are `bool`. Those of a tuple are numbered.
pub(super) fn read(tokens: &[Token], at: usize) -> (Vec<String>, usize) {
    let mut at = after_generics(tokens, at);
    while let Some(token) = tokens.get(at).filter(|token| !token.is(";")) {
        if token.is("{") || token.is("(") {
            let end = after_group(tokens, at).saturating_sub(1);
            return in_body(&tokens[at + 1..end]);
        }
        at = if token.is("<") {
            after_generics(tokens, at)
        } else {
            at + 1
        };
    }
    (Vec::new(), 0)
}

fn in_body(tokens: &[Token]) -> (Vec<String>, usize) {
    let (mut fields, mut bools) = (Vec::new(), 0);
    let mut at = 0;
    while at < tokens.len() {
        let first = at;
        while let Some(token) = tokens.get(at).filter(|token| !token.is(",")) {
            at = if token.is("<") {
                after_generics(tokens, at)
            } else if token.is("(") || token.is("[") || token.is("{") {
                after_group(tokens, at)
            } else {
                at + 1
            };
        }
        let field = &tokens[first..at.min(tokens.len())];
        if !field.is_empty() {
            let colon = field.iter().position(|token| token.is(":"));
            let name = colon.and_then(|colon| field.get(colon.checked_sub(1)?));
            let number = fields.len().to_string();
            fields.push(name.map_or(number, |name| name.text.clone()));
        }
        bools += usize::from(is_bool(field));
        at += 1;
    }
    (fields, bools)
}

/// `flag: bool` and, in a tuple, `bool`; not `flag: Option<bool>`.
fn is_bool(field: &[Token]) -> bool {
    match field {
        [.., before, last] => {
            last.is("bool") && [":", "pub", ")", "]"].iter().any(|text| before.is(text))
        }
        [only] => only.is("bool"),
        [] => false,
    }
}
