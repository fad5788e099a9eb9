//! The house keeper: checks that the house is in order, what is proven, and how fast it is.
//!
//! `cargo xtask tidy`, `cargo xtask behaviour [--require IDS]`, `cargo xtask bench NAME [--quick]`,
//! `cargo xtask faults`.

#![expect(clippy::disallowed_methods, reason = "a developer's tool starts processes")]
#![expect(clippy::print_stdout, reason = "a developer's tool prints")]

mod behaviour;
mod bench;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo xtask tidy | behaviour [--require TU,AG-07,…] | bench startup|model|turn|store|spawn|worktree [--quick] | faults";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root()?;
    match words[..] {
        ["tidy"] => tidy::run(&root),
        ["behaviour"] => behaviour::run(&root, ""),
        ["behaviour", "--require", required] => behaviour::run(&root, required),
        ["bench", name] => bench::run(&root, name, bench::Effort::Full),
        ["bench", name, "--quick"] => bench::run(&root, name, bench::Effort::Quick),
        ["faults"] => faults(&root),
        _ => bail!(USAGE),
    }
}

/// The long forms of fault runs: the tests that CI ignores, one after another, with what they counted.
fn faults(root: &Path) -> Result<ExitCode> {
    let status = cargo(root)
        .args(["nextest", "run", "--workspace", "--cargo-profile", "ci", "--profile", "faults"])
        .args(["--run-ignored", "only", "--test-threads", "1", "--success-output", "immediate"])
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Cargo, without what `cargo run` told us about ourselves: build scripts that watch those variables
/// would run again, and half the workspace be built twice.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    for (name, _) in std::env::vars_os() {
        if ours.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root.context("xtask lies in the workspace")?.to_owned())
}
