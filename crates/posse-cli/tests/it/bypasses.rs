//! Ways that once led around rules, each in a directory of its own: in the sandbox none of them does
//! harm.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::turns;

/// What must not be printed.
const SECRETS: [&str; 3] = ["TOPSECRET", "sk-SECRET", "FETCHED"];

#[derive(Deserialize)]
struct Bypass {
    id: String,
    mode: String,
    allow: Vec<String>,
    deny: Vec<String>,
    /// A script that makes its directory.
    setup: String,
    cwd: String,
    calls: Vec<Value>,
}

/// Where one of them is tried.
struct Lab {
    project: Project,
    out: PathBuf,
    home: PathBuf,
}

impl Lab {
    fn new(bypass: &Bypass) -> Self {
        let place = Project::place("bypass");
        let lab = place.display().to_string();
        let calls = bypass.calls.iter().map(|call| {
            let (tool, input) = match call {
                Value::String(command) => {
                    let command = command.replace("$LAB", &lab);
                    let command = command.replace("file:///etc/hostname", "file://$PWD/fetched");
                    ("Bash", json!({ "command": command }))
                }
                call => (call["tool"].as_str().unwrap(), call["input"].clone()),
            };
            vec![(tool.to_owned(), input)]
        });
        let project = Project::new("bypass", &turns::script(calls));
        let out = place.join("out");
        let home = place.join("lab-home");
        for directory in [&out, &home] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::fs::write(project.file("fetched"), "FETCHED").unwrap();
        let lab = Self { project, out, home };
        lab.prepare(&bypass.setup);
        lab
    }

    fn prepare(&self, setup: &str) {
        let made = Command::new("bash")
            .args(["-c", &format!("git init -q; {setup}")])
            .current_dir(self.project.file(""))
            .env("HOME", &self.home)
            .env("OUT", &self.out)
            .env("W", self.project.file(""))
            .status();
        assert!(made.is_ok());
    }

    /// Runs it, and returns what the agent was told by all of its calls.
    fn run(&self, bypass: &Bypass) -> String {
        // Commands read whatever is not hidden; so these do harm only to what the user hides.
        let reads = ["link-dotdot", "cd-link"].contains(&bypass.id.as_str());
        let hide: &[&Path] = if reads { &[&self.out] } else { &[] };
        let settings = json!({
            "permissions": {"allow": bypass.allow, "deny": bypass.deny},
            "sandbox": {"hide": hide},
        });
        let output = self
            .project
            .posse(&[
                "-p",
                "go",
                "--permission-mode",
                &bypass.mode,
                "--settings",
                &settings.to_string(),
            ])
            .current_dir(self.project.file(&bypass.cwd))
            .env("POSSE_SANDBOX", "required")
            .env("HOME", &self.home)
            .env("OUT", &self.out)
            .env("ANTHROPIC_API_KEY", "sk-SECRET")
            .output()
            .unwrap();
        format!("{}{}", stdout(&output), stderr(&output))
    }

    /// Returns what must stay as it is: everything outside, and what is protected.
    fn kept(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut kept = BTreeMap::new();
        for directory in [&self.out, &self.home] {
            read_all(directory, &mut kept);
        }
        for name in [
            ".git/hooks",
            ".git/config",
            ".envrc",
            ".vscode",
            ".claude",
            ".posse",
            ".mcp.json",
        ] {
            read_all(&self.project.file(name), &mut kept);
        }
        kept
    }
}

/// Reads a file, or all files in a directory.
fn read_all(path: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let Ok(found) = path.symlink_metadata() else {
        return;
    };
    if found.is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            read_all(&entry.path(), into);
        }
    } else {
        let content = std::fs::read(path).unwrap_or_default();
        into.insert(path.to_owned(), content);
    }
}

// proves PE-09 (part: attacks)
#[test]
fn what_once_led_around_rules_does_no_harm_in_the_sandbox() {
    let bypasses = include_str!("../../../posse-tools/tests/it/bypasses.jsonl").lines();
    let bypasses: Vec<Bypass> = bypasses
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(bypasses.len(), 88);
    let mut wrong = Vec::new();
    for bypass in &bypasses {
        let lab = Lab::new(bypass);
        let before = lab.kept();
        let told = lab.run(bypass);
        let after = lab.kept();
        let changed: Vec<_> = after
            .iter()
            .filter(|(path, content)| before.get(*path) != Some(*content))
            .map(|(path, _)| path.clone())
            .chain(before.keys().filter(|it| !after.contains_key(*it)).cloned())
            .collect();
        let printed = SECRETS.iter().find(|secret| told.contains(**secret));
        if !changed.is_empty() || printed.is_some() {
            wrong.push(format!("{}: {changed:?} {printed:?}\n{told}", bypass.id));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
