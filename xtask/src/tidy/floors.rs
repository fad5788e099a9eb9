//! Floors: which room of a crate may name which, and that no rooms stand in a circle.

use std::collections::BTreeMap;

use crate::source::{Crate, Edge, SourceFile, Workspace, circles};

/// The rooms of a crate, the lowest first. A room names only rooms before it. `main` is the file main.rs.
const FLOORS: &[(&str, &[&str])] = &[
    (
        "posse-runtime",
        &[
            "supervise",
            "govern",
            "hook",
            "definition",
            "prompt",
            "history",
            "live",
            "agent",
            "session",
            "toolset",
            "runtime",
        ],
    ),
    (
        "posse-cli",
        &[
            "output",
            "error",
            "config",
            "definitions",
            "present",
            "select",
            "assemble",
            "help",
            "complete",
            "headless",
            "board",
            "interactive",
            "serve",
            "commands",
            "main",
        ],
    ),
];

/// Circles of siblings that are known: the parent, and its children that name one another. Do not add to them; one that
/// is gone must leave the list.
const KNOWN_CIRCLES: &[(&str, &[&str])] = &[
    ("posse-permission", &["decide", "shell"]),
    ("posse-permission", &["mirror", "path"]),
    ("posse-permission::shell", &["script", "within"]),
    ("posse-port::store", &["operation", "step"]),
    ("posse-protocol", &["event", "misses"]),
    (
        "posse-runtime::session",
        &["create", "dispatch", "revive", "spawn", "team"],
    ),
    ("posse-scripted", &["control", "server"]),
    (
        "posse-scripted::anthropic",
        &["binding", "request", "rules"],
    ),
    ("posse-store", &["maintain", "postgres", "sqlite"]),
    ("posse-store::sqlite", &["error", "place"]),
];

/// The room that a module of the crate is in. The root of a library is above all rooms.
fn room_of(one: &Crate, module: usize) -> Option<&str> {
    let path = &one.modules[module].path;
    let is_main = one.files[one.modules[module].file]
        .name
        .ends_with("src/main.rs");
    match path.first() {
        Some(first) => Some(first),
        None => is_main.then_some("main"),
    }
}

/// Names that lead to a higher room, and rooms that are not listed.
pub(super) fn upward(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, rooms) in FLOORS {
        for one in workspace.crates.iter().filter(|one| one.name == *name) {
            for file in &one.files {
                faults.extend(upward_in(one, file, rooms));
            }
        }
    }
    faults
}

fn upward_in(one: &Crate, file: &SourceFile, rooms: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(room) = room_of(one, file.module) else {
        return faults;
    };
    let floor = |room: &str| rooms.iter().position(|known| *known == room);
    let Some(here) = floor(room) else {
        if one.modules[file.module].path.len() == 1 {
            faults.push(format!(
                "{}: `{room}` is not a room of floors.rs",
                file.name
            ));
        }
        return faults;
    };
    for (scope, path, line) in file.parsed.references() {
        let target = one.resolve(one.module_in(file, scope), path);
        let to = target.and_then(|target| room_of(one, target.module));
        if let Some(to) = to.filter(|to| floor(to).is_some_and(|there| there > here)) {
            let path = path.join("::");
            faults.push(format!(
                "{}:{line}: {room} names {path} of {to}, above it",
                file.name
            ));
        }
    }
    faults
}

/// Modules of one parent that name one another in a circle. What is inside each of them counts as it.
pub(super) fn sibling_circles(workspace: &Workspace) -> Vec<String> {
    let found: Vec<Circle> = workspace.crates.iter().flat_map(circles_in).collect();
    let mut faults: Vec<String> = found
        .iter()
        .filter(|circle| !KNOWN_CIRCLES.iter().any(|known| circle.is(known)))
        .map(|circle| {
            let (room, members, arrows) = (&circle.room, &circle.members, &circle.arrows);
            format!("{room}: {} name one another: {arrows}", members.join(", "))
        })
        .collect();
    for known in KNOWN_CIRCLES {
        let name = known.0.split("::").next().unwrap_or_default();
        let is_here = workspace.crates.iter().any(|one| one.name == name);
        if is_here && !found.iter().any(|circle| circle.is(known)) {
            let (room, members) = (known.0, known.1.join(", "));
            faults.push(format!(
                "{room}: the circle of {members} is gone; take it from floors.rs"
            ));
        }
    }
    faults
}

/// Modules of one parent that name one another.
struct Circle {
    /// The parent, from its crate on.
    room: String,
    members: Vec<String>,
    /// Where each names another.
    arrows: String,
}

impl Circle {
    /// Returns true if it is this one, or a part of it.
    fn is(&self, (room, members): &(&str, &[&str])) -> bool {
        let mut all = self.members.iter();
        self.room == *room && all.all(|member| members.contains(&member.as_str()))
    }
}

