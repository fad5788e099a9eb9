//! `cargo xtask behaviour`: which statements of docs/behaviour.md a test proves.
//!
//! A citation is a comment `// proves TU-05, AG-07` above a test; `(open: …)` after it says which half
//! of the statement is not built yet (such a statement shows as `partly`). It counts if the test runner lists the test and does not ignore it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use regex::Regex;

/// A comment that says what the test below it proves.
#[derive(Debug, PartialEq)]
struct Citation {
    package: String,
    test: String,
    statements: Vec<String>,
    open: Option<String>,
}

pub(crate) fn run(root: &Path, required: &str) -> Result<ExitCode> {
    let statements = statements(&fs::read_to_string(root.join("docs/behaviour.md"))?)?;
    let listed = listed_tests(root)?;
    let mut faults = Vec::new();
    let mut proven: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in crate::tidy::sources(root)? {
        let package = package_of(path.strip_prefix(root)?);
        for citation in citations(&package, &fs::read_to_string(&path)?)? {
            if !listed.contains(&(package.clone(), citation.test.clone())) {
                faults.push(format!(
                    "{}: `{}` is cited but not run",
                    path.display(),
                    citation.test
                ));
                continue;
            }
            for statement in citation.statements {
                if !statements.contains(&statement) {
                    faults.push(format!(
                        "{}: there is no statement {statement}",
                        path.display()
                    ));
                }
                let open = citation
                    .open
                    .as_ref()
                    .map_or_else(String::new, |open| format!(" (open: {open})"));
                proven
                    .entry(statement)
                    .or_default()
                    .push(format!("{package} {}{open}", citation.test));
            }
        }
    }
    for statement in &statements {
        match proven.get(statement) {
            Some(tests) => {
                let partly = tests.iter().all(|test| test.contains("(open: "));
                let word = if partly { "partly" } else { "proven" };
                println!("{word}  {statement}  {}", tests.join("; "));
            }
            None => println!("open    {statement}"),
        }
    }
    faults.extend(missing(required, &statements, &proven));
    for fault in &faults {
        println!("{fault}");
    }
    println!(
        "behaviour: {} of {} statements cited, {} faults",
        proven.len(),
        statements.len(),
        faults.len()
    );
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What is required (`TU` is all of TU) and not proven.
fn missing(
    required: &str,
    statements: &BTreeSet<String>,
    proven: &BTreeMap<String, Vec<String>>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for wanted in required
        .split(',')
        .map(str::trim)
        .filter(|wanted| !wanted.is_empty())
    {
        let group = format!("{wanted}-");
        let fitting: Vec<&String> = statements
            .iter()
            .filter(|id| *id == wanted || id.starts_with(&group))
            .collect();
        if fitting.is_empty() {
            faults.push(format!("required: there is no statement {wanted}"));
        }
        let unproven = fitting.into_iter().filter(|id| !proven.contains_key(*id));
        faults.extend(unproven.map(|id| format!("required and not proven: {id}")));
    }
    faults
}

fn statements(text: &str) -> Result<BTreeSet<String>> {
    let line = Regex::new(r"(?m)^- ([A-Z]{2}-\d{2}) ")?;
    Ok(line
        .captures_iter(text)
        .map(|found| found[1].to_owned())
        .collect())
}

fn package_of(path: &Path) -> String {
    let mut parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    match parts.next() {
        Some(first) if first == "crates" => parts.next().unwrap_or_default(),
        first => first.unwrap_or_default(),
    }
}

fn citations(package: &str, text: &str) -> Result<Vec<Citation>> {
    let cites = Regex::new(
        r"^\s*//[/!]? proves ([A-Z]{2}-\d{2}(?:, ?[A-Z]{2}-\d{2})*)(?: \(open: (.+)\))?\s*$",
    )?;
    let function = Regex::new(r"^\s*(?:pub(?:\(\w+\))? )?(?:async )?fn (\w+)")?;
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(cited) = cites.captures(line) else {
            continue;
        };
        let below = lines[number..]
            .iter()
            .find_map(|line| function.captures(line));
        found.push(Citation {
            package: package.to_owned(),
            test: below.map(|found| found[1].to_owned()).unwrap_or_default(),
            statements: cited[1].split(',').map(|id| id.trim().to_owned()).collect(),
            open: cited.get(2).map(|open| open.as_str().to_owned()),
        });
    }
    Ok(found)
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

    #[test]
    fn citations_belong_to_the_test_below_them() {
        let text = "// proves TU-05, AG-07 (open: the person)\n#[test]\nfn one() {}\n\n/// proves FK-01\n#[tokio::test]\nasync fn two() {}\n// disproves TU-01\nfn three() {}\n";
        let found = citations("p", text).unwrap();
        let expected = |test: &str, statements: &[&str], open: Option<&str>| Citation {
            package: "p".into(),
            test: test.into(),
            statements: statements.iter().map(ToString::to_string).collect(),
            open: open.map(str::to_owned),
        };
        assert_eq!(
            found,
            [
                expected("one", &["TU-05", "AG-07"], Some("the person")),
                expected("two", &["FK-01"], None)
            ]
        );
    }

    #[test]
    fn a_group_requires_all_of_it() {
        let statements = statements("- TU-01 a\n- TU-02 b\n- AG-01 c\ntext TU-09\n").unwrap();
        let proven = BTreeMap::from([("TU-01".to_owned(), vec![]), ("AG-01".to_owned(), vec![])]);
        assert_eq!(
            missing("TU, AG-01", &statements, &proven),
            ["required and not proven: TU-02"]
        );
        assert_eq!(
            missing("XX", &statements, &proven),
            ["required: there is no statement XX"]
        );
        assert!(missing("", &statements, &proven).is_empty());
    }
}
