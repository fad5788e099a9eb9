//! Commands that only read: no rule is needed for them. What they read must still be readable without
//! asking, and their options must not run or write anything, as for a rule with `*`.

use std::collections::HashMap;
use std::sync::LazyLock;

use posse_port::tool::CommandDisk;

use super::GIT_READERS;
use crate::pattern::CommandPattern;

/// Programs that run nothing of a repository, and change nothing with any words that rules with `*`
/// cover.
const READING: &[&str] = &[
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expand",
    "false",
    "fgrep",
    "file",
    "find",
    "fold",
    "grep",
    "head",
    "hexdump",
    "id",
    "join",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "seq",
    "sed -n",
    "sha1sum",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "uname",
    "uniq",
    "wc",
    "which",
    "whoami",
    "[",
];

static PATTERNS: LazyLock<HashMap<&str, CommandPattern>> = LazyLock::new(|| {
    let pattern = |words: &&'static str| {
        let program = words.split(' ').next().unwrap_or(words);
        (program, CommandPattern::new(&format!("{words} *")))
    };
    READING.iter().map(pattern).collect()
});

/// Git runs what the settings of a repository name, also if it only reads.
static GIT_PATTERNS: LazyLock<HashMap<&str, CommandPattern>> = LazyLock::new(|| {
    let pattern = |name: &&'static str| (*name, CommandPattern::new(&format!("git {name} *")));
    GIT_READERS.iter().map(pattern).collect()
});

/// Returns the rule that covers a command, if it is one of them.
pub(super) fn pattern(words: &[&str], disk: &CommandDisk) -> Option<&'static CommandPattern> {
    match words {
        ["git", name, ..] if disk.has_plain_git => GIT_PATTERNS.get(*name),
        [program, ..] => PATTERNS.get(*program),
        [] => None,
    }
}
