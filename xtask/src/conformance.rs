//! The official conformance suite of the Model Context Protocol, with posse as the client.
//!
//! `.ci/setup` installs the suite. It starts a server for each scenario, and posse (`client`) to talk with it.

mod client;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

pub(crate) use client::run as client;

/// The versions whose required scenarios are run.
const VERSIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Scenarios that fail, and why. One that passes must leave this list.
const OPEN: [(&str, &str); 0] = [];

/// Which scenarios are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenarios {
    /// All that are required.
    All,
    /// Those without signing in.
    Quick,
}

/// What became of a scenario.
struct Outcome {
    /// Checks that passed, and all.
    checks: (usize, usize),
    is_passed: bool,
    /// What the suite says of those that failed.
    failed: Vec<String>,
}

/// Runs the required scenarios for clients, and prints a line for each.
pub(crate) fn run(root: &Path, chosen: Scenarios) -> Result<ExitCode> {
    let built = super::cargo(root)
        .args(["build", "-q", "--profile", "ci", "-p", "posse-cli"])
        .status()?;
    ensure!(built.success(), "posse cannot be built");
    let suite = Suite::find(root)?;
    let (mut passed, mut count, mut wrong) = (0, 0, 0);
    let begun = Instant::now();
    for version in VERSIONS {
        for scenario in suite.required(version)? {
            if chosen == Scenarios::Quick && scenario.starts_with("auth/") {
                continue;
            }
            let outcome = suite.play(&scenario, version)?;
            let open = OPEN.iter().find(|(name, _)| *name == scenario);
            let word = match (outcome.is_passed, open) {
                (true, None) => "passed",
                (false, Some(_)) => "open",
                (true, Some(_)) => "passed, and must leave the list of open ones",
                (false, None) => "FAILED",
            };
            let (good, all) = outcome.checks;
            println!("{version}  {scenario:<38} {good:>2} of {all:<2} {word}");
            if let (false, Some((_, why))) = (outcome.is_passed, open) {
                println!("              {why}");
            }
            for line in &outcome.failed {
                println!("              {line}");
            }
            count += 1;
            passed += usize::from(outcome.is_passed);
            wrong += usize::from(outcome.is_passed == open.is_some());
        }
    }
    let took = begun.elapsed().as_secs();
    println!("conformance: {passed} of {count} scenarios passed, {took} s");
    Ok(match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The suite, where `.ci/setup` has put it.
struct Suite {
    programs: PathBuf,
    ours: String,
}

impl Suite {
    fn find(root: &Path) -> Result<Self> {
        let programs = root.join("target/conformance/node_modules/.bin");
        ensure!(
            programs.join("conformance").exists(),
            "the suite is not installed; run .ci/setup"
        );
        let ours = std::env::current_exe()?;
        let ours = ours.to_str().context("the path of xtask is no text")?;
        ensure!(!ours.contains(' '), "the suite takes no path with a space");
        Ok(Self {
            programs,
            ours: format!("{ours} conformance-client"),
        })
    }

    /// Runs the suite, and returns what it prints.
    fn say(&self, words: &[&str]) -> Result<String> {
        // It is started by the Node beside it: that of the system may be too old.
        let output = Command::new(self.programs.join("node"))
            .arg(self.programs.join("conformance"))
            .args(words)
            .output()?;
        let both = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&both).into_owned())
    }

    /// Returns the scenarios for clients that a version requires.
    fn required(&self, version: &str) -> Result<Vec<String>> {
        let said = self.say(&["list", "--requirements", version])?;
        let of_clients = said.lines().skip_while(|line| !line.starts_with("Client"));
        let of_clients = of_clients
            .skip(1)
            .map_while(|line| line.strip_prefix("  - "));
        let scenarios: Vec<String> = of_clients.map(|it| it.trim().to_owned()).collect();
        ensure!(!scenarios.is_empty(), "no scenarios are required: {said}");
        Ok(scenarios)
    }

    fn play(&self, scenario: &str, version: &str) -> Result<Outcome> {
        let command = ["client", "--command", &self.ours, "--scenario", scenario];
        let said = self.say(&[&command[..], &["--spec-version", version]].concat())?;
        let checks = said.lines().find_map(checks).unwrap_or_default();
        // Without a check nothing was tried.
        let is_passed = said.contains("OVERALL: PASSED") && checks.1 > 0;
        let failed = said
            .lines()
            .skip_while(|line| !line.starts_with("Failed Checks"));
        let failed = failed.skip(1).take_while(|line| !line.trim().is_empty());
        Ok(Outcome {
            checks,
            is_passed,
            failed: failed.map(|line| line.trim().to_owned()).collect(),
        })
    }
}

/// Reads a line such as `Passed: 2/3, 1 failed, 0 warnings`. Warnings have not passed.
fn checks(line: &str) -> Option<(usize, usize)> {
    let counts = line.strip_prefix("Passed: ")?.split(',').next()?;
    let (passed, all) = counts.split_once('/')?;
    Some((passed.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted() {
        assert_eq!(checks("Passed: 2/13, 1 failed, 0 warnings"), Some((2, 13)));
        assert_eq!(checks("Passed: no"), None);
    }
}
