//! Commands that read more than the files they name.

use super::options::{has_letter, may_be_option};
use super::within;
use super::word::Word;

/// Options of git with which a difference is told without its text.
const WITHOUT_TEXT: &[&str] = &[
    "--name-only",
    "--name-status",
    "--numstat",
    "--quiet",
    "--shortstat",
    "--stat",
];

/// Returns true if the command reads everything below its arguments, or what git has of files that
/// it does not name.
pub(super) fn is_recursive(words: &[Word]) -> bool {
    let arguments = words.get(1..).unwrap_or_default();
    let has = |letters: &str, long: &[&str]| {
        arguments.iter().any(|word| {
            may_be_option(word)
                || has_letter(&word.text, letters)
                || long.iter().any(|long| word.text.starts_with(long))
        })
    };
    match within::name(words) {
        "grep" | "egrep" | "fgrep" => has("rRd", &["--rec", "--dereference-r", "--dir"]),
        "diff" | "cp" | "scp" => has("rRa", &["--rec", "--arch"]),
        "rg" | "rgrep" | "ag" | "ack" | "tar" | "zip" | "rsync" => true,
        // Names of files from a file.
        "sort" | "wc" | "du" => has("", &["--files0"]),
        "git" => shows_text(arguments),
        _ => false,
    }
}

/// Returns true if git prints the text of files.
fn shows_text(arguments: &[Word]) -> bool {
    let Some((subcommand, options)) = arguments.split_first() else {
        return false;
    };
    let is = |names: &[&str]| {
        options
            .iter()
            .any(|word| names.contains(&word.text.as_str()))
    };
    let begins = |starts: &[&str]| {
        let starts_so = |word: &Word| starts.iter().any(|start| word.text.starts_with(start));
        options.iter().any(starts_so)
    };
    // Options of one letter, alone or with their value; `--stat -p` prints the text.
    let patch =
        is(&["-p", "-u", "-c", "-m"]) || begins(&["-U", "-L", "--patch", "--unified", "--cc"]);
    match subcommand.text.as_str() {
        "diff" => patch || begins(&["--no-index"]) || !is(WITHOUT_TEXT),
        "log" | "stash" => patch || begins(&["--remerge-diff", "--ext-diff"]) || is(&["show"]),
        "show" | "grep" | "blame" | "cat-file" | "archive" | "format-patch" | "annotate"
        | "whatchanged" | "range-diff" | "diff-tree" | "diff-index" | "diff-files" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_more_than_it_names() {
        let table = [
            ("grep x a", false),
            ("grep -rn x .", true),
            ("diff a b", false),
            ("git status", false),
            ("git diff --stat", false),
            ("git diff --stat -p", true),
            ("git diff", true),
            ("git diff --no-index --stat a b", true),
            ("git log --oneline", false),
            ("git log -p", true),
            ("git log -U3", true),
            ("git grep --no-index x", true),
            ("git commit -m x", false),
            ("sort --files0-from=-", true),
        ];
        for (command, expected) in table {
            let words: Vec<_> = command.split(' ').map(Word::literal).collect();
            assert_eq!(is_recursive(&words), expected, "{command}");
        }
    }
}
