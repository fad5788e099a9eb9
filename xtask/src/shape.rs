//! `cargo xtask shape`: the large shape of the shipped code in one JSON line.

mod arrows;
mod text;
mod types;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use crate::source::Workspace;

pub(crate) use arrows::command_imports;
pub(crate) use text::string_errors_of;
pub(crate) use types::{all as types_of, methods_of};

/// What `--help` says: how each figure is counted.
const HELP: &str = include_str!("shape/help.txt");

/// One figure, and what stands behind it.
pub(crate) struct Figure {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// What raises it, as `file:line: what`, the worst first.
    pub(crate) behind: Vec<String>,
}

/// `shape [--root DIR] [--verbose [KEY]]`.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<ExitCode> {
    let (mut root, mut verbose, mut only) = (root.to_owned(), false, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, only) {
            ("--help", _) => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            ("--root", _) => match words.next() {
                Some(directory) => root = PathBuf::from(directory),
                None => bail!("--root needs a directory"),
            },
            ("--verbose", _) => verbose = true,
            (key, None) if verbose => only = Some(key),
            _ => bail!("usage: cargo xtask shape [--root DIR] [--verbose [FIGURE]] | --help"),
        }
    }
    let figures = figures(&Workspace::read(&root)?);
    if only.is_some_and(|only| figures.iter().all(|figure| figure.key != only)) {
        bail!("there is no such figure; see `cargo xtask shape --help`");
    }
    if verbose {
        let wanted = |figure: &&Figure| only.is_none_or(|only| only == figure.key);
        for figure in figures.iter().filter(wanted) {
            println!("{}: {}", figure.key, figure.value);
            for line in &figure.behind {
                println!("  {line}");
            }
        }
    }
    println!("{}", line(&figures));
    Ok(ExitCode::SUCCESS)
}

/// Counts everything.
pub(crate) fn figures(workspace: &Workspace) -> Vec<Figure> {
    vec![
        arrows::largest_circle(workspace),
        types::max_methods(workspace),
        types::max_fields(workspace),
        types::max_bools(workspace),
        text::string_errors(workspace),
        arrows::command_imports(workspace),
        types::repeated_names(workspace),
        arrows::library_edges(workspace),
        arrows::chain(workspace),
        text::arc_locks(workspace),
        text::comments(workspace),
        text::why(workspace),
        text::tests_to_code(workspace),
    ]
}

fn line(figures: &[Figure]) -> Value {
    let members = figures
        .iter()
        .map(|one| (one.key.to_owned(), one.value.clone()));
    Value::Object(members.collect::<Map<_, _>>())
}

/// A figure with two decimals.
fn rounded(value: f64) -> Value {
    Value::from((value * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests;
