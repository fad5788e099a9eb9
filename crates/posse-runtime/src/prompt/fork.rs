//! Texts for forks.

use std::path::Path;

use posse_port::text::{neutral, shown};
use posse_port::worktree::Made;

use crate::prompt::place::on_branch;

/// Tag by which a fork is recognised, even from its history alone.
pub(crate) const FORK_TAG: &str = "<fork-directive>";

/// Returns the rules of forks: the same for all, and so part of what they share.
pub(crate) fn fork_rules() -> String {
    format!("{FORK_TAG}\n{}</fork-directive>", include_str!("fork.md"))
}

/// Returns the directive of one fork. `told` is what it must know besides: its directory, and the
/// schema of its answer.
pub(crate) fn directive(prompt: &str, told: &[String]) -> String {
    let told: String = told.iter().map(|more| format!("{more}\n\n")).collect();
    format!("{told}Your directive:\n{prompt}")
}

/// Returns that a fork works in a checkout of its own, and where the files are that it knows.
pub(crate) fn moved(made: &Made, cwd: &Path) -> String {
    let (here, there) = (shown(&made.worktree.path), shown(&made.worktree.origin));
    let mut text = format!(
        "You work in a git worktree of your own: {here}{}, made from {}. Every path \
         above inside {there} belongs to the original: your copy of the file is at the same place \
         inside {here}, and your working directory is {}. Files may differ from what you have \
         seen: read a file there before you edit it. Commit what you want to keep, and name the \
         commit in your report.",
        on_branch(&made.worktree),
        neutral(&made.base),
        shown(cwd)
    );
    if let Some(carried) = &made.carried {
        text.push_str(&format!(
            " Uncommitted work from there is in it, still uncommitted: {}.",
            neutral(carried)
        ));
    }
    if let Some(missing) = &made.missing {
        text.push_str(&format!(
            " Uncommitted work from there is NOT in it: {}.",
            neutral(missing)
        ));
    }
    text
}
