//! Each figure on a small checkout.

use super::*;
use crate::source::made::Checkout;

fn figure(files: &[(&str, &str)], key: &str) -> (Value, Vec<String>) {
    let found = figures(&Checkout::new(files).read());
    let found = found.into_iter().find(|figure| figure.key == key).unwrap();
    (found.value, found.behind)
}

fn value(files: &[(&str, &str)], key: &str) -> Value {
    figure(files, key).0
}

#[test]
fn a_circle_is_found_through_re_exports() {
    let files = [
        (
            "posse-a/src/lib.rs",
            "mod one;\nmod two;\nmod three;\npub use two::Two;\n",
        ),
        (
            "posse-a/src/one.rs",
            "use crate::Two;\npub struct One(Two);\n",
        ),
        ("posse-a/src/two.rs", "mod inner;\npub use inner::Two;\n"),
        (
            "posse-a/src/two/inner.rs",
            "pub struct Two;\nfn a() { crate::three::three() }\n",
        ),
        (
            "posse-a/src/three.rs",
            "use super::one::*;\npub fn three() {}\n",
        ),
    ];
    let (value, behind) = figure(&files, "largest_circle");
    assert_eq!(value, 3);
    assert_eq!(
        behind,
        [
            "posse-a: a circle of 3",
            "  crates/posse-a/src/one.rs:1: crate::Two in crates/posse-a/src/two/inner.rs",
            "  crates/posse-a/src/two/inner.rs:2: crate::three::three in crates/posse-a/src/three.rs",
            "  crates/posse-a/src/three.rs:1: super::one in crates/posse-a/src/one.rs",
        ]
    );
}

#[test]
fn a_parent_and_its_child_do_not_make_a_circle() {
    let files = [
        ("posse-a/src/lib.rs", "mod room;\n"),
        (
            "posse-a/src/room.rs",
            "mod child;\nuse child::Child;\npub struct Room(Child);\n#[cfg(test)]\nmod tests { use crate::x; }\n",
        ),
        (
            "posse-a/src/room/child.rs",
            "use super::Room;\npub struct Child(Option<Box<Room>>);\n",
        ),
    ];
    assert_eq!(value(&files, "largest_circle"), 0);
}

#[test]
fn tests_make_no_circle_and_count_as_tests() {
    let files = [
        ("posse-a/src/lib.rs", "mod a;\nmod b;\n"),
        (
            "posse-a/src/a.rs",
            "use crate::b::B;\n#[cfg(test)]\nmod tests;\n",
        ),
        ("posse-a/src/a/tests.rs", "use super::*;\n\n"),
        (
            "posse-a/src/b.rs",
            "pub struct B;\n#[cfg(test)]\nuse crate::a;\n",
        ),
        ("posse-a/tests/it.rs", "fn a() {}\n"),
        ("posse-testkit/src/lib.rs", "pub struct C;\n"),
        ("posse-testkit/tests/it.rs", "fn b() {}\n"),
    ];
    assert_eq!(value(&files, "largest_circle"), 0);
    let (_, behind) = figure(&files, "tests_to_code");
    assert_eq!(behind, ["8 lines of tests, 4 of shipped code"]);
}

#[test]
fn methods_are_counted_over_all_impls_of_a_type() {
    let files = [
        (
            "posse-a/src/lib.rs",
            "mod a;\nmod b;\npub struct Other;\nimpl Other { fn a() {} }\n",
        ),
        (
            "posse-a/src/a.rs",
            "pub struct House<T>(T);\nimpl<T> House<T> { fn a() {} fn b() {} }\nimpl<T> Drop for House<T> { fn drop() {} }\n",
        ),
        (
            "posse-a/src/b.rs",
            "use crate::a::House as Home;\nimpl Home<u8> { fn c() {} }\n",
        ),
    ];
    let (value, behind) = figure(&files, "max_methods");
    assert_eq!(value, 3);
    assert_eq!(
        behind[0],
        "House: 3 methods in 2 files: crates/posse-a/src/a.rs 2, crates/posse-a/src/b.rs 1"
    );
}

