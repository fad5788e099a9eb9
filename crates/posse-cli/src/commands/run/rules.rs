//! Lists of permission rules, as flags give them.

/// Takes a list apart at commas and blanks; what stands in parentheses stays together.
pub(super) fn split(list: &str) -> Result<Vec<String>, String> {
    let mut rules = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth =
                    depth.checked_sub(1).ok_or_else(|| format!("`{list}` closes a parenthesis too many"))?
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
        return Err(format!("`{list}` leaves a parenthesis open"));
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
        check("Read, Edit  Bash(git log:*)", &["Read", "Edit", "Bash(git log:*)"]);
        check("Bash(echo (a, b) c)", &["Bash(echo (a, b) c)"]);
        check(" ", &[]);
        assert!(split("Bash(ls").is_err());
        assert!(split("Bash)").is_err());
    }
}
