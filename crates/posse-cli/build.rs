//! Links the program to a fixed address (docs/decisions/2026-11-18-a-fixed-address.md), and tells it
//! what it was built from.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script so, and git what is built"
)]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    let number = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit() {
        Some(commit) => format!("{number} ({commit})"),
        None => number,
    };
    println!("cargo:rustc-env=POSSE_VERSION={version}");
}

/// Returns the commit that is built, and its date. Only what users install asks for it: other builds
/// would be made anew with every commit.
fn commit() -> Option<String> {
    if env::var("PROFILE").ok()? != "release" {
        return None;
    }
    // Sources that lie in another project's repository are not of its commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    // Not git's own short form, which grows with the repository.
    let said = git(&["log", "-1", "--format=%H %cs"])?;
    let (hash, date) = said.split_once(' ')?;
    Some(format!("{} {date}", hash.get(..9)?))
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
