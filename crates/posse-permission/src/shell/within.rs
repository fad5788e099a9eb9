//! Commands that run other commands: what they would run.

use super::script::Simple;
use super::word::Word;

/// Their remaining words, after options, are a command.
const WRAPPERS: &[&str] = &[
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "doas",
    "env",
    "exec",
    "fakeroot",
    "flock",
    "gtimeout",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "numactl",
    "parallel",
    "prlimit",
    "runuser",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
];

/// They take a script as one of their words.
const SHELLS: &[&str] = &[
    "bash", "dash", "env", "eval", "ksh", "parallel", "script", "sh", "su", "trap", "watch",
    "xargs", "zsh",
];

/// So many words of a command within are looked at, so that a long list of arguments stays cheap.
const MOST_WORDS: usize = 64;
const MOST_STARTS: usize = 512;
const FEW_WORDS: usize = 4;

/// The name of a program without its directory.
pub(super) fn name(words: &[Word]) -> &str {
    let text = words.first().map_or("", |word| word.text.as_str());
    text.rsplit('/').next().unwrap_or(text)
}

/// Every command that this one could run. Options are not understood but stepped over: each rest of the
/// words may be the command.
pub(super) fn commands(command: &Simple) -> Vec<Simple> {
    let words = &command.words;
    if wraps(words) {
        return beginning(words, 1..words.len());
    }
    let found = words.iter().enumerate().filter(|(_, word)| executes(word));
    let starts: Vec<_> = found.map(|(at, _)| at + 1).collect();
    beginning(words, starts.into_iter())
}

/// The same for a command whose quotes were not understood: a script may be spread over its words.
pub(super) fn rests(command: &Simple) -> Vec<Simple> {
    match is_shell(&command.words) {
        true => beginning(&command.words, 1..command.words.len()),
        false => commands(command),
    }
}

/// Whether the command's words hold another one.
pub(super) fn wraps(words: &[Word]) -> bool {
    WRAPPERS.contains(&name(words))
}

/// Returns true if the command takes a script as one of its words.
pub(super) fn is_shell(words: &[Word]) -> bool {
    SHELLS.contains(&name(words))
}

fn beginning(words: &[Word], starts: impl ExactSizeIterator<Item = usize>) -> Vec<Simple> {
    let most = if starts.len() > MOST_STARTS {
        FEW_WORDS
    } else {
        MOST_WORDS
    };
    let rest = |at: usize| words.iter().skip(at).take(most).cloned().collect();
    starts
        .map(|at| Simple {
            variables: Vec::new(),
            words: rest(at),
            within: true,
        })
        .collect()
}

/// Whether the command may run what it is given to read.
pub(super) fn reads_scripts(command: &Simple) -> bool {
    command
        .words
        .iter()
        .any(|word| is_shell(std::slice::from_ref(word)))
}

/// Every text that this command could run as a script.
pub(super) fn scripts(command: &Simple) -> Vec<String> {
    let words = &command.words;
    if !is_shell(words) {
        return Vec::new();
    }
    let arguments = words.iter().skip(1).map(|word| word.text.as_str());
    let scripts = arguments
        .clone()
        .filter(|text| text.contains(|c: char| c.is_whitespace() || c == ';'));
    let joined = (name(words) == "eval").then(|| arguments.clone().collect::<Vec<_>>().join(" "));
    scripts.map(str::to_owned).chain(joined).collect()
}

/// The command without the wrappers that change nothing but how it is run, for allow rules. `None` if
/// there is none, or it is called in a way that is not understood.
pub(super) fn unwrapped(words: &[Word]) -> Option<&[Word]> {
    let (first, rest) = words.split_first()?;
    let text = |at: usize| rest.get(at).map_or("", |word| word.text.as_str());
    let is_option = |at: usize| text(at).starts_with('-');
    let skipped = match first.text.as_str() {
        "nohup" if !is_option(0) => 0,
        "time" if text(0) == "-p" && !is_option(1) => 1,
        "time" if !is_option(0) => 0,
        "timeout" if text(0).starts_with(|c: char| c.is_ascii_digit()) && !is_option(1) => 1,
        "nice" if text(0) == "-n" && !is_option(2) => 2,
        "nice" if !is_option(0) => 0,
        "stdbuf" => {
            let mut at = 0;
            while is_option(at) {
                // The value may be a word of its own.
                let takes_next = matches!(
                    text(at),
                    "-i" | "-o" | "-e" | "--input" | "--output" | "--error"
                );
                at += 1 + usize::from(takes_next);
            }
            at
        }
        _ => return None,
    };
    rest.get(skipped..).filter(|rest| !rest.is_empty())
}

/// Returns the command within all wrappers that [`unwrapped`] understands.
pub(super) fn innermost(words: &[Word]) -> &[Word] {
    std::iter::successors(Some(words), |words| unwrapped(words))
        .last()
        .unwrap_or(words)
}

/// Returns true if the command is this program, or could run it: any word after a wrapper or a
/// shell may be what it runs.
pub(super) fn could_run(words: &[Word], program: &str) -> bool {
    let words: Vec<Word> = words.iter().flat_map(Word::words).collect();
    let runs_words = wraps(&words) || is_shell(&words);
    words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        (runs_words || before.is_none_or(executes)) && may_be(word, program)
    })
}

/// Returns true if the word after this option of `find` begins a command.
fn executes(word: &Word) -> bool {
    matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")
}

/// Returns true if the word names this program, or could because of its wildcards.
pub(super) fn may_be(word: &Word, program: &str) -> bool {
    let name = name(std::slice::from_ref(word));
    // A bracket that is not closed is one of the name, as in `[ -e file ]`.
    let has_set = name
        .split_once('[')
        .is_some_and(|(_, rest)| rest.contains(']'));
    if !word.glob || !(has_set || name.contains(['*', '?'])) {
        return name.eq_ignore_ascii_case(program);
    }
    // What the wildcards leave must be found in the program's name in this order.
    let mut rest = program.chars();
    let mut plain = name
        .split(['*', '?'])
        .filter_map(|part| part.split('[').next())
        .flat_map(str::chars);
    plain.all(|c| rest.any(|other| other == c))
}
