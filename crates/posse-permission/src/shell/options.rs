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
            // They follow links out of the workspace.
            "-L",
            "-H",
            "-follow",
        ],
        letters: "",
    },
    Reach {
        programs: &["grep", "egrep", "fgrep"],
        words: &["--dereference-recursive"],
        letters: "R",
    },
    Reach {
        programs: &["diff"],
        words: &["--recursive"],
        letters: "r",
    },
    Reach {
        programs: &["cp"],
        words: &["--dereference"],
        letters: "LH",
    },
    Reach {
        programs: &["file"],
        words: &["--compile", "--uncompress", "--magic-file"],
        letters: "CmzZ",
    },
    Reach {
        programs: &["tree"],
        words: &["-o"],
        letters: "ol",
    },
    Reach {
        programs: &["split"],
        words: &["--filter"],
        letters: "",
    },
    Reach {
        programs: &["gcc", "g++", "cc", "c++", "clang", "clang++"],
        words: &["-wrapper", "-specs", "-fplugin", "-fpass-plugin", "-load"],
        letters: "BX",
    },
    Reach {
        programs: &["fd", "fdfind"],
        words: &["--exec", "--exec-batch"],
        letters: "xX",
    },
    Reach {
        programs: &["rg"],
        words: &["--pre", "--hostname-bin", "--search-zip", "--follow"],
        letters: "zL",
    },
    Reach {
        programs: &["sort"],
        words: &[
            "--output",
            "--compress-program",
            "--temporary-directory",
            "--files0-from",
        ],
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
        programs: &["wc", "du"],
        words: &["--files0-from"],
        letters: "",
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
            "--shell",
            "--init-module",
            "--location",
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
            "--cookie-jar",
            "--libcurl",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--etag-save",
            "--hsts",
            "--alt-svc",
            "--write-out",
            "--remote-name-all",
            "--remote-header-name",
        ],
        letters: "oOKTDJcw",
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
            "--config",
            "--output-file",
            "--append-output",
            "--save-cookies",
            "--warc-file",
            "--hsts-file",
        ],
        letters: "OPeoa",
    },
    Reach {
        programs: &["ssh", "scp", "sftp"],
        words: &[],
        letters: "oFS",
    },
    Reach {
        programs: &["rsync"],
        words: &[
            "--rsh",
            "--rsync-path",
            "--copy-links",
            "--copy-unsafe-links",
        ],
        letters: "eL",
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
    "sqlite3",
];

/// Programs of which no option runs or writes anything.
pub(super) const SAFE_OPTIONS: &[&str] = &[
    "cat", "diff", "du", "echo", "egrep", "fgrep", "grep", "head", "ls", "stat", "tail", "wc",
];

/// Subcommands of git that a rule for all of git covers. The others, more than a hundred, must be
/// spelled by the rule: many of them run what an argument says.
const GIT: &[&str] = &[
    "add",
    "blame",
    "branch",
    "checkout",
    "commit",
    "describe",
    "diff",
    "fetch",
    "grep",
    "log",
    "ls-files",
    "merge",
    "pull",
    "push",
    "remote",
    "restore",
    "rev-parse",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];

/// Subcommands of npm and its like that run what an argument says, or change what later ones run.
const NPM: &[&str] = &[
    "c", "config", "create", "dlx", "edit", "exec", "explore", "get", "init", "innit", "link",
    "node", "pkg", "set", "x",
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
    // Before any table, which cannot list every program.
    let wild = |word: &&Word| may_be_option(word) && !SAFE_OPTIONS.contains(&name);
    if let Some(word) = arguments.iter().find(wild) {
        return Some(word.text.clone());
    }
    let found = match name {
        "sed" => return sed(arguments),
        "git" => git(arguments, spells),
        "npm" | "pnpm" | "yarn" => npm(name, arguments, spells),
        // The letters of tar need no dash if they come first.
        "tar" | "bsdtar" => {
            let first = arguments.first().filter(|word| !word.text.starts_with('-'));
            let bundle = first.filter(|word| word.text.contains(['I', 'F']));
            bundle.map(|word| word.text.clone())
        }
        // A variable may be what make runs.
        "make" | "gmake" => {
            let is_variable =
                |word: &&Word| !word.text.starts_with('-') && word.text.contains(['=', '$']);
            arguments
                .iter()
                .find(is_variable)
                .map(|word| word.text.clone())
        }
        // It writes to the second file.
        "uniq" => {
            let mut operands = arguments.iter().filter(|word| !word.text.starts_with('-'));
            operands.nth(1).map(|word| word.text.clone())
        }
        // They take options from files.
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" => {
            let is_file = |word: &&Word| word.text.starts_with('@');
            arguments.iter().find(is_file).map(|word| word.text.clone())
        }
        _ => None,
    };
    if found.is_some() {
        return found;
    }
    let table = REACHES
        .iter()
        .find(|reach| reach.programs.contains(&name))?;
    let named =
        |word: &&Word| is_one_of(&word.text, table.words) || has_letter(&word.text, table.letters);
    arguments.iter().find(named).map(|word| word.text.clone())
}

