//! Names of skills.

use crate::definition::front::error::NameError;
use crate::definition::front::value::quoted;
use posse_port::closest;

/// Maximum length of a name.
const LONGEST: usize = 64;

/// Names of posse's own commands.
const RESERVED: [&str; 1] = ["compact"];

/// Returns the name that is probably meant by a word that is none: the one that ends with it, as in
/// `git:commit` for `commit`, else the closest.
pub fn meant<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let last = |name: &&'a str| name.rsplit(':').next().unwrap_or(name);
    let ends = |name: &&&'a str| last(name).eq_ignore_ascii_case(word);
    let near = || {
        let lasts: Vec<&str> = names.iter().map(last).collect();
        let near = closest(word, &lasts)?;
        names.iter().find(|name| last(name) == near).copied()
    };
    names
        .iter()
        .find(ends)
        .copied()
        .or_else(|| closest(word, names))
        .or_else(near)
}

/// Checks that a skill may have a name. In a command's name, `:` separates the directories of its
/// file.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let shown = quoted(name);
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.chars().count() > LONGEST {
        return Err(NameError::TooLong {
            name: shown,
            most: LONGEST,
        });
    }
    if RESERVED.contains(&name.to_lowercase().as_str()) {
        return Err(NameError::Reserved(shown));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(NameError::Beginning(shown));
    }
    match name
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')))
    {
        None => Ok(()),
        Some(bad) if bad.is_whitespace() || bad.is_control() => Err(NameError::WhiteSpace(shown)),
        Some(bad) => Err(NameError::AgentProfile {
            name: shown,
            what: format!("`{bad}`"),
            allowed: "letters a to z, digits, `-` and `_`",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "x".repeat(64);
        for name in ["a", "code-review", "git:tidy_up", "9", "Review", &long] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, why) in [
            ("", "is empty"),
            (&format!("{long}x"), "more than 64"),
            ("Compact", "is reserved"),
            ("-x", "does not begin"),
            (":x", "does not begin"),
            ("a b", "white space"),
            ("a/b", "contains `/`"),
            ("größe", "contains `ö`"),
        ] {
            let told = check_name(name).unwrap_err().to_string();
            assert!(told.contains(why), "{name}: {told}");
        }
    }
}
