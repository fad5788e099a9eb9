//! `cargo xtask behaviour`: which statements of docs/behaviour.md a test proves.
//!
//! A citation is a comment above a test: `// proves TU-05, AG-07`, or `// proves AG-11 (part: paused)`
//! where the statement lists its parts. A statement is proven when a test cites all of it, or when each
//! of its parts is cited. A citation counts if the test runner lists the test and does not ignore it.

mod citation;
mod require;
mod statement;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use citation::Citation;
use statement::Statement;

/// The tests that cite a statement, and what of it they cite.
#[derive(Debug, Default, PartialEq)]
struct Proof {
    tests: Vec<String>,
    whole: bool,
    parts: BTreeSet<String>,
}

impl Proof {
    fn cite(&mut self, test: &str, parts: &[String]) {
        if parts.is_empty() {
            self.whole = true;
            self.tests.push(test.to_owned());
        } else {
            self.parts.extend(parts.iter().cloned());
            self.tests.push(format!("{test} ({})", parts.join("; ")));
        }
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn proves(&self, part: &str) -> bool {
        self.whole || self.parts.contains(part)
    }

    /// Returns the parts that no test cites.
    fn missing<'a>(&self, statement: &'a Statement) -> Vec<&'a str> {
        let parts = statement.parts.iter().map(String::as_str);
        parts.filter(|part| !self.proves(part)).collect()
    }
}

pub(crate) fn run(root: &Path, required: &str) -> Result<ExitCode> {
    let text = fs::read_to_string(root.join("docs/behaviour.md"))?;
    let mut statements: Vec<(Statement, Proof)> = statement::statements(&text)?
        .into_iter()
        .map(|statement| (statement, Proof::default()))
        .collect();
    let listed = listed_tests(root)?;
    let mut faults = Vec::new();
    for path in crate::tidy::sources(root)? {
        let package = package_of(path.strip_prefix(root)?);
        let cited = citation::citations(&fs::read_to_string(&path)?)?;
        let mut found = cited.malformed;
        for citation in cited.citations {
            if listed.contains(&(package.clone(), citation.test.clone())) {
                found.extend(count(&mut statements, &package, &citation));
            } else {
                found.push(format!("`{}` is cited but not run", citation.test));
            }
        }
        faults.extend(
            found
                .iter()
                .map(|fault| format!("{}: {fault}", path.display())),
        );
    }
    for (statement, proof) in &statements {
        println!("{}", line(statement, proof));
    }
    faults.extend(require::faults(required, &statements));
    for fault in &faults {
        println!("{fault}");
    }
    let cited = statements
        .iter()
        .filter(|(_, proof)| !proof.tests.is_empty());
    println!(
        "behaviour: {} of {} statements cited, {} faults",
        cited.count(),
        statements.len(),
        faults.len()
    );
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Books a citation under its statement; returns what it cites that does not exist.
fn count(statements: &mut [(Statement, Proof)], package: &str, citation: &Citation) -> Vec<String> {
    let Citation { test, parts, .. } = citation;
    let id = &citation.statement;
    let Some((statement, proof)) = statements.iter_mut().find(|(known, _)| known.id == *id) else {
        return vec![format!("there is no statement {id}")];
    };
    proof.cite(&format!("{package} {test}"), parts);
    let unknown = parts.iter().filter(|part| !statement.parts.contains(part));
    unknown
        .map(|part| format!("`{test}` cites {id}, which has no part {part}"))
        .collect()
}

fn line(statement: &Statement, proof: &Proof) -> String {
    let missing = proof.missing(statement);
    let word = if proof.tests.is_empty() {
        "open  "
    } else if missing.is_empty() {
        "proven"
    } else {
        "partly"
    };
    let mut line = format!("{word}  {}", statement.id);
    if !missing.is_empty() {
        line += &format!("  without {}", missing.join("; "));
    }
    if !proof.tests.is_empty() {
        line += &format!("  {}", proof.tests.join(", "));
    }
    line
}

fn package_of(path: &Path) -> String {
    let mut parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    match parts.next() {
        Some(first) if first == "crates" => parts.next().unwrap_or_default(),
        first => first.unwrap_or_default(),
    }
}

/// Package and name of every test that the runner lists and does not ignore.
fn listed_tests(root: &Path) -> Result<BTreeSet<(String, String)>> {
    let output = crate::cargo(root)
        .args([
            "nextest",
            "list",
            "--workspace",
            "--cargo-profile",
            "ci",
            "--message-format",
            "json",
        ])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo nextest")?;
    ensure!(output.status.success(), "cargo nextest list failed");
    let list: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let mut tests = BTreeSet::new();
    for suite in list["rust-suites"]
        .as_object()
        .context("nextest lists suites")?
        .values()
    {
        let package = suite["package-name"].as_str().unwrap_or_default();
        for (name, case) in suite["testcases"].as_object().into_iter().flatten() {
            if case["ignored"] == false {
                let last = name.rsplit("::").next().unwrap_or(name);
                tests.insert((package.to_owned(), last.to_owned()));
            }
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(citations: &[&str]) -> (Vec<(Statement, Proof)>, Vec<String>) {
        let text = "- TU-01 a\n- AG-11 b\n  - Parts: paused; waiting.\n";
        let mut statements: Vec<_> = statement::statements(text)
            .unwrap()
            .into_iter()
            .map(|statement| (statement, Proof::default()))
            .collect();
        let mut faults = Vec::new();
        for comment in citations {
            let read = citation::citations(&format!("{comment}\nfn test() {{}}")).unwrap();
            faults.extend(count(&mut statements, "p", &read.citations[0]));
        }
        (statements, faults)
    }

    #[track_caller]
    fn check(citations: &[&str], expected: &str) {
        let (statements, faults) = cited(citations);
        assert_eq!(faults, [""; 0]);
        let (statement, proof) = &statements[1];
        assert_eq!(line(statement, proof), expected);
    }

    #[test]
    fn a_statement_is_proven_when_each_part_is() {
        check(&[], "open    AG-11  without paused; waiting");
        check(
            &["// proves AG-11 (part: paused)"],
            "partly  AG-11  without waiting  p test (paused)",
        );
        check(
            &[
                "// proves AG-11 (part: paused)",
                "// proves AG-11 (part: waiting)",
            ],
            "proven  AG-11  p test (paused), p test (waiting)",
        );
        check(&["// proves AG-11"], "proven  AG-11  p test");
    }

    #[test]
    fn what_does_not_exist_cannot_be_cited() {
        let (_, faults) = cited(&[
            "// proves TU-09",
            "// proves TU-01 (part: paused)",
            "// proves AG-11 (part: paused; killed)",
        ]);
        assert_eq!(
            faults,
            [
                "there is no statement TU-09",
                "`test` cites TU-01, which has no part paused",
                "`test` cites AG-11, which has no part killed"
            ]
        );
    }
}