fn circles_in(one: &Crate) -> Vec<Circle> {
    // By parent: the names of its children, and the first edge between each two of them.
    let mut rooms: BTreeMap<&[String], BTreeMap<(&str, &str), Edge>> = BTreeMap::new();
    let edges = one.edges();
    for edge in &edges {
        let path = |file: usize| one.modules[one.files[file].module].path.as_slice();
        let (from, to) = (path(edge.from), path(edge.to));
        let shared = from
            .iter()
            .zip(to)
            .take_while(|(from, to)| from == to)
            .count();
        let has_floors = FLOORS.iter().any(|(name, _)| *name == one.name);
        if let (Some(from_child), Some(to_child)) = (from.get(shared), to.get(shared))
            && !(shared == 0 && has_floors)
        {
            let pair = (from_child.as_str(), to_child.as_str());
            let room = rooms.entry(&from[..shared]).or_default();
            room.entry(pair).or_insert_with(|| edge.clone());
        }
    }
    let mut found = Vec::new();
    for (parent, pairs) in rooms {
        let mut names: Vec<&str> = pairs.keys().flat_map(|(from, to)| [*from, *to]).collect();
        names.sort_unstable();
        names.dedup();
        let index = |name: &str| names.binary_search(&name).unwrap_or_default();
        let numbered = pairs.keys().map(|(from, to)| (index(from), index(to)));
        for circle in circles(names.len(), numbered) {
            let members: Vec<&str> = circle.iter().map(|member| names[*member]).collect();
            let room = std::iter::once(one.name.clone()).chain(parent.iter().cloned());
            let room = room.collect::<Vec<_>>().join("::");
            let inside = pairs
                .iter()
                .filter(|((from, to), _)| members.contains(from) && members.contains(to));
            let arrows: Vec<String> = inside
                .map(|(_, edge)| {
                    format!("{}:{} {}", one.files[edge.from].name, edge.line, edge.path)
                })
                .collect();
            found.push(Circle {
                room,
                members: members.into_iter().map(str::to_owned).collect(),
                arrows: arrows.join("; "),
            });
        }
    }
    found
}

/// Inherent impls that stand in another room than their type.
pub(super) fn foreign_impls(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for one in &workspace.crates {
        for file in &one.files {
            for item in file.parsed.impls.iter().filter(|item| !item.is_trait) {
                let module = one.module_in(file, &item.scope);
                let Some(target) = one.resolve(module, &item.path) else {
                    continue;
                };
                let (here, there) = (room_of(one, module), room_of(one, target.module));
                if here != there {
                    let name = item.path.join("::");
                    let there = there.unwrap_or("the root");
                    let at = item.line;
                    faults.push(format!(
                        "{}:{at}: impl {name} stands outside of {there}",
                        file.name
                    ));
                }
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::made::Checkout;

    #[test]
    fn a_name_of_a_higher_room_is_found_through_re_exports() {
        let checkout = Checkout::new(&[
            (
                "posse-runtime/src/lib.rs",
                "mod agent;\nmod prompt;\nmod attic;\npub use agent::actor::Actor;\n",
            ),
            (
                "posse-runtime/src/agent.rs",
                "pub mod actor;\nuse crate::prompt::text;\n",
            ),
            (
                "posse-runtime/src/agent/actor.rs",
                "pub struct Actor;\nuse super::super::prompt;\n",
            ),
            (
                "posse-runtime/src/prompt.rs",
                "use crate::Actor;\npub fn text() { super::agent::actor::go() }\n#[cfg(test)]\nuse crate::agent;\n",
            ),
            ("posse-runtime/src/attic.rs", "\n"),
        ]);
        assert_eq!(
            upward(&checkout.read()),
            [
                "crates/posse-runtime/src/prompt.rs:1: prompt names crate::Actor of agent, above it",
                "crates/posse-runtime/src/attic.rs: `attic` is not a room of floors.rs",
            ]
        );
    }

    #[test]
    fn nothing_names_the_main_file_of_the_binary() {
        let checkout = Checkout::new(&[
            (
                "posse-cli/src/main.rs",
                "mod commands;\nuse commands::run;\npub struct Arguments;\n",
            ),
            (
                "posse-cli/src/commands.rs",
                "pub fn run(arguments: crate::Arguments) {}\n",
            ),
        ]);
        assert_eq!(
            upward(&checkout.read()),
            [
                "crates/posse-cli/src/commands.rs:1: commands names crate::Arguments of main, above it"
            ]
        );
    }

    #[test]
    fn siblings_in_a_circle_are_found_and_parents_are_not() {
        let checkout = Checkout::new(&[
            ("posse-a/src/lib.rs", "mod one;\nmod two;\nmod three;\n"),
            (
                "posse-a/src/one.rs",
                "mod part;\nuse part::Part;\npub struct One;\n",
            ),
            (
                "posse-a/src/one/part.rs",
                "use super::One;\nuse crate::two::Two;\npub struct Part;\n",
            ),
            (
                "posse-a/src/two.rs",
                "use crate::one::One;\npub struct Two;\n",
            ),
            ("posse-a/src/three.rs", "use crate::one::One;\n"),
        ]);
        assert_eq!(
            sibling_circles(&checkout.read()),
            [
                "posse-a: one, two name one another: crates/posse-a/src/one/part.rs:2 crate::two::Two; \
              crates/posse-a/src/two.rs:1 crate::one::One"
            ]
        );
    }

    #[test]
    fn a_known_circle_that_is_gone_is_found() {
        let checkout = Checkout::new(&[("posse-protocol/src/lib.rs", "")]);
        assert_eq!(
            sibling_circles(&checkout.read()),
            ["posse-protocol: the circle of event, misses is gone; take it from floors.rs"]
        );
    }

    #[test]
    fn an_impl_in_another_room_is_found() {
        let checkout = Checkout::new(&[
            ("posse-a/src/lib.rs", "mod one;\nmod two;\n"),
            ("posse-a/src/one.rs", "mod part;\npub struct One;\n"),
            (
                "posse-a/src/one/part.rs",
                "use super::One;\nimpl One { fn a() {} }\n",
            ),
            (
                "posse-a/src/two.rs",
                "use crate::one::One;\nimpl One { fn b() {} }\nimpl Drop for One { fn drop() {} }\nimpl u8 {}\n",
            ),
        ]);
        assert_eq!(
            foreign_impls(&checkout.read()),
            ["crates/posse-a/src/two.rs:2: impl One stands outside of one"]
        );
    }
}
