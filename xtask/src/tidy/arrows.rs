//! Who may depend on whom.

use anyhow::{Context, Result};

use crate::source::{Workspace, lex};

/// The most dependencies among library crates, and the most crates in a chain of them.
const MOST_EDGES: usize = 17;
const MOST_IN_CHAIN: usize = 5;

/// The arrows of ARCHITECTURE.md. A crate that is not listed here may not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("posse-protocol", &[]),
    ("posse-port", &["posse-protocol"]),
    ("posse-permission", &["posse-port", "posse-protocol"]),
    (
        "posse-runtime",
        &["posse-permission", "posse-port", "posse-protocol"],
    ),
    ("posse-model", &["posse-port", "posse-protocol"]),
    ("posse-store", &["posse-port", "posse-protocol"]),
    (
        "posse-tools",
        &[
            "posse-permission",
            "posse-port",
            "posse-protocol",
            "posse-sandbox",
        ],
    ),
    ("posse-sandbox", &["posse-port"]),
    ("posse-scripted", &["posse-protocol"]),
    ("posse-tui", &["posse-protocol"]),
    ("posse-testkit", LIBRARIES),
    ("posse-cli", LIBRARIES),
    ("posse-bench", MEASURED),
    ("xtask", &[]),
];

/// What stands behind both the binary and the tests.
const LIBRARIES: &[&str] = &[
    "posse-protocol",
    "posse-port",
    "posse-permission",
    "posse-runtime",
    "posse-model",
    "posse-store",
    "posse-tools",
    "posse-sandbox",
    "posse-scripted",
    "posse-tui",
];

/// What stands behind programs that measure.
const MEASURED: &[&str] = &[
    "posse-protocol",
    "posse-port",
    "posse-permission",
    "posse-runtime",
    "posse-model",
    "posse-store",
    "posse-tools",
    "posse-scripted",
    "posse-tui",
    "posse-testkit",
];

/// What only tests stand on: those of the binary on a real PostgreSQL, and scenarios of the runtime on real adapters.
const IN_TESTS: &[(&str, &str)] = &[
    ("posse-cli", "posse-testkit"),
    ("posse-runtime", "posse-testkit"),
    ("posse-runtime", "posse-model"),
    ("posse-runtime", "posse-store"),
    ("posse-runtime", "posse-tools"),
    ("posse-runtime", "posse-scripted"),
];

/// The one file of the testkit that reads what tests are told by the environment.
const TESTS_ARE_TOLD: &str = "crates/posse-testkit/src/place.rs";

/// The crate of words depends on nothing that does anything.
const PROTOCOL_MAY_USE: &[&str] = &["schemars", "serde", "serde_json", "uuid"];

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    ARROWS
        .iter()
        .find(|(from, _)| *from == name)
        .map(|(_, to)| *to)
}

/// Checks the dependencies of a manifest.
pub(super) fn check_manifest(text: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(text)?;
    let name = manifest["package"]["name"]
        .as_str()
        .context("a package has a name")?;
    let Some(allowed) = allowed(name) else {
        return Ok(vec![format!(
            "{name}: a crate that ARCHITECTURE.md does not know"
        )]);
    };
    let mut faults = Vec::new();
    for section in ["dependencies", "dev-dependencies"] {
        let names = manifest
            .get(section)
            .and_then(toml::Value::as_table)
            .into_iter()
            .flat_map(toml::Table::keys);
        for dependency in names {
            let ours = dependency.starts_with("posse-");
            let in_tests =
                section == "dev-dependencies" && IN_TESTS.contains(&(name, dependency.as_str()));
            let stranger = name == "posse-protocol"
                && section == "dependencies"
                && !PROTOCOL_MAY_USE.contains(&dependency.as_str());
            if (ours && !in_tests && !allowed.contains(&dependency.as_str())) || (!ours && stranger)
            {
                faults.push(format!("{name}: may not depend on {dependency}"));
            }
        }
    }
    Ok(faults)
}

