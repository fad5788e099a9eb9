//! The imports and paths of a file, inside functions as well.

use super::super::lex::Token;
use super::{Import, Parsed, PathUse};

/// Reads every path that is used in place, and the imports inside functions.
pub(super) fn read(tokens: &[Token], parsed: &mut Parsed) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let follows = |text: &str| tokens.get(at + 1).is_some_and(|next| next.is(text));
        let previous = at.checked_sub(1).and_then(|before| tokens.get(before));
        // `impl Trait + use<'a>` holds the same keyword.
        if token.is("use") && !follows("<") {
            let end = if parsed.module_uses.contains(&at) {
                import(tokens, at, &[], true, &mut Parsed::default())
            } else {
                let scope = scope_at(parsed, at);
                import(tokens, at, &scope, false, parsed)
            };
            at = end.max(at + 1);
        } else if token.is_word()
            && follows("::")
            && !previous.is_some_and(|previous| previous.is("::") || previous.is("."))
        {
            let (path, end) = path(tokens, at);
            let scope = scope_at(parsed, at);
            let line = token.line;
            parsed.paths.push(PathUse { scope, path, line });
            at = end;
        } else {
            at += 1;
        }
    }
}

/// The words from `at` on that are joined by `::`, and the index after them.
fn path(tokens: &[Token], mut at: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    while let Some(token) = tokens.get(at).filter(|token| token.is_word()) {
        path.push(token.text.clone());
        at += 1;
        if !tokens.get(at).is_some_and(|next| next.is("::")) {
            break;
        }
        at += 1;
    }
    (path, at)
}

/// The inline module that the token stands in.
fn scope_at(parsed: &Parsed, at: usize) -> Vec<String> {
    let around = parsed
        .modules
        .iter()
        .filter(|module| module.inline && (module.body.0..module.body.1).contains(&at))
        .max_by_key(|module| module.scope.len());
    around.map_or_else(Vec::new, |module| {
        let mut scope = module.scope.clone();
        scope.push(module.name.clone());
        scope
    })
}

/// Reads the `use` at `at` and returns the index after it.
pub(super) fn import(
    tokens: &[Token],
    at: usize,
    scope: &[String],
    of_module: bool,
    parsed: &mut Parsed,
) -> usize {
    let mut leaves = Vec::new();
    let end = branch(tokens, at + 1, &[], &mut leaves);
    let imports = leaves.into_iter().map(|leaf| Import {
        scope: scope.to_vec(),
        path: leaf.path,
        name: leaf.name,
        of_module,
        line: leaf.line,
    });
    parsed.imports.extend(imports);
    end
}

/// One name at the end of a `use` tree.
struct Leaf {
    path: Vec<String>,
    name: Option<String>,
    line: usize,
}

/// Reads one branch of a `use` tree below `prefix`, and returns the index after it.
fn branch(tokens: &[Token], mut at: usize, prefix: &[String], leaves: &mut Vec<Leaf>) -> usize {
    let mut path = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        if token.is("{") {
            at += 1;
            while tokens.get(at).is_some_and(|token| !token.is("}")) {
                let before = at;
                at = branch(tokens, at, &path, leaves);
                let comma = tokens.get(at).is_some_and(|token| token.is(","));
                at = (at + usize::from(comma)).max(before + 1);
            }
            return at + 1;
        }
        if token.is("*") {
            let name = None;
            leaves.push(Leaf { path, name, line });
            return at + 1;
        }
        if token.is("as") {
            let name = tokens.get(at + 1).map(|token| token.text.clone());
            let path = without_self(path);
            leaves.push(Leaf { path, name, line });
            return at + 2;
        }
        if token.is(";") || token.is(",") || token.is("}") {
            break;
        }
        if token.is_word() {
            path.push(token.text.clone());
        }
        at += 1;
    }
    let path = without_self(path);
    let name = path.last().cloned();
    leaves.push(Leaf { path, name, line });
    at
}

/// `a::{self}` means `a`; a `self` alone stays.
fn without_self(mut path: Vec<String>) -> Vec<String> {
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    path
}
