//! The items of a file's modules: what they define, import and implement.

use super::super::lex::Token;
use super::{
    FunctionItem, ImplItem, ModuleItem, Parsed, TypeItem, after_generics, after_group, fields,
    paths,
};

/// Words that may stand before the keyword of an item.
const BEFORE: &[&str] = &["pub", "async", "unsafe", "default", "extern"];

/// Reads the items between two indices; `scope` is the inline module they stand in.
pub(super) fn read(
    tokens: &[Token],
    (begin, end): (usize, usize),
    scope: &mut Vec<String>,
    parsed: &mut Parsed,
) {
    let mut at = begin;
    while at < end {
        at = item(tokens, at, scope, parsed).max(at + 1);
    }
}

/// Reads the item at `at` and returns the index after it.
fn item(tokens: &[Token], at: usize, scope: &mut Vec<String>, parsed: &mut Parsed) -> usize {
    let at = keyword_at(tokens, at);
    let Some(token) = tokens.get(at) else {
        return at;
    };
    let name = tokens.get(at + 1).filter(|token| token.is_word());
    match (token.text.as_str(), name) {
        ("use", _) => {
            parsed.module_uses.push(at);
            return paths::import(tokens, at, scope, true, parsed);
        }
        ("mod", Some(name)) => return module(tokens, at, &name.text, scope, parsed),
        ("impl", _) => return implementation(tokens, at, scope, parsed),
        ("struct" | "enum" | "trait" | "type" | "union", Some(name)) => {
            parsed.types.push(type_item(tokens, at, &name.text, scope));
            parsed.names.push((scope.clone(), name.text.clone()));
        }
        ("fn" | "const" | "static", _) => value(tokens, at, scope, parsed),
        ("macro_rules", _) => {
            let name = tokens.get(at + 2).map(|token| token.text.clone());
            parsed.names.extend(name.map(|name| (scope.clone(), name)));
        }
        _ => {}
    }
    let is_constant = token.is("static") || token.is("const") && !name.is_some_and(|n| n.is("fn"));
    if token.is("type") || is_constant {
        after_semicolon(tokens, at)
    } else {
        after_body(tokens, at)
    }
}

/// Skips attributes, visibility and what else may stand before the keyword.
fn keyword_at(tokens: &[Token], mut at: usize) -> usize {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    loop {
        if is(at, "#") {
            at += 1 + usize::from(is(at + 1, "!"));
            at = after_group(tokens, at);
        } else if BEFORE.iter().any(|word| is(at, word)) {
            at += 1;
            if is(at, "(") {
                at = after_group(tokens, at);
            }
        } else {
            return at;
        }
    }
}

fn type_item(tokens: &[Token], at: usize, name: &str, scope: &[String]) -> TypeItem {
    let (fields, bools) = if tokens[at].is("struct") {
        fields::read(tokens, at + 2)
    } else {
        (Vec::new(), 0)
    };
    TypeItem {
        scope: scope.to_vec(),
        name: name.to_owned(),
        line: tokens[at].line,
        fields: fields.len(),
        bools,
        members: if fields.is_empty() {
            members(tokens, at)
        } else {
            fields
        },
    }
}

/// The variants of an enum, or the functions of a trait.
fn members(tokens: &[Token], at: usize) -> Vec<String> {
    let open = at
        + tokens[at..]
            .iter()
            .take_while(|token| !token.is("{"))
            .count();
    let end = after_group(tokens, open);
    match tokens[at].text.as_str() {
        "trait" => methods(tokens, open + 1, end),
        "enum" => variants(tokens, open + 1, end),
        _ => Vec::new(),
    }
}

fn variants(tokens: &[Token], begin: usize, end: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = keyword_at(tokens, begin);
    while let Some(name) = tokens.get(at).filter(|token| at < end && token.is_word()) {
        found.push(name.text.clone());
        while tokens
            .get(at)
            .is_some_and(|token| at < end && !token.is(","))
        {
            let opens = tokens[at].is("{") || tokens[at].is("(");
            at = if opens {
                after_group(tokens, at)
            } else {
                at + 1
            };
        }
        at = keyword_at(tokens, at + 1);
    }
    found
}

/// A function, a constant or a static.
fn value(tokens: &[Token], at: usize, scope: &[String], parsed: &mut Parsed) {
    let mut words = tokens[at..].iter().take(4).filter(|token| token.is_word());
    let is_function = words.by_ref().take(2).any(|word| word.is("fn"));
    let skipped = ["fn", "const", "static", "mut", "unsafe", "async"];
    let name = tokens[at..]
        .iter()
        .take(5)
        .find(|token| token.is_word() && !skipped.iter().any(|word| token.is(word)));
    let Some(name) = name else { return };
    parsed.names.push((scope.to_vec(), name.text.clone()));
    if is_function {
        parsed.functions.push(FunctionItem {
            name: name.text.clone(),
            line: name.line,
        });
    }
}

fn module(
    tokens: &[Token],
    at: usize,
    name: &str,
    scope: &mut Vec<String>,
    parsed: &mut Parsed,
) -> usize {
    let inline = tokens.get(at + 2).is_some_and(|token| token.is("{"));
    let end = if inline {
        after_group(tokens, at + 2)
    } else {
        at + 3
    };
    let body = (at + 3, end.saturating_sub(1));
    parsed.modules.push(ModuleItem {
        scope: scope.clone(),
        name: name.to_owned(),
        inline,
        body,
    });
    if inline {
        scope.push(name.to_owned());
        read(tokens, body, scope, parsed);
        scope.pop();
    }
    end
}

fn implementation(tokens: &[Token], at: usize, scope: &[String], parsed: &mut Parsed) -> usize {
    let mut open = after_generics(tokens, at + 1);
    let (mut is_trait, mut in_where, mut path) = (false, false, Vec::new());
    while let Some(token) = tokens.get(open).filter(|token| !token.is("{")) {
        if token.is("<") {
            open = after_generics(tokens, open);
            continue;
        }
        if token.is("where") {
            in_where = true;
        } else if token.is("for") && !in_where {
            (is_trait, path) = (true, Vec::new());
        } else if token.is_word() && !in_where && !token.is("dyn") && !token.is("mut") {
            path.push(token.text.clone());
        }
        open += 1;
    }
    let end = after_group(tokens, open);
    parsed.impls.push(ImplItem {
        scope: scope.to_vec(),
        path,
        line: tokens[at].line,
        methods: methods(tokens, open + 1, end),
        is_trait,
    });
    end
}

/// The functions that stand directly between two indices.
fn methods(tokens: &[Token], begin: usize, end: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = begin;
    while let Some(token) = tokens.get(at).filter(|_| at < end) {
        if token.is("{") || token.is("(") || token.is("[") {
            at = after_group(tokens, at);
            continue;
        }
        let name = tokens.get(at + 1).filter(|next| next.is_word());
        if let Some(name) = name.filter(|_| token.is("fn")) {
            found.push(name.text.clone());
        }
        at += 1;
    }
    found
}

fn after_semicolon(tokens: &[Token], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        if token.is(";") {
            return at + 1;
        }
        let opens = token.is("{") || token.is("(") || token.is("[");
        at = if opens {
            after_group(tokens, at)
        } else {
            at + 1
        };
    }
    at
}

/// Returns the index after the first `;` or the first `{…}`.
fn after_body(tokens: &[Token], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        if token.is(";") {
            return at + 1;
        }
        if token.is("{") {
            return after_group(tokens, at);
        }
        let opens = token.is("(") || token.is("[");
        at = if opens {
            after_group(tokens, at)
        } else {
            at + 1
        };
    }
    at
}
