//! Leaves out what only tests see: items, fields and statements under `#[cfg(test)]`.

use super::super::lex::Token;
use super::after_group;

/// Returns the tokens that remain, and the first and last line of each part that was left out.
pub(super) fn without_tests(tokens: Vec<Token>) -> (Vec<Token>, Vec<(usize, usize)>) {
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_test_attribute(&tokens, at) {
            let end = after_item(&tokens, at).max(at + 1);
            let last = tokens.get(end - 1).map_or(token.line, |token| token.line);
            left_out.push((token.line, last));
            at = end;
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    (kept, left_out)
}

/// Returns true if `#[cfg(test)]` or `#[cfg(all(test, …))]` begins at `at`.
fn is_test_attribute(tokens: &[Token], at: usize) -> bool {
    let is = |ahead: usize, text: &str| tokens.get(at + ahead).is_some_and(|token| token.is(text));
    let cfg = is(0, "#") && is(1, "[") && is(2, "cfg") && is(3, "(");
    let all = is(4, "all") && is(5, "(") && is(6, "test");
    cfg && (is(4, "test") && is(5, ")") || all)
}

/// Returns the index after the item, field or statement whose attributes begin at `at`.
fn after_item(tokens: &[Token], at: usize) -> usize {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let mut at = at;
    while is(at, "#") && is(at + 1, "[") {
        at = after_group(tokens, at + 1);
    }
    if is(at, "pub") {
        at += 1;
        if is(at, "(") {
            at = after_group(tokens, at);
        }
    }
    let any = |words: &[&str]| words.iter().any(|word| is(at, word));
    let to_semicolon =
        any(&["use", "static", "type", "let"]) || is(at, "const") && !is(at + 1, "fn");
    let item = any(&[
        "fn", "const", "async", "unsafe", "impl", "struct", "enum", "trait", "mod",
    ]);
    while let Some(token) = tokens.get(at) {
        if token.is(";") || token.is(",") && !item && !to_semicolon {
            return at + 1;
        }
        if token.is("}") || token.is(")") {
            return at;
        }
        let braces = token.is("{");
        if braces || token.is("(") || token.is("[") {
            at = after_group(tokens, at);
            if braces && !to_semicolon {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}
