//! Tells which files of a workspace do not count, because nobody has trusted it.

use crate::config::trust::{self, Trust};
use crate::output::{say, tame};

/// Prints a line if files wait for the person's trust. In a trusted workspace each has a warning of
/// its own.
pub(crate) fn tell(trust: &Trust) {
    if let Some(problem) = trust.problem() {
        say(&format!("warning: {}", tame(problem)));
    }
    if let Some(line) = line(trust) {
        say(&line);
    }
}

/// Returns the line about an untrusted workspace; none if nothing waits.
fn line(trust: &Trust) -> Option<String> {
    let waiting = trust.waiting();
    if trust.is_trusted() || waiting.is_empty() {
        return None;
    }
    let (files, root) = (trust::counted(&waiting), trust.root().display());
    Some(tame(&format!(
        "not trusted: {files} of {root} do not count; `posse trust` shows them and asks, --trust \
         uses them once"
    )))
}
