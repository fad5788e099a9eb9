//! Counts the parameters of functions.

use super::super::lex::Token;
use super::{Parsed, Signature, after_generics, after_group};

/// Reads the signature of every function, methods and those inside functions as well.
pub(super) fn read(tokens: &[Token], parsed: &mut Parsed) {
    for (at, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is("fn"))
    {
        let Some(name) = tokens.get(at + 1).filter(|next| next.is_word()) else {
            continue;
        };
        let open = after_generics(tokens, at + 2);
        let end = after_group(tokens, open).saturating_sub(1);
        let parameters = tokens.get(open + 1..end).unwrap_or_default();
        parsed.signatures.push(Signature {
            name: name.text.clone(),
            line: token.line,
            parameters: parts(parameters).into_iter().map(counted).sum(),
        });
    }
}

/// A tuple that is taken apart is as many parameters as it has parts.
fn counted(parameter: &[Token]) -> usize {
    if parameter.first().is_some_and(|first| first.is("(")) {
        let end = after_group(parameter, 0).saturating_sub(1);
        parts(&parameter[1..end]).len()
    } else {
        1
    }
}

/// Splits at commas that stand in no group.
fn parts(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut found, mut first, mut at) = (Vec::new(), 0, 0);
    while let Some(token) = tokens.get(at) {
        if token.is(",") {
            found.push(&tokens[first..at]);
            first = at + 1;
        }
        at = if token.is("<") {
            after_generics(tokens, at)
        } else if token.is("(") || token.is("[") || token.is("{") {
            after_group(tokens, at)
        } else {
            at + 1
        };
    }
    found.push(tokens.get(first..).unwrap_or_default());
    found.retain(|part| !part.is_empty());
    found
}
