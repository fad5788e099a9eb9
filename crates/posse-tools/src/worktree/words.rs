//! What is told of worktrees, in words for people and models.

use std::path::Path;

/// How many names are told, and how long one may be.
const MOST_NAMES: usize = 8;
const LONGEST: usize = 200;

/// Why a worktree is kept that a hook has made.
pub(super) const BY_HOOK: &str = "a hook made it";

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns the first of some paths, and that there are more.
pub(super) fn names<P: AsRef<Path>>(paths: &[P]) -> String {
    let mut told: Vec<String> = paths
        .iter()
        .take(MOST_NAMES)
        .map(|path| name(path.as_ref()))
        .collect();
    if paths.len() > MOST_NAMES {
        told.push("…".to_owned());
    }
    told.join(", ")
}

/// Returns a path on one line: its name is somebody's input, and must not look like a line of ours.
pub(super) fn name(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(names(&["a.rs", "b\nc"]), "a.rs, b\u{fffd}c");
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(names(&many), "0, 1, 2, 3, 4, 5, 6, 7, …");
        assert_eq!(
            (count(1, "file"), count(2, "commit")),
            ("1 file".into(), "2 commits".into())
        );
    }
}
