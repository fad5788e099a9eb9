//! The form of a rule that means the same in another file and another directory.

use std::path::Path;

use super::RulePlace;

/// Returns a valid rule of a session in `cwd` in the form in which the file of `place` keeps it: a
/// path that the session takes from `cwd` becomes absolute. `None` if `cwd` is not text.
pub(super) fn lasting(rule: &str, place: RulePlace, cwd: &Path) -> Option<String> {
    let unchanged = || Some(rule.to_owned());
    let Some((tool @ ("Read" | "Edit"), rest)) = rule.trim().split_once('(') else {
        return unchanged();
    };
    let pattern = rest.strip_suffix(')').unwrap_or(rest).trim();
    if pattern.starts_with("//") || pattern.starts_with("~/") {
        return unchanged();
    }
    // Relative paths in the user's file are about every directory that posse works in.
    if place == RulePlace::User && !pattern.starts_with('/') {
        return unchanged();
    }
    let below = match pattern
        .strip_prefix("./")
        .or_else(|| pattern.strip_prefix('/'))
    {
        Some(rest) => rest.to_owned(),
        None if pattern.trim_end_matches('/').contains('/') => pattern.to_owned(),
        None => format!("**/{pattern}"),
    };
    let cwd = escaped(cwd.to_str()?.trim_end_matches('/'));
    Some(format!("{tool}(/{cwd}/{below})"))
}

/// Returns a path as a pattern that matches only it.
fn escaped(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        if "*?[]{}\\".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_the_working_directory_becomes_absolute() {
        use RulePlace::{Local, User};
        let table = [
            ("Edit(/src/**)", User, "Edit(//w/a[b/src/**)"),
            ("Edit(/src/**)", Local, "Edit(//w/a[b/src/**)"),
            ("Read(./x)", Local, "Read(//w/a[b/x)"),
            ("Read(a/x)", Local, "Read(//w/a[b/a/x)"),
            ("Read(.env)", Local, "Read(//w/a[b/**/.env)"),
            ("Read(dir/)", Local, "Read(//w/a[b/**/dir/)"),
            ("Read(.env)", User, "Read(.env)"),
            ("Read(./x)", User, "Read(./x)"),
            ("Edit(//etc/hosts)", Local, "Edit(//etc/hosts)"),
            ("Edit(~/x)", Local, "Edit(~/x)"),
            ("Edit", Local, "Edit"),
            ("Bash(/bin/ls *)", Local, "Bash(/bin/ls *)"),
        ];
        for (rule, place, expected) in table {
            let expected = expected.replace('[', "\\[");
            let kept = lasting(rule, place, Path::new("/w/a[b"));
            assert_eq!(kept, Some(expected), "{rule} in {place:?}");
        }
        let at_root = lasting("Edit(/src/**)", Local, Path::new("/"));
        assert_eq!(at_root.as_deref(), Some("Edit(//src/**)"));
    }
}
