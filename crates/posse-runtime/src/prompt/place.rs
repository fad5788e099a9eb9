//! Texts of posse itself: where an agent works, and what has changed.

use std::path::Path;

use posse_port::text::{neutral, shown};
use posse_port::worktree::{Made, Worktree};

/// Returns a text of posse itself, in its frame.
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// Returns a command that the user ran, and its output.
pub(crate) fn run_by_person(command: &str, output: &str) -> String {
    reminder(&format!(
        "The user ran this command in your working directory:\n{}\nIts output:\n{}",
        neutral(command),
        neutral(output)
    ))
}

/// Returns that an agent works in another directory than its system prompt says. It is part of the
/// first message, so that agents that differ only in this share everything before it.
pub(crate) fn elsewhere(cwd: &Path) -> String {
    reminder(&format!(
        "Your working directory is not the one named above but {}",
        shown(cwd)
    ))
}

/// Returns that an agent has a checkout of its own, what it was made from, and what it lacks.
pub(crate) fn worktree(made: &Made, cwd: &Path) -> String {
    let Made {
        worktree,
        base,
        missing,
        carried,
    } = made;
    // What all siblings are told comes first, so that they share it.
    let mut text = format!(
        "You work in a git worktree of your own, not in the directory named above. Work only \
         inside it; do not touch {}, the checkout of the agent that started you.\n\
         Whatever you leave in it, committed or not, is kept and reported with your answer. If you \
         change nothing it is removed.\n\
         It was made from {}.\n",
        shown(&worktree.origin),
        neutral(base),
    );
    if let Some(carried) = carried {
        text.push_str(&format!(
            "Uncommitted work from there is in it, still uncommitted: {}\n",
            neutral(carried)
        ));
    }
    if let Some(missing) = missing {
        text.push_str(&format!(
            "Uncommitted work from there is NOT in it: {}. If your work depends on that, say so in your \
             answer.\n",
            neutral(missing)
        ));
    }
    text.push_str(&format!("It is {}{}.", shown(cwd), on_branch(worktree)));
    reminder(&text)
}

/// Returns on which branch a worktree is; nothing if git did not make it.
pub(crate) fn on_branch(worktree: &Worktree) -> String {
    match worktree.branch.as_str() {
        "" => String::new(),
        branch => format!(", on branch {branch}"),
    }
}

/// Returns that a worktree was made again, because it was gone.
pub(crate) fn remade(worktree: &Worktree) -> String {
    reminder(&format!(
        "Your worktree {} was removed and has been made again: branch {}, originally from commit \
         {}. Check what is in it before you rely on what you remember.",
        shown(&worktree.path),
        worktree.branch,
        worktree.base
    ))
}

/// Returns the text about the types that can be started now. `listing` is empty if there are none.
pub(crate) fn types(listing: &str) -> String {
    let listing = if listing.is_empty() { " none" } else { listing };
    reminder(&format!(
        "The types of agents you can start have changed. Ignore earlier lists; there are \
         now:{listing}"
    ))
}
