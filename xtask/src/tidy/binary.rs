//! The rooms of posse-cli: commands are leaves, and one room puts the parts together.

use crate::shape;
use crate::source::{BINARY, Workspace};

/// Crates that implement ports, as they are named in code.
const ADAPTERS: &[&str] = &[
    "posse_model",
    "posse_store",
    "posse_tools",
    "posse_scripted",
];

/// The room that chooses adapters.
const ASSEMBLE: &str = "assemble";

/// Other modules that may name adapters, each with the one it is about.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Maintenance of a store or of worktrees has no port.
    ("commands::store", "posse_store"),
    ("commands::worktrees", "posse_tools"),
    // The scripted model, and the client that its conformance is checked with.
    ("commands::scripted_model", "posse_scripted"),
    ("commands::scripted_model", "posse_model"),
    // One request without a session.
    ("commands::ask", "posse_model"),
    ("commands::ask", "posse_tools"),
    ("commands::ask_model", "posse_model"),
    // Reads the blocks of requests that were sent.
    ("commands::cache", "posse_model"),
    // Reads entries that its dialects have encoded.
    ("present::history", "posse_model"),
    // Tries the connection.
    ("commands::doctor", "posse_model"),
    // Gives every error of an adapter its hint.
    ("error", "posse_model"),
    ("error", "posse_store"),
    // Finds out who has started this process.
    ("config::caller", "posse_tools"),
    // Settings and output share the words for panes and colours.
    ("config::settings", "posse_tools"),
    ("output", "posse_tools"),
];

/// Commands that import one another.
pub(super) fn commands(workspace: &Workspace) -> Vec<String> {
    shape::command_imports(workspace).behind
}

/// Adapters that are named outside of `assemble/`.
pub(super) fn adapters(workspace: &Workspace) -> Vec<String> {
    let mut faults = Vec::new();
    for one in workspace.crates.iter().filter(|one| one.name == BINARY) {
        for file in &one.files {
            let module = one.modules[file.module].path.join("::");
            let below = |room: &str| module == room || module.starts_with(&format!("{room}::"));
            for (_, path, line) in file.parsed.references() {
                let first = path.first().map_or("", String::as_str);
                let excepted = EXCEPTIONS
                    .iter()
                    .any(|(room, adapter)| *adapter == first && below(room));
                if ADAPTERS.contains(&first) && !below(ASSEMBLE) && !excepted {
                    let path = path.join("::");
                    faults.push(format!(
                        "{}:{line}: only {ASSEMBLE}/ names {path}",
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
    fn an_adapter_is_named_in_its_places_only() {
        let checkout = Checkout::new(&[
            ("posse-cli/src/main.rs", "mod assemble;\nmod commands;\n"),
            ("posse-cli/src/assemble.rs", "use posse_store::Sqlite;\n"),
            ("posse-cli/src/commands.rs", "mod store;\nmod run;\n"),
            (
                "posse-cli/src/commands/store.rs",
                "use posse_store::check;\n",
            ),
            (
                "posse-cli/src/commands/run.rs",
                "use posse_runtime::Runtime;\nfn a() { posse_store::open() }\n",
            ),
        ]);
        assert_eq!(
            adapters(&checkout.read()),
            ["crates/posse-cli/src/commands/run.rs:2: only assemble/ names posse_store::open"]
        );
    }
}
