//! Citations: comments above a test that say which statement, or which parts of one, it proves.

use anyhow::Result;
use regex::Regex;

use super::statement::split;

/// A statement that the test below it proves; if `parts` is empty, all of it.
#[derive(Debug, PartialEq)]
pub(super) struct Citation {
    pub(super) test: String,
    pub(super) statement: String,
    pub(super) parts: Vec<String>,
}

/// What the comments of a file say, and the lines that look like a citation and are none.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Cited {
    pub(super) citations: Vec<Citation>,
    pub(super) malformed: Vec<String>,
}

/// Reads `// proves TU-05, AG-07` and `// proves AG-11 (part: paused; waiting)`.
pub(super) fn citations(text: &str) -> Result<Cited> {
    let comment = Regex::new(r"^\s*//[/!]? proves [A-Z]{2}-\d{2}")?;
    let whole = Regex::new(r"^\s*//[/!]? proves ([A-Z]{2}-\d{2}(?:, [A-Z]{2}-\d{2})*)$")?;
    let partial = Regex::new(r"^\s*//[/!]? proves ([A-Z]{2}-\d{2}) \(part: ([^()]+)\)$")?;
    let function = Regex::new(r"^\s*(?:pub(?:\(\w+\))? )?(?:async )?fn (\w+)")?;
    let lines: Vec<&str> = text.lines().collect();
    let mut cited = Cited::default();
    for (number, line) in lines.iter().enumerate() {
        if !comment.is_match(line) {
            continue;
        }
        let test = lines[number..]
            .iter()
            .find_map(|line| function.captures(line))
            .map(|found| found[1].to_owned())
            .unwrap_or_default();
        let citation = |statement: &str, parts| Citation {
            test: test.clone(),
            statement: statement.to_owned(),
            parts,
        };
        if let Some(found) = whole.captures(line) {
            let ids = found[1].split(", ");
            cited
                .citations
                .extend(ids.map(|id| citation(id, Vec::new())));
        } else if let Some(found) = partial.captures(line) {
            cited.citations.push(citation(&found[1], split(&found[2])));
        } else {
            cited.malformed.push(line.trim().to_owned());
        }
    }
    Ok(cited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn citation(test: &str, statement: &str, parts: &[&str]) -> Citation {
        Citation {
            test: test.into(),
            statement: statement.into(),
            parts: parts.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn citations_belong_to_the_test_below_them() {
        let text = "// proves TU-05, AG-07\n// proves AG-11 (part: paused; waiting)\n#[test]\n\
                    fn one() {}\n\n    /// proves FK-01\n    #[tokio::test]\n    async fn two() {}\n\
                    // disproves TU-01\n// proves that it works\nfn three() {}\n";
        let expected = Cited {
            citations: vec![
                citation("one", "TU-05", &[]),
                citation("one", "AG-07", &[]),
                citation("one", "AG-11", &["paused", "waiting"]),
                citation("two", "FK-01", &[]),
            ],
            malformed: Vec::new(),
        };
        assert_eq!(citations(text).unwrap(), expected);
    }

    #[test]
    fn parts_belong_to_one_statement_and_other_words_are_malformed() {
        let malformed = [
            "// proves TU-05, AG-07 (part: paused)",
            "// proves TU-05 (open: the terminal)",
            "// proves TU-05 (part: )",
            "// proves TU-05 and AG-07",
            "// proves TU-05 (part: paused) mostly",
        ];
        for line in malformed {
            let cited = citations(&format!("{line}\nfn one() {{}}\n")).unwrap();
            assert_eq!(cited.malformed, [line]);
            assert_eq!(cited.citations, []);
        }
    }
}
