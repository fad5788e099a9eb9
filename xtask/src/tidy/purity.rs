//! Rooms that only decide: they know no task, no clock, no lock and no file system.

use crate::source::Workspace;

/// Modules whose files, and those below them, only decide.
const PURE: &[(&str, &str)] = &[
    ("posse-runtime", "agent::step"),
    ("posse-runtime", "prompt"),
    ("posse-runtime", "definition"),
    ("posse-runtime", "history"),
    ("posse-scripted", "limits"),
];

/// Modules of these names only decide, wherever they are.
const PURE_NAMES: &[&str] = &["decide", "route"];

/// Crates that know no task and no file system. Their state is shared, so a lock is allowed.
const WITHOUT_WORLD: &[&str] = &["posse-permission"];

/// What a pure room does not name.
const WORLD: &[&str] = &["tokio", "Instant", "Mutex"];

/// Names of the outside world in rooms that only decide.
pub(super) fn impure(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for one in &workspace.crates {
        let without_world = WITHOUT_WORLD.contains(&one.name.as_str());
        for file in &one.files {
            let path = &one.modules[file.module].path;
            let joined = path.join("::");
            let below = |room: &str| joined == room || joined.starts_with(&format!("{room}::"));
            let listed = PURE
                .iter()
                .any(|(name, room)| *name == one.name && below(room));
            let named = path.iter().any(|name| PURE_NAMES.contains(&name.as_str()));
            if !(listed || named || without_world) {
                continue;
            }
            let mut fault = |line: usize, what: &str| {
                faults.push(format!(
                    "{}:{line}: {what} in a room that only decides",
                    file.name
                ));
            };
            for token in file.parsed.tokens.iter().filter(|token| token.is_word()) {
                let known = WORLD.iter().find(|word| token.is(word));
                let allowed = without_world && !listed && !named && token.is("Mutex");
                if let Some(word) = known.filter(|_| !allowed) {
                    fault(token.line, word);
                }
            }
            for (_, path, line) in file.parsed.references() {
                if path.len() > 1 && path[0] == "std" && path[1] == "fs" {
                    fault(line, "std::fs");
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
    fn the_world_is_found_in_rooms_that_only_decide() {
        let checkout = Checkout::new(&[
            (
                "posse-runtime/src/lib.rs",
                "mod agent;\nmod prompt;\nmod session;\n",
            ),
            (
                "posse-runtime/src/agent.rs",
                "mod step;\nmod stepping;\nuse tokio::sync::mpsc;\n",
            ),
            (
                "posse-runtime/src/agent/step.rs",
                "use std::{collections::BTreeMap, fs};\n// tokio\nfn a(now: std::time::Instant) { \"Mutex\" }\n",
            ),
            ("posse-runtime/src/agent/stepping.rs", "use tokio::time;\n"),
            (
                "posse-runtime/src/prompt.rs",
                "#[cfg(test)]\nuse std::fs;\n",
            ),
            ("posse-runtime/src/session.rs", "mod route;\n"),
            (
                "posse-runtime/src/session/route.rs",
                "use std::sync::Mutex;\n",
            ),
            (
                "posse-permission/src/lib.rs",
                "use std::sync::Mutex;\nfn b() { std::fs::read() }\n",
            ),
        ]);
        let rest = "in a room that only decides";
        assert_eq!(
            impure(&checkout.read()),
            [
                format!("crates/posse-permission/src/lib.rs:2: std::fs {rest}"),
                format!("crates/posse-runtime/src/agent/step.rs:3: Instant {rest}"),
                format!("crates/posse-runtime/src/agent/step.rs:1: std::fs {rest}"),
                format!("crates/posse-runtime/src/session/route.rs:1: Mutex {rest}"),
            ]
        );
    }
}
