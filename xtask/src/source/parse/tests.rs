//! Tests of reading a file.

use super::*;

fn joined(paths: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    paths.map(|path| path.join("::")).collect()
}

#[test]
fn a_use_tree_gives_each_name_with_its_path() {
    let parsed = parse(
        "use crate::a::{self, b::{C, D as E}, f::*};\npub use super::G;\nfn h() {\n    use self::i::J;\n}\n",
    );
    let found: Vec<_> = parsed
        .imports
        .iter()
        .map(|import| {
            let name = import.name.as_deref().unwrap_or("*");
            format!("{} as {name} {}", import.path.join("::"), import.of_module)
        })
        .collect();
    assert_eq!(
        found,
        [
            "crate::a as a true",
            "crate::a::b::C as C true",
            "crate::a::b::D as E true",
            "crate::a::f as * true",
            "super::G as G true",
            "self::i::J as J false",
        ]
    );
    assert_eq!(parsed.imports[5].line, 4);
}

#[test]
fn paths_in_place_are_found_and_method_calls_are_not() {
    let parsed = parse(
        "fn a(x: crate::b::C) -> Vec<super::d::E> {\n    x.f(g::h(), \"crate::no\").i::<J>()\n}",
    );
    assert_eq!(
        joined(parsed.paths.into_iter().map(|path| path.path)),
        ["crate::b::C", "super::d::E", "g::h"]
    );
}

#[test]
fn what_only_tests_see_is_left_out() {
    let text = "struct A {\n    b: bool,\n    #[cfg(test)]\n    c: u8,\n}\n\n\
                #[cfg(test)]\nimpl A {\n    fn d() {}\n}\n#[cfg(test)]\nmod tests {\n    // e\n    use crate::f;\n}\n\
                #[cfg(test)]\nmod more;\nmod g;\n";
    let parsed = parse(text);
    assert_eq!((parsed.types[0].fields, parsed.types[0].bools), (1, 1));
    assert!(parsed.impls.is_empty() && parsed.imports.is_empty() && parsed.comments.is_empty());
    let modules: Vec<_> = parsed.modules.iter().map(|module| &module.name).collect();
    assert_eq!(modules, ["g"]);
    assert_eq!(
        (parsed.lines, parsed.test_lines, parsed.blank_lines),
        (5, 13, 1)
    );
}

#[test]
fn fields_and_bools_are_counted() {
    let parsed = parse(
        "struct A<T: B<C, D>> where T: E {\n    /// A map.\n    #[serde(default, skip)]\n    pub(crate) f: Map<G, H>,\n    i: bool,\n    j: Option<bool>,\n    k: Box<dyn Fn(u8, u8) -> bool>,\n}\nstruct L(pub bool, bool, u8);\nstruct M;\n",
    );
    let found: Vec<_> = parsed
        .types
        .iter()
        .map(|item| (item.name.as_str(), item.fields, item.bools))
        .collect();
    assert_eq!(found, [("A", 4, 1), ("L", 3, 2), ("M", 0, 0)]);
    assert_eq!(parsed.types[0].members, ["f", "i", "j", "k"]);
    assert_eq!(parsed.types[1].members, ["0", "1", "2"]);
}

#[test]
fn impls_know_their_type_and_methods() {
    let parsed = parse(
        "impl<'a, T: Fn() -> u8> super::A<'a, T> where T: for<'b> B<'b> {\n    const C: u8 = 1;\n    pub(crate) async fn d(&self) { fn e() {} }\n    fn f() -> fn(u8) { g }\n}\nimpl<T> H for I<T> { fn j() {} }\nimpl dyn K { fn l() {} }\n",
    );
    let found: Vec<_> = parsed
        .impls
        .iter()
        .map(|item| (item.path.join("::"), item.methods.join(" "), item.is_trait))
        .collect();
    assert_eq!(
        found,
        [
            ("super::A".to_owned(), "d f".to_owned(), false),
            ("I".to_owned(), "j".to_owned(), true),
            ("K".to_owned(), "l".to_owned(), false),
        ]
    );
}

#[test]
fn names_and_inline_modules_are_scoped() {
    let parsed = parse(
        "const A: [u8; 2] = [1, 2];\npub(crate) const fn b() {}\nstatic C: u8 = { 1 };\nmod d {\n    pub type E = u8;\n    fn f() { crate::g::h() }\n}\nmacro_rules! i { () => {} }\n",
    );
    let names: Vec<_> = parsed
        .names
        .iter()
        .map(|(scope, name)| format!("{}/{name}", scope.join("::")))
        .collect();
    assert_eq!(names, ["/A", "/b", "/C", "d/E", "d/f", "/i"]);
    assert_eq!(parsed.paths[0].scope, ["d"]);
    let functions: Vec<_> = parsed.functions.iter().map(|item| &item.name).collect();
    assert_eq!(functions, ["b", "f"]);
}

#[test]
fn members_are_the_variants_of_enums_and_the_functions_of_traits() {
    let parsed = parse(
        "enum A<T> {\n    /// One.\n    #[default]\n    B,\n    C(u8, T),\n    D { e: u8, f: u8 },\n    G = 7,\n}\ntrait H: I {\n    type J;\n    fn k(&self) -> u8 { l() }\n    async fn m();\n}\n",
    );
    let found: Vec<_> = parsed
        .types
        .iter()
        .map(|item| item.members.join(" "))
        .collect();
    assert_eq!(found, ["B C D G", "k m"]);
}

#[test]
fn parts_of_a_tuple_count_as_parameters() {
    let parsed = parse(
        "fn a<T: Fn(u8, u8)>(&self, (b, c): (u8, u8), d: Map<E, F>, g: (u8, u8),) {}\nfn h() {}\ntype I = fn(u8, u8);\n",
    );
    let found: Vec<_> = parsed
        .signatures
        .iter()
        .map(|item| (item.name.as_str(), item.parameters))
        .collect();
    assert_eq!(found, [("a", 5), ("h", 0)]);
}
