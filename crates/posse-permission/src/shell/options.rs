//! Options with which an allowed program runs other programs or writes files.
//!
//! This is a table, not a proof: it decides when to ask. The sandbox is the boundary.

use super::within;
use super::word::Word;

/// A program's options that a rule with a wildcard does not cover.
struct Reach {
    programs: &'static [&'static str],
    /// Long options, or words that count at any position. Abbreviations count, too.
    words: &'static [&'static str],
    /// Letters of short options.
    letters: &'static str,
}

const REACHES: &[Reach] = &[
    Reach {
        programs: &["find"],
        words: &[
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-delete",
            "-fprint",
            "-fprint0",
            "-fprintf",
            "-fls",
            "-files0-from",
        ],
        letters: "",
    },
    Reach {
        programs: &["fd", "fdfind"],
        words: &["--exec", "--exec-batch"],
        letters: "xX",
    },
    Reach {
        programs: &["rg"],
        words: &["--pre", "--hostname-bin", "--search-zip"],
        letters: "z",
    },
    Reach {
        programs: &["sort"],
        words: &["--output", "--compress-program", "--temporary-directory"],
        letters: "oT",
    },
    Reach {
        programs: &["tar", "bsdtar"],
        words: &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
        ],
        letters: "IF",
    },
    Reach {
        programs: &["git"],
        words: &[
            "--output",
            "--ext-diff",
            "--textconv",
            "--open-files-in-pager",
            "--exec",
            "--upload-pack",
            "--receive-pack",
            "--exec-path",
            "--git-dir",
            "--work-tree",
            "--config-env",
            "--template",
        ],
        letters: "Ox",
    },
    Reach {
        programs: &["cargo"],
        words: &[
            "--config",
            "--manifest-path",
            "--fix",
            "--open",
            "--artifact-dir",
            "--out-dir",
            "--target-dir",
        ],
        letters: "C",
    },
    Reach {
        programs: &["npm", "pnpm", "yarn", "npx"],
        words: &[
            "--script-shell",
            "--prefix",
            "--userconfig",
            "--globalconfig",
            "--node-options",
            "--cwd",
            "--dir",
        ],
        letters: "C",
    },
    Reach {
        programs: &["go"],
        words: &["-exec", "-toolexec", "-vettool", "-overlay", "-o"],
        letters: "",
    },
    Reach {
        programs: &["curl"],
        words: &[
            "--output",
            "--output-dir",
            "--remote-name",
            "--config",
            "--upload-file",
            "--dump-header",
        ],
        letters: "oOKTDJ",
    },
    Reach {
        programs: &["wget"],
        words: &[
            "--output-document",
            "--directory-prefix",
            "--post-file",
            "--body-file",
            "--use-askpass",
            "--execute",
        ],
        letters: "OPe",
    },
    Reach {
        programs: &["ssh", "scp", "sftp"],
        words: &[],
        letters: "oFS",
    },
    Reach {
        programs: &["rsync"],
        words: &["--rsh", "--rsync-path"],
        letters: "e",
    },
    Reach {
        programs: &["zip"],
        words: &["--unzip-command"],
        letters: "T",
    },
    Reach {
        programs: &["make", "gmake"],
        words: &["--eval", "--file", "--makefile", "--directory"],
        letters: "fCE",
    },
    Reach {
        programs: &["date"],
        words: &["--set"],
        letters: "s",
    },
    // A subscript can hold a command.
    Reach {
        programs: &["test", "["],
        words: &["-v", "-R"],
        letters: "",
    },
    Reach {
        programs: &["printf"],
        words: &[],
        letters: "v",
    },
];

/// Programs that run whatever their arguments say, and builtins that change what later commands
/// mean.
const ALWAYS: &[&str] = &[
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "xargs",
    "parallel",
    "env",
    "sudo",
    "doas",
    "eval",
    "source",
    ".",
    "exec",
    "trap",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "readonly",
    "local",
    "set",
    "shopt",
    "enable",
    "hash",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "jobs",
    "fc",
    "history",
    "compgen",
    "command",
    "builtin",
    "coproc",
    "bind",
    "complete",
    "ed",
    "ex",
    "vi",
    "vim",
    "nano",
    "less",
    "more",
    "man",
    "dd",
];

/// Programs of which no option runs or writes anything.
pub(super) const SAFE_OPTIONS: &[&str] = &[
    "cat", "diff", "du", "echo", "egrep", "fgrep", "grep", "head", "ls", "stat", "tail", "wc",
];

/// Subcommands of git that run what a repository or an argument says.
const GIT: &[&str] = &[
    "bisect",
    "clone",
    "config",
    "daemon",
    "difftool",
    "filter-branch",
    "hook",
    "init",
    "mergetool",
    "rebase",
    "submodule",
    "worktree",
];

