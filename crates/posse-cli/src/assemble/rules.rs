//! Parsing of permission rules in flags.

use posse_permission::{Policy, RuleError, RuleList, Source};

/// Why a text is not a list of rules.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuleListError {
    #[error("`{0}` has one closing parenthesis too many")]
    Closed(String),
    #[error("`{0}` leaves a parenthesis open")]
    Open(String),
    #[error("`{}` is not a permission rule: {}", .0.rule, .0.why)]
    Rule(RuleError),
}

/// Returns a list of allow rules.
pub(crate) fn allowing(list: &str) -> Result<Vec<String>, RuleListError> {
    let allow = split(list)?;
    checked(&RuleList {
        allow: allow.clone(),
        ..RuleList::default()
    })?;
    Ok(allow)
}

/// Returns a list of deny rules.
pub(crate) fn denying(list: &str) -> Result<Vec<String>, RuleListError> {
    let deny = split(list)?;
    checked(&RuleList {
        deny: deny.clone(),
        ..RuleList::default()
    })?;
    Ok(deny)
}

/// Checks the syntax of rules, for which the roots of their paths do not matter.
fn checked(rules: &RuleList) -> Result<(), RuleListError> {
    let anywhere = || "/".into();
    let source = Source {
        name: String::new(),
        root: anywhere(),
        cwd: anywhere(),
        home: Some(anywhere()),
    };
    let checked = Policy::default().add(&source, rules);
    checked.map_err(RuleListError::Rule)
}

/// Splits a list at commas and blanks outside of parentheses.
fn split(list: &str) -> Result<Vec<String>, RuleListError> {
    let mut rules = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| RuleListError::Closed(list.to_owned()))?
            }
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            rules.push(String::new());
        } else if let Some(rule) = rules.last_mut() {
            rule.push(c);
        }
    }
    if depth > 0 {
        return Err(RuleListError::Open(list.to_owned()));
    }
    rules.retain(|rule| !rule.is_empty());
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_blanks_separate_outside_of_parentheses() {
        let check = |list: &str, rules: &[&str]| assert_eq!(split(list).unwrap(), rules, "{list}");
        check("Bash(git diff *),Edit", &["Bash(git diff *)", "Edit"]);
        check(
            "Read, Edit  Bash(git log:*)",
            &["Read", "Edit", "Bash(git log:*)"],
        );
        check("Bash(echo (a, b) c)", &["Bash(echo (a, b) c)"]);
        check(" ", &[]);
        assert!(split("Bash(ls").is_err());
        assert!(split("Bash)").is_err());
    }

    #[test]
    fn what_is_no_rule_is_said_at_once() {
        assert_eq!(allowing("Bash(ls),Edit").unwrap(), ["Bash(ls)", "Edit"]);
        assert_eq!(denying("*").unwrap(), ["*"]);
        assert!(allowing("*").is_err(), "in deny and ask only");
        assert!(
            denying("Read Bsh")
                .unwrap_err()
                .to_string()
                .starts_with("`Bsh` is not a permission rule: ")
        );
    }
}
