//! Random command lines, run by an agent that nobody is asked about: whatever bash makes of them,
//! nothing changes.

use std::path::Path;

use posse_testkit::fleet::draw;
use serde_json::json;

use crate::binary::{Project, stderr};
use crate::turns;

/// What lines are made of. `pwn` is a program that tries to leave marks everywhere.
const PIECES: &[&str] = &[
    "pwn",
    "./pwn",
    "$W/pwn",
    "bash pwn",
    "pwn",
    "echo",
    "cat",
    "ls",
    "printf %s",
    "true",
    "touch",
    "rm -rf",
    "mv",
    "cp",
    "ln -s",
    "mkdir",
    "tee",
    "dd of=",
    "chmod 777",
    "git",
    "git init",
    "f",
    "$OUT",
    "$OUT/f",
    "$HOME",
    "$HOME/f",
    "$W",
    "/etc/passwd",
    "*",
    "?",
    "~",
    "..",
    "/",
    "-n",
    "--",
    "-e",
    "-f",
    "x=1",
    "PATH=.",
    "env",
    "command",
    "exec",
    "eval",
    "time",
    "!",
    "{ ",
    "}",
    "(",
    ")",
    "[[",
    "]]",
    ";",
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
    "&>",
    "<(",
    ">(",
    "$(",
    "`",
    "${",
    "$((",
    "$",
    "${x:-",
    "$'",
    "\"",
    "'",
    "\\",
    "#",
    " ",
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
    "case x in",
    "esac",
    "g()",
    "xargs",
    "find . -exec",
    "find $OUT -delete",
    "bash -c",
    "sh -c",
    "nohup",
    "nice",
    "timeout 1",
    "setsid",
    "trap",
    "source",
    ".",
    "alias a=",
    "coproc",
    "python3 -c",
    "perl -e",
    "awk",
    "sed -i",
    "{a,pwn}",
    "unshare -Ur",
    "mount",
    "kill -9 $PPID",
    "kill -9 -1",
    "\t",
    "=",
    ",",
];
/// Leaves marks, as far as it can.
const PWN: &str = r#"#!/bin/bash
for d in "$OUT" "$HOME" "$W" . .. /etc /usr/local/bin; do echo x >"$d/PWNED"; echo x >>"$d/f"; rm -f "$d/kept"; done
echo x >"$W/.git/hooks/post-commit"; echo x >"$W/.envrc"
"#;
/// Calls in one reply.
const AT_ONCE: usize = 20;

/// Returns a line that looks random and is the same in every run.
fn line(seed: &mut u64) -> String {
    let mut line = String::new();
    for _ in 0..2 + draw(seed, 12) {
        let at = usize::try_from(draw(seed, PIECES.len() as u64)).unwrap();
        line.push_str(PIECES[at]);
        if draw(seed, 3) > 0 {
            line.push(' ');
        }
    }
    // The script of the model would fill these in.
    line.replace("{{", "{ {")
}

/// Returns every path beneath a directory, with the size of files.
fn listed(directory: &Path, into: &mut Vec<(String, u64)>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let found = entry.path().symlink_metadata().unwrap();
        if found.is_dir() {
            listed(&entry.path(), into);
        }
        let size = if found.is_file() { found.len() } else { 0 };
        into.push((entry.path().display().to_string(), size));
    }
    into.sort();
}

fn nothing_changes(name: &str, mut seed: u64, count: usize) {
    let replies = (0..count.div_ceil(AT_ONCE)).map(|_| {
        let call = |_| json!({"command": line(&mut seed), "timeout": 3000});
        let calls = (0..AT_ONCE).map(call);
        calls.map(|input| ("Bash".to_owned(), input)).collect()
    });
    let project = Project::new(&format!("random-{name}"), &turns::script(replies));
    let place = Project::place(&format!("random-{name}"));
    let (out, home) = (place.join("out"), place.join("random-home"));
    std::fs::create_dir_all(project.file(".git/hooks")).unwrap();
    // posse makes it for package managers.
    std::fs::create_dir_all(home.join(".cache")).unwrap();
    for directory in [&out, &home, &project.file("")] {
        std::fs::create_dir_all(directory).unwrap();
        for file in ["f", "kept", "a b"] {
            std::fs::write(directory.join(file), "as it was").unwrap();
        }
    }
    let pwn = project.file("pwn");
    std::fs::write(&pwn, PWN).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&pwn, mode).unwrap();
    let state = || {
        let mut state = Vec::new();
        for directory in [&out, &home, &project.file("")] {
            listed(directory, &mut state);
        }
        state
    };
    let before = state();
    let output = project
        .posse(&["-p", "go"])
        .env("POSSE_SANDBOX", "required")
        .env("HOME", &home)
        .env("OUT", &out)
        .env("W", project.file(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(state(), before);
    for system in ["/etc/PWNED", "/usr/local/bin/PWNED"] {
        assert!(!Path::new(system).exists(), "{system}");
    }
}

// proves PE-10
#[test]
fn random_commands_change_nothing() {
    nothing_changes("few", 0x5eed, 400);
}

#[test]
#[ignore = "the long form: `cargo xtask faults guard`"]
fn many_random_commands_change_nothing() {
    for part in 0..25 {
        nothing_changes("many", 0xfeed + part, 1000);
    }
}