/// Returns true if no rule with `*` covers the program, whatever its options.
pub(super) fn always_reaches(name: &str) -> bool {
    ALWAYS.contains(&name)
}

/// Returns the word with which this command could do more than is obvious. `spells` returns true
/// if the rule itself begins with these words.
pub(super) fn reach(words: &[Word], spells: impl Fn(&str) -> bool) -> Option<String> {
    let name = within::name(words);
    if always_reaches(name) {
        return Some(name.to_owned());
    }
    let arguments = words.get(1..).unwrap_or_default();
    // Before any table, which cannot list every program: a wildcard may match a file whose name
    // is an option.
    let may_be_option = |word: &Word| word.glob && word.text.starts_with(['*', '?', '[']);
    let wild = |word: &&Word| may_be_option(word) && !SAFE_OPTIONS.contains(&name);
    if let Some(word) = arguments.iter().find(wild) {
        return Some(word.text.clone());
    }
    match name {
        "sed" => return sed(arguments),
        "git" => {
            if let Some(found) = git(arguments, spells) {
                return Some(found);
            }
        }
        _ => {}
    }
    let table = REACHES
        .iter()
        .find(|reach| reach.programs.contains(&name))?;
    let named =
        |word: &&Word| is_one_of(&word.text, table.words) || has_letter(&word.text, table.letters);
    arguments.iter().find(named).map(|word| word.text.clone())
}

fn is_one_of(word: &str, options: &[&str]) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    let abbreviated =
        |option: &&str| name.starts_with("--") && name.len() > 2 && option.starts_with(name);
    options
        .iter()
        .any(|option| *option == name || abbreviated(option))
}

fn has_letter(word: &str, letters: &str) -> bool {
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    cluster.is_some_and(|cluster| cluster.contains(|c: char| letters.contains(c)))
}

fn git(arguments: &[Word], spells: impl Fn(&str) -> bool) -> Option<String> {
    let first = arguments.first()?;
    let foreign = arguments.iter().find(|word| word.text.contains("::"));
    let dangerous = GIT.contains(&first.text.as_str()) && !spells(&format!("git {}", first.text));
    // Before the subcommand, every option is about what git itself runs or where.
    let found = if dangerous || first.text.starts_with('-') {
        Some(first)
    } else {
        foreign
    };
    found.map(|word| word.text.clone())
}

/// Accepts sed only with line ranges and plain substitutions.
fn sed(arguments: &[Word]) -> Option<String> {
    let known = [
        "-n", "-E", "-r", "-nE", "-nr", "-u", "-s", "--quiet", "--silent",
    ];
    let option = arguments
        .iter()
        .find(|word| word.text.starts_with('-') && !known.contains(&word.text.as_str()));
    if let Some(option) = option {
        return Some(option.text.clone());
    }
    let script = arguments.iter().find(|word| !word.text.starts_with('-'))?;
    (script.glob || !is_plain_sed(&script.text)).then(|| script.text.clone())
}

fn is_plain_sed(script: &str) -> bool {
    let range = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ',' | '$' | ' '))
    };
    if script.strip_suffix(['p', 'd', 'q']).is_some_and(range) {
        return true;
    }
    let parts: Vec<_> = script
        .strip_prefix("s/")
        .map(|rest| rest.split('/').collect())
        .unwrap_or_default();
    let [from, to, flags] = parts.as_slice() else {
        return false;
    };
    let plain = |text: &str| !text.contains(['\\', '\n']);
    plain(from)
        && plain(to)
        && flags
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_beyond() {
        let table = [
            ("find . -name x", None),
            ("find . -delete", Some("-delete")),
            ("sort -u a", None),
            ("sort -uo b a", Some("-uo")),
            ("sort --outp=b a", Some("--outp=b")),
            ("rg --pretty x", None),
            ("rg --pre=y x", Some("--pre=y")),
            ("git log -p", None),
            ("git -c a=b log", Some("-c")),
            ("git diff --output=x", Some("--output=x")),
            ("git config a b", Some("config")),
            ("git worktree add x", None),
            ("sed -n 1,5p a", None),
            ("sed s/a/b/g a", None),
            ("sed s/a/b/e a", Some("s/a/b/e")),
            ("sed -i s/a/b/ a", Some("-i")),
            ("sed -n 1w a", Some("1w")),
            ("/usr/bin/awk {}", Some("awk")),
            ("cat a", None),
        ];
        for (command, expected) in table {
            let words: Vec<_> = command.split(' ').map(Word::literal).collect();
            let spells = |text: &str| "git worktree *".starts_with(text);
            assert_eq!(reach(&words, spells).as_deref(), expected, "{command}");
        }
    }
}
