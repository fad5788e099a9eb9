//! What posse itself tells a model: where it works, and what has changed since.

use std::path::Path;

use posse_port::text::{neutral, shown};
use posse_port::worktree::{Made, Worktree};

/// Words of posse's own.
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// That an agent works elsewhere than its system prompt says. It is told with the first message: agents
/// that differ only in this share what stands before.
pub fn elsewhere(cwd: &Path) -> String {
    reminder(&format!(
        "Your working directory is not the one named above but {}",
        shown(cwd)
    ))
}

/// That an agent has a checkout for itself, what that was made from, and what is not in it.
pub fn worktree(made: &Made, cwd: &Path) -> String {
    let Made {
        worktree,
        base,
        missing,
        carried,
    } = made;
    // What all are told alike comes first: siblings share it.
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
    text.push_str(&format!(
        "It is {}, on branch {}.",
        shown(cwd),
        worktree.branch
    ));
    reminder(&text)
}

/// That a worktree was gone when its agent went on.
pub fn remade(worktree: &Worktree) -> String {
    reminder(&format!(
        "Your worktree {} was removed and has been made again: branch {}, originally from commit \
         {}. Check what is in it before you rely on what you remember.",
        shown(&worktree.path),
        worktree.branch,
        worktree.base
    ))
}

/// The types of agents that can be started now. `listing` is empty if there are none.
pub fn types(listing: &str) -> String {
    let listing = if listing.is_empty() { " none" } else { listing };
    reminder(&format!(
        "The types of agents you can start have changed. Ignore earlier lists; there are \
         now:{listing}"
    ))
}
