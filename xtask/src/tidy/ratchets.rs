//! Limits of types and errors. They may only fall.

use std::collections::BTreeMap;

use crate::shape::{methods_of, string_errors_of, types_of};
use crate::source::Workspace;

/// The most inherent methods of a type, and the most files they stand in.
const MOST_METHODS: usize = 40;
const MOST_FILES: usize = 4;
/// The most fields of a struct, and the most of them that are `bool`.
const MOST_FIELDS: usize = 20;
const MOST_BOOLS: usize = 3;
/// The most parameters of a function.
const MOST_PARAMETERS: usize = 7;
/// Places that may say `Result<…, String>`. Lower it whenever there are fewer.
const STRING_ERRORS: usize = 17;
/// Names that a crate may define more than once, over all crates. Lower it whenever there are fewer.
const REPEATED_NAMES: usize = 6;
/// Names of sub-commands, which clap takes from the type.
const OF_SUBCOMMANDS: &[&str] = &["List", "Show", "Check"];

/// Types with too many methods, or methods in too many files.
pub(super) fn methods(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for methods in workspace.crates.iter().flat_map(methods_of) {
        let (name, count, files) = (&methods.name, methods.count(), methods.files.len());
        let place = &methods.crate_name;
        if count > MOST_METHODS {
            faults.push(format!(
                "{place}: {name} has {count} methods, at most {MOST_METHODS}"
            ));
        }
        if files > MOST_FILES {
            faults.push(format!(
                "{place}: {name} has methods in {files} files, at most {MOST_FILES}"
            ));
        }
    }
    faults
}

/// Structs with too many fields or flags.
pub(super) fn fields(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for (_, file, item) in types_of(workspace) {
        let place = format!("{file}:{}: {}", item.line, item.name);
        if item.fields > MOST_FIELDS {
            faults.push(format!(
                "{place} has {} fields, at most {MOST_FIELDS}",
                item.fields
            ));
        }
        if item.bools > MOST_BOOLS {
            faults.push(format!(
                "{place} has {} bools, at most {MOST_BOOLS}",
                item.bools
            ));
        }
    }
    faults
}

/// Functions with too many parameters; a tuple that is taken apart counts as its parts.
pub(super) fn parameters(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for file in workspace.crates.iter().flat_map(|one| &one.files) {
        let signatures = file.parsed.signatures.iter();
        for item in signatures.filter(|item| item.parameters > MOST_PARAMETERS) {
            let (name, count) = (&item.name, item.parameters);
            let place = format!("{}:{}", file.name, item.line);
            faults.push(format!(
                "{place}: {name} has {count} parameters, at most {MOST_PARAMETERS}"
            ));
        }
    }
    faults
}

/// Errors that are strings, if there are more than there were.
pub(super) fn string_errors(workspace: &Workspace) -> Vec<String> {
    risen("string errors", string_errors_of(workspace), STRING_ERRORS)
}

/// Names that one crate gives to several types, if there are more than there were.
pub(super) fn repeated_names(workspace: &Workspace) -> Vec<String> {
    risen(
        "repeated names",
        repeated_in_crates(workspace),
        REPEATED_NAMES,
    )
}

fn repeated_in_crates(workspace: &Workspace) -> Vec<String> {
    let mut places: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (one, file, item) in types_of(workspace) {
        let known = places.entry((&one.name, &item.name)).or_default();
        known.push(format!("{file}:{}", item.line));
    }
    let repeated = places
        .into_iter()
        .filter(|((_, name), places)| places.len() > 1 && !OF_SUBCOMMANDS.contains(name));
    repeated
        .map(|((_, name), places)| format!("{name}: {}", places.join(", ")))
        .collect()
}

/// How far the numbers above are reached: what is fewer should be lowered there.
pub(super) fn notes(workspace: &Workspace) -> [String; 2] {
    let errors = string_errors_of(workspace).len();
    let names = repeated_in_crates(workspace).len();
    [
        format!("string errors: {errors} of at most {STRING_ERRORS}"),
        format!("names repeated in a crate: {names} of at most {REPEATED_NAMES}"),
    ]
}

/// What was found and how much of it there is, if that is more than `most`.
fn risen(what: &str, mut found: Vec<String>, most: usize) -> Vec<String> {
    if found.len() <= most {
        return Vec::new();
    }
    found.push(format!("{} {what}, at most {most}", found.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::made::Checkout;

    #[test]
    fn a_type_with_too_much_is_found() {
        let methods_text: String = (0..41).map(|n| format!("fn a{n}() {{}}\n")).collect();
        let fields_text: String = (0..21).map(|n| format!("a{n}: u8,\n")).collect();
        let text = format!(
            "struct A {{\n{fields_text}}}\nimpl A {{\n{methods_text}}}\nstruct B(bool, bool, bool, bool);\n\
             mod b;\nmod c;\nmod d;\nmod e;\n"
        );
        let impls = "use super::B;\nimpl B { fn a() {} }\n";
        let checkout = Checkout::new(&[
            (
                "posse-a/src/lib.rs",
                &format!("{text}impl B {{ fn x() {{}} }}\n"),
            ),
            ("posse-a/src/b.rs", impls),
            ("posse-a/src/c.rs", impls),
            ("posse-a/src/d.rs", impls),
            ("posse-a/src/e.rs", impls),
        ]);
        assert_eq!(
            methods(&checkout.read()),
            [
                "posse-a: A has 41 methods, at most 40",
                "posse-a: B has methods in 5 files, at most 4"
            ]
        );
        assert_eq!(
            fields(&checkout.read()),
            [
                "crates/posse-a/src/lib.rs:1: A has 21 fields, at most 20",
                "crates/posse-a/src/lib.rs:67: B has 4 bools, at most 3",
            ]
        );
    }

    #[test]
    fn a_function_that_packs_its_parameters_is_found() {
        let text = "fn a(b: u8, (c, d, e): (u8, u8, u8), (f, g): (u8, u8), h: u8, i: u8) {}\n";
        let checkout = Checkout::new(&[("posse-a/src/lib.rs", text)]);
        assert_eq!(
            parameters(&checkout.read()),
            ["crates/posse-a/src/lib.rs:1: a has 8 parameters, at most 7"]
        );
    }

    #[test]
    fn a_name_is_repeated_within_a_crate_and_not_across_crates() {
        let checkout = Checkout::new(&[
            (
                "posse-a/src/lib.rs",
                "mod b;\nstruct A;\nstruct List;\nstruct C;\n",
            ),
            ("posse-a/src/b.rs", "enum A {}\nstruct List;\n"),
            ("posse-b/src/lib.rs", "struct C;\n"),
        ]);
        assert_eq!(
            repeated_in_crates(&checkout.read()),
            ["A: crates/posse-a/src/lib.rs:2, crates/posse-a/src/b.rs:1"]
        );
    }

    #[test]
    fn what_has_risen_is_listed_and_what_has_not_is_not() {
        let found = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(risen("things", found(), 2), Vec::<String>::new());
        assert_eq!(
            risen("things", found(), 1),
            ["a", "b", "2 things, at most 1"]
        );
    }
}
