//! The statements of docs/behaviour.md: their ids, and the parts that are listed beneath them.

use anyhow::Result;
use regex::Regex;

/// A numbered statement. One with parts is proven when each part has a citing test.
#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) id: String,
    pub(super) parts: Vec<String>,
}

/// Reads statements (`- AG-11 …`), each with the line `  - Parts: paused; terminal (Esc).` beneath it. A
/// part's name is what stands before a parenthesis, which explains it.
pub(super) fn statements(text: &str) -> Result<Vec<Statement>> {
    let statement = Regex::new(r"^- ([A-Z]{2}-\d{2}) ")?;
    let parts = Regex::new(r"^  - Parts: (.+)\.$")?;
    let mut found: Vec<Statement> = Vec::new();
    for line in text.lines() {
        if let Some(line) = statement.captures(line) {
            found.push(Statement {
                id: line[1].to_owned(),
                parts: Vec::new(),
            });
        } else if let (Some(line), Some(above)) = (parts.captures(line), found.last_mut()) {
            let names = split(&line[1]).into_iter().map(name);
            above.parts.extend(names);
        }
    }
    Ok(found)
}

/// Splits a list of parts, which are separated by semicolons.
pub(super) fn split(parts: &str) -> Vec<String> {
    parts
        .split(';')
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

fn name(part: String) -> String {
    match part.split_once(" (") {
        Some((name, _)) => name.to_owned(),
        None => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_belong_to_the_statement_above_them() {
        let text = "- TU-01 a\n- AG-11 b. **beyond**\n  - Parts: paused; waiting (on a child); \
                    killed.\ntext TU-09\n- AG-12 c\n  - More: x.\n";
        let expected = |id: &str, parts: &[&str]| Statement {
            id: id.into(),
            parts: parts.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            statements(text).unwrap(),
            [
                expected("TU-01", &[]),
                expected("AG-11", &["paused", "waiting", "killed"]),
                expected("AG-12", &[]),
            ]
        );
    }
}