/// Too many arrows between library crates, or too long a chain of crates.
pub(super) fn too_many(workspace: &Workspace) -> Vec<String> {
    let (edges, chain) = (workspace.library_edges(), workspace.chain());
    let mut faults = Vec::new();
    if edges.len() > MOST_EDGES {
        let count = edges.len();
        let edges = edges.join(", ");
        faults.push(format!(
            "{count} library edges, at most {MOST_EDGES}: {edges}"
        ));
    }
    if chain.len() > MOST_IN_CHAIN {
        let count = chain.len();
        let chain = chain.join(" → ");
        faults.push(format!(
            "a chain of {count} crates, at most {MOST_IN_CHAIN}: {chain}"
        ));
    }
    faults
}

/// Checks what a source file names.
pub(super) fn check_source(path: &str, text: &str) -> Vec<String> {
    let owner = path
        .split('/')
        .find(|part| part.starts_with("posse-") || *part == "xtask")
        .unwrap_or_default();
    let mut faults = Vec::new();
    // An example is a program of a user's: it puts adapters together and has an environment.
    let is_example = path.contains("/examples/");
    let tokens = lex(text).tokens;
    for (at, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is_word())
    {
        let mut fault = |what: String| faults.push(format!("{path}:{}: {what}", token.line));
        let others = ARROWS.iter().filter(|(name, _)| *name != owner);
        for (name, _) in others.filter(|(name, _)| token.is(&name.replace('-', "_"))) {
            let in_tests = path.contains("/tests/") && IN_TESTS.contains(&(owner, *name));
            if !in_tests
                && !is_example
                && !allowed(owner).is_some_and(|allowed| allowed.contains(name))
            {
                fault(format!("{owner} may not use {name}"));
            }
        }
        let called = tokens.get(at + 2).filter(|_| token.is("env"));
        let reads_environment = called.is_some_and(|called| {
            let of_process = ["home_dir", "current_dir", "temp_dir"];
            called.text.starts_with("var") || of_process.iter().any(|name| called.is(name))
        });
        let may_read = matches!(owner, "posse-cli" | "xtask")
            || path.contains("/tests/")
            || is_example
            || path == TESTS_ARE_TOLD;
        if reads_environment && !may_read {
            fault("only posse-cli reads the environment".into());
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_dependency_is_found() {
        let manifest = |name: &str, dependency: &str| {
            check_manifest(&format!(
                "package.name = '{name}'\n[dependencies]\n{dependency} = '1'"
            ))
            .unwrap()
        };
        assert_eq!(manifest("posse-model", "posse-port"), Vec::<String>::new());
        assert_eq!(
            manifest("posse-runtime", "posse-model"),
            ["posse-runtime: may not depend on posse-model"]
        );
        assert_eq!(
            manifest("posse-protocol", "tokio"),
            ["posse-protocol: may not depend on tokio"]
        );
        assert_eq!(manifest("posse-extra", "serde").len(), 1);
        assert_eq!(manifest("posse-cli", "posse-testkit").len(), 1);
        let in_tests = "package.name = 'posse-cli'\n[dev-dependencies]\nposse-testkit = '1'";
        assert_eq!(check_manifest(in_tests).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_forbidden_use_is_found() {
        let check = |path: &str, line: &str| check_source(path, line).len();
        let (ours, theirs) = ("use posse_port::X;", "// posse_cli\nuse posse_cli::X;");
        assert_eq!(check("crates/posse-model/src/a.rs", ours), 0);
        assert_eq!(check("crates/posse-scripted/src/a.rs", ours), 1);
        assert_eq!(check("crates/posse-model/src/a.rs", theirs), 1);
        let adapter = "use posse_store::X;";
        assert_eq!(check("crates/posse-runtime/examples/a.rs", adapter), 0);
        assert_eq!(check("crates/posse-runtime/src/a.rs", adapter), 1);
        assert_eq!(
            check(
                "crates/posse-model/src/a.rs",
                "let x = std::env::var(\"X\");"
            ),
            1
        );
    }
}
