//! Random command lines: what is allowed is run by a real bash, and must not run the one program
//! that no rule allows, nor write anything.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use posse_port::tool::{Intent, Subject, Workspace};
use posse_protocol::PermissionMode;

use crate::{Policy, RuleList, Source, Verdict, decide};

/// Programs, words and signs that lines are made of. `pwn` leaves a mark.
const PIECES: &[&str] = &[
    "pwn",
    "pwn",
    "pwn",
    "./pwn",
    "echo",
    "echo",
    "cat",
    "cat",
    "ls",
    "head -n1",
    "grep a",
    "wc -l",
    "printf %s",
    "git status",
    "true",
    "f",
    "a b",
    "*",
    "?",
    "[a-f]",
    "~",
    "-n",
    "--",
    "-e",
    "x=1",
    "PATH=.",
    "IFS=/",
    "env",
    "command",
    "exec",
    "eval",
    "time",
    "!",
    "{",
    "}",
    "(",
    ")",
    "((",
    "))",
    "[[",
    "]]",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "\n",
    "\\\n",
    "<",
    ">",
    ">>",
    "<<<",
    "<<EOF\n",
    "\nEOF\n",
    "2>&1",
    ">&2",
    "&>",
    "<(",
    ">(",
    "$(",
    "`",
    "${",
    "$((",
    "$",
    "${x:-",
    "${x@P}",
    "$'",
    "$\"",
    "\"",
    "'",
    "\\",
    "#",
    " ",
    " ",
    " ",
    " ",
    "if",
    "then",
    "fi",
    "for i in",
    "do",
    "done",
    "while",
    "case x in",
    "esac",
    "function g",
    "g()",
    "xargs",
    "find . -exec",
    "bash -c",
    "sh -c",
    "nohup",
    "nice",
    "timeout 1",
    "trap",
    "source",
    ".",
    "alias a=",
    "coproc",
    "select",
    "in",
    "\u{a0}",
    "\u{2028}",
    "\t",
    "\r",
    "%",
    "=",
    ",",
    ":",
    "{a,pwn}",
    "{a..c}",
    "@",
    "+",
    "^",
    "-",
    "0",
    "1",
    "é",
];
/// Rules that people have.
const RULES: &[&str] = &[
    "Bash(echo *)",
    "Bash(cat *)",
    "Bash(ls *)",
    "Bash(grep *)",
    "Bash(head *)",
    "Bash(git status)",
    "Bash(printf *)",
    "Bash(wc *)",
    "Bash(true)",
];

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        // Half of them begin well.
        if self.below(2) == 0 {
            line.push_str(["echo ", "cat f ", "ls ", "printf %s ", "grep a f "][self.below(5)]);
        }
        for _ in 0..1 + self.below(9) {
            line.push_str(PIECES[self.below(PIECES.len())]);
            if self.below(3) > 0 {
                line.push(' ');
            }
        }
        line
    }
}

/// A directory in which bash runs lines.
struct Place {
    base: PathBuf,
    /// Removes it.
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let place = Self {
            base,
            _directory: directory,
        };
        for path in [place.at("w/pwn"), place.at("bin/pwn")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mark = place.at("mark").display().to_string();
            std::fs::write(&path, format!("#!/bin/sh\n: >'{mark}'\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
        }
        std::fs::write(place.at("w/f"), "a\n").unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn workspace(&self) -> Workspace {
        Workspace {
            cwd: self.at("w"),
            roots: vec![self.at("w")],
            spill: self.at("spill"),
            home: Some(self.at("home")),
            mirror: None,
            notes: None,
        }
    }

    /// Runs a line, and returns true if it did what nobody has allowed.
    #[expect(clippy::disallowed_methods, reason = "it is what is tested against")]
    fn has_effect(&self, line: &str) -> bool {
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        let mut bash = Command::new("timeout");
        bash.args(["5", "bash", "-c", line])
            .current_dir(self.at("w"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.at("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        bash.status().unwrap();
        let left = std::fs::read_dir(self.at("w")).unwrap().count();
        self.at("mark").exists() || left != 2
    }
}

fn fuzz(seed: u64, count: usize) {
    let place = Place::new();
    let workspace = place.workspace();
    let source = Source {
        name: "a test".into(),
        root: workspace.cwd.clone(),
        cwd: workspace.cwd.clone(),
        home: workspace.home.clone(),
    };
    let rules = RuleList {
        allow: RULES.iter().map(|rule| (*rule).to_owned()).collect(),
        ..RuleList::default()
    };
    let mut policy = Policy::default();
    policy.add(&source, &rules).unwrap();
    let policy = Arc::new(policy);
    let mut numbers = Numbers(seed);
    let mut ran = 0;
    for _ in 0..count {
        let line = numbers.line();
        let intent = Intent {
            read_only: false,
            beside_others: false,
            subject: Subject::runs(line.clone()),
            waits: false,
            title: String::new(),
        };
        let verdict = decide(
            &policy,
            PermissionMode::Default,
            &workspace,
            "Bash",
            &intent,
        );
        if verdict != Verdict::Allow {
            continue;
        }
        ran += 1;
        assert!(!place.has_effect(&line), "{line:?}");
    }
    // Else nothing would be tested.
    assert!(ran * 100 > count, "only {ran} of {count} were allowed");
}

// proves PE-06 (part: compound commands; substitutions; redirections)
#[test]
fn of_random_lines_none_that_is_allowed_has_an_effect() {
    fuzz(0x5eed, 20_000);
}

#[test]
#[ignore = "the long form: `cargo xtask faults guard`"]
fn of_a_million_random_lines_none_that_is_allowed_has_an_effect() {
    fuzz(0xdecade, 1_000_000);
}