#[test]
fn the_largest_struct_and_the_one_with_most_flags_are_found() {
    let text = "struct A {\n    a: u8,\n    b: u8,\n    c: bool,\n}\nstruct B {\n    a: bool,\n    b: bool,\n}\n";
    let files = [("posse-a/src/lib.rs", text)];
    assert_eq!(
        figure(&files, "max_fields").1[0],
        "crates/posse-a/src/lib.rs:1: A 3"
    );
    assert_eq!(
        figure(&files, "max_bools").1[0],
        "crates/posse-a/src/lib.rs:6: B 2"
    );
}

#[test]
fn string_errors_are_counted_with_their_aliases() {
    let text = "type Told<T> = Result<T, String>;\nfn a() -> Told<u8> {}\n\
                fn b() -> Result<Vec<(u8, u8)>, String> {}\nfn c() -> Result<String, u8> {}\n\
                fn d() -> std::result::Result<(), String> {}\nfn e() -> Result<HashMap<u8, String>> {}\n";
    let (value, behind) = figure(&[("posse-a/src/lib.rs", text)], "string_errors");
    assert_eq!(value, 4);
    assert_eq!(behind[3], "crates/posse-a/src/lib.rs:5");
}

#[test]
fn commands_that_import_one_another_are_found() {
    let files = [
        ("posse-cli/src/main.rs", "mod commands;\nmod output;\n"),
        ("posse-cli/src/output.rs", "pub fn show() {}\n"),
        (
            "posse-cli/src/commands.rs",
            "mod one;\nmod two;\npub use two::Two;\n",
        ),
        (
            "posse-cli/src/commands/one.rs",
            "mod part;\nuse crate::{commands::two::{self, Two}, output::show};\nfn a() { two::b() }\n",
        ),
        (
            "posse-cli/src/commands/one/part.rs",
            "fn a() { crate::commands::Two; super::super::two::b() }\nuse super::*;\n",
        ),
        (
            "posse-cli/src/commands/two.rs",
            "pub struct Two;\npub fn b() {}\n",
        ),
    ];
    let (value, behind) = figure(&files, "command_imports");
    assert_eq!(value, 4, "{behind:#?}");
}

#[test]
fn names_that_are_defined_twice_are_found() {
    let files = [
        ("posse-a/src/lib.rs", "struct A;\nenum B {}\nmod c;\n"),
        ("posse-a/src/c.rs", "trait B {}\nimpl A { type D = u8; }\n"),
        ("posse-b/src/lib.rs", "struct D;\n#[cfg(test)]\nstruct A;\n"),
    ];
    let (value, behind) = figure(&files, "repeated_names");
    assert_eq!(value, 1);
    assert_eq!(
        behind,
        ["B: crates/posse-a/src/lib.rs:2, crates/posse-a/src/c.rs:1"]
    );
}

#[test]
fn edges_and_chains_are_those_of_shipped_crates() {
    let files = [
        ("posse-a/src/lib.rs", ""),
        (
            "posse-b/Cargo.toml",
            "package.name = 'posse-b'\n[dependencies]\nposse-a = '1'\n",
        ),
        (
            "posse-cli/Cargo.toml",
            "package.name = 'posse-cli'\n[dependencies]\nposse-b = '1'\nserde = '1'\n",
        ),
        (
            "posse-testkit/Cargo.toml",
            "package.name = 'posse-testkit'\n[dependencies]\nposse-cli = '1'\n[dev-dependencies]\nposse-a = '1'\n",
        ),
    ];
    assert_eq!(figure(&files, "library_edges").1, ["posse-b → posse-a"]);
    assert_eq!(figure(&files, "chain").1, ["posse-cli → posse-b → posse-a"]);
}

#[test]
fn comments_and_locks_are_shares_of_lines() {
    let text = "//! Doc.\n\n// Why.\n// ----\nstruct A(Arc<std::sync::Mutex<u8>>); // and why\n// proves TU-01\n\
                struct B(Arc<u8>, Mutex<u8>);\n/// Doc.\nstruct C;\n";
    let files = [("posse-a/src/lib.rs", text)];
    assert_eq!(value(&files, "comments_percent"), 75.0);
    assert_eq!(value(&files, "why_percent"), 25.0);
    assert_eq!(value(&files, "arc_locks_per_1k"), 111.11);
}
