//! Who names whom: circles of files, commands that import one another, arrows between crates.

use serde_json::Value;

use super::Figure;
use crate::source::{BINARY, Crate, Edge, Workspace, circles};

/// The circles of a crate's files, the largest first, and the edges they are made of. That a module names what one
/// around it defines is not counted: a parent lists and uses its children, and they may use what is above them.
pub(crate) fn circles_of(one: &Crate) -> (Vec<Vec<usize>>, Vec<Edge>) {
    let edges: Vec<Edge> = one
        .edges()
        .into_iter()
        .filter(|edge| !one.is_around(edge.to, edge.from))
        .collect();
    let pairs = edges.iter().map(|edge| (edge.from, edge.to));
    (circles(one.files.len(), pairs), edges)
}

pub(super) fn largest_circle(workspace: &Workspace) -> Figure {
    let (mut largest, mut behind) = (0, Vec::new());
    for one in &workspace.crates {
        let (circles, edges) = circles_of(one);
        largest = largest.max(circles.first().map_or(0, Vec::len));
        for circle in circles {
            behind.push(format!("{}: a circle of {}", one.name, circle.len()));
            let inside = |edge: &&Edge| circle.contains(&edge.from) && circle.contains(&edge.to);
            behind.extend(edges.iter().filter(inside).map(|edge| {
                let (from, to) = (&one.files[edge.from].name, &one.files[edge.to].name);
                format!("  {from}:{}: {} in {to}", edge.line, edge.path)
            }));
        }
    }
    Figure {
        key: "largest_circle",
        value: Value::from(largest),
        behind,
    }
}

/// The command that a file of posse-cli belongs to.
fn command_of(file: &str) -> Option<&str> {
    let (_, below) = file.split_once("/src/commands/")?;
    let first = below.split('/').next()?.trim_end_matches(".rs");
    Some(first).filter(|first| *first != "mod")
}

/// Imports and paths by which a command of posse-cli names another.
pub(crate) fn command_imports(workspace: &Workspace) -> Figure {
    let mut behind = Vec::new();
    for one in workspace.crates.iter().filter(|one| one.name == BINARY) {
        for file in &one.files {
            let Some(command) = command_of(&file.name) else {
                continue;
            };
            let anchored = |path: &[String]| {
                let first = path.first().map_or("", String::as_str);
                ["crate", "super", "self"].contains(&first)
            };
            let named = file.parsed.references();
            for (scope, path, line) in named.filter(|(_, path, _)| anchored(path)) {
                let target = one.resolve(one.module_in(file, scope), path);
                let to = target.map(|target| &one.files[one.modules[target.module].file].name);
                let other = to
                    .and_then(|to| command_of(to))
                    .filter(|other| *other != command);
                if let Some(other) = other {
                    let path = path.join("::");
                    behind.push(format!("{}:{line}: {path} of {other}", file.name));
                }
            }
        }
    }
    Figure {
        key: "command_imports",
        value: Value::from(behind.len()),
        behind,
    }
}

pub(super) fn library_edges(workspace: &Workspace) -> Figure {
    let behind = workspace.library_edges();
    Figure {
        key: "library_edges",
        value: Value::from(behind.len()),
        behind,
    }
}

pub(super) fn chain(workspace: &Workspace) -> Figure {
    let chain = workspace.chain();
    Figure {
        key: "chain",
        value: Value::from(chain.len()),
        behind: vec![chain.join(" → ")],
    }
}