/// Returns true if a word is one of these options. Whether it has one dash or two does not count:
/// programs differ in that. The options of pnpm may stand behind `config.`.
fn is_one_of(word: &str, options: &[&str]) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    let Some(bare) = name.strip_prefix('-') else {
        return options.contains(&name);
    };
    let bare = bare.strip_prefix('-').unwrap_or(bare);
    let bare = bare.strip_prefix("config.").unwrap_or(bare);
    let is_long = name.starts_with("--") && !bare.is_empty();
    let is_it = |option: &&str| {
        let option = option.trim_start_matches('-');
        option == bare || is_long && option.starts_with(bare)
    };
    options.iter().any(is_it)
}

/// Returns true if a wildcard may match a file whose name is an option.
pub(super) fn may_be_option(word: &Word) -> bool {
    word.glob && word.text.starts_with(['*', '?', '['])
}

/// Returns true if a cluster of short options has one of these letters.
pub(super) fn has_letter(word: &str, letters: &str) -> bool {
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    cluster.is_some_and(|cluster| cluster.contains(|c: char| letters.contains(c)))
}

fn git(arguments: &[Word], spells: impl Fn(&str) -> bool) -> Option<String> {
    let first = arguments.first()?;
    let foreign = |word: &&Word| word.text.contains("::");
    let is_covered = GIT.contains(&first.text.as_str()) || spells(&format!("git {}", first.text));
    // They write to the file of this option.
    let writes = |word: &&Word| {
        let makes_files = matches!(first.text.as_str(), "archive" | "format-patch" | "bundle");
        makes_files && has_letter(&word.text, "o")
    };
    // Before the subcommand, every option is about what git itself runs or where.
    let found = match is_covered && !first.text.starts_with('-') {
        true => arguments.iter().find(|word| foreign(word) || writes(word)),
        false => Some(first),
    };
    found.map(|word| word.text.clone())
}

/// A script of the package may be run by `npm test`, and by its name with yarn and pnpm.
fn npm(name: &str, arguments: &[Word], spells: impl Fn(&str) -> bool) -> Option<String> {
    let is_operand = |word: &&Word| !word.text.starts_with('-');
    let subcommand = arguments.iter().find(is_operand)?.text.as_str();
    let reaches = NPM.contains(&subcommand) && !spells(&format!("{name} {subcommand}"));
    reaches.then(|| subcommand.to_owned())
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
            ("git remote-ext x y", Some("remote-ext")),
            ("git rebase main", Some("rebase")),
            ("git archive -o x HEAD", Some("archive")),
            ("tar cIf x y", Some("cIf")),
            ("tar cf y x", None),
            (
                "npm test -script-shell=./evil",
                Some("-script-shell=./evil"),
            ),
            (
                "pnpm test --config.script-shell=./evil",
                Some("--config.script-shell=./evil"),
            ),
            ("npm exec -c x", Some("exec")),
            ("npm test x", None),
            ("go test --exec ./evil", Some("--exec")),
            ("make test SHELL=./evil", Some("SHELL=./evil")),
            ("make -j4 test", None),
            ("uniq a b", Some("b")),
            ("uniq -c a", None),
            ("gcc -wrapper x a.c", Some("-wrapper")),
            ("gcc -O2 -o a a.c", None),
            ("curl -sc jar x", Some("-sc")),
            ("find -L .", Some("-L")),
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
