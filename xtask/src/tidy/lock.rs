//! Cargo.lock: how many packages the workspace builds on.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::source::text_of;

/// More packages than this cost every build; a heavy one must say what it brings.
const MOST_PACKAGES: usize = 520;

/// A fault if there are too many.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let packages = count(&text_of(&root.join("Cargo.lock"))?);
    Ok(if packages > MOST_PACKAGES {
        let limit = format!("Cargo.lock: {packages} packages, at most {MOST_PACKAGES}");
        vec![limit]
    } else {
        Vec::new()
    })
}

/// How many packages there are, and how many more than before this change, as far as git knows.
pub(super) fn note(root: &Path) -> Result<String> {
    let packages = count(&text_of(&root.join("Cargo.lock"))?);
    let note = format!("Cargo.lock: {packages} packages of at most {MOST_PACKAGES}");
    let Some((commit, before)) = before(root) else {
        return Ok(note);
    };
    let rise = packages as i64 - before as i64;
    Ok(format!("{note}, {rise:+} since {commit}"))
}

/// The commit that this change stands on, and the packages it had: where the branch left origin/main, or else the
/// commit before this one.
fn before(root: &Path) -> Option<(String, usize)> {
    let head = git(root, &["rev-parse", "HEAD"])?;
    let base = git(root, &["merge-base", "HEAD", "origin/main"])
        .filter(|base| *base != head)
        .or_else(|| git(root, &["rev-parse", "HEAD~1"]))?;
    let lock = git(root, &["show", &format!("{base}:Cargo.lock")])?;
    Some((base.chars().take(7).collect(), count(&lock)))
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn count(lock: &str) -> usize {
    lock.matches("[[package]]").count()
}
