//! Over the corpus and 10,000 generated lines: what a suggestion newly allows is what its text says.

use super::generated::{Made, MadeLine, Random, line, neighbour, spelled, text};
use super::*;
use crate::corpus;

/// How many lines are made.
const LINES: u64 = 10_000;

/// Variables that say nothing about what a command does.
const HARMLESS: &[&str] = &["LANG=C"];
/// Wrappers that change nothing but how long or how a command runs.
const TRANSPARENT: &[&str] = &["timeout 5", "nohup", "nice", "time"];
/// Returns true if with this word a command of the kind would write, run or read something else.
fn reaches(kind: &[String], word: &str) -> bool {
    let kind: Vec<&str> = kind.iter().map(String::as_str).collect();
    let writes = matches!(
        kind.as_slice(),
        ["cargo" | "npm", ..] | ["git", "add" | "commit"]
    );
    match (kind.first().copied().unwrap_or_default(), word) {
        // The first word that rg is given is no path.
        ("echo", _) | ("rg", "/etc/passwd" | "../x") => false,
        (_, "/etc/passwd" | "../x")
        | ("cargo", "--fix" | "--target-dir" | "--config")
        | ("git", "--output=o" | "--exec")
        | ("find", "-delete") => true,
        (_, ".git/x") => writes,
        _ => false,
    }
}

fn runs(command: &str) -> Intent {
    intent(Subject::runs(command))
}

fn asks(rights: &Rights, command: &str) -> bool {
    matches!(rights.verdict("Bash", &runs(command)), Verdict::Ask(_))
}

fn allows(rights: &Rights, command: &str) -> bool {
    rights.verdict("Bash", &runs(command)) == Verdict::Allow
}

/// Returns the rights after a suggestion is accepted.
fn accepted(rights: &Rights, suggestion: &Suggestion) -> Rights {
    let policy = added(&rights.policy(), &workspace(), suggestion).unwrap();
    Rights::root(
        PermissionMode::Default,
        Arc::new(policy),
        workspace().into(),
    )
}

/// Returns the words of a suggested rule, read by its text alone, and whether others may follow.
fn said(rule: &str) -> (Vec<String>, bool) {
    let inner = rule
        .strip_prefix("Bash(")
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap();
    let (inner, more) = inner
        .strip_suffix(" *")
        .map_or((inner, false), |inner| (inner, true));
    let mut words = vec![String::new()];
    for (at, part) in inner.split('\'').enumerate() {
        // Between quotes a space is part of the word.
        let mut pieces = if at % 2 == 1 {
            vec![part]
        } else {
            part.split(' ').collect()
        };
        words.last_mut().unwrap().push_str(pieces.remove(0));
        words.extend(pieces.into_iter().map(str::to_owned));
    }
    (words, more)
}

/// Returns true if one of the rules says that it allows this command.
fn is_said(rules: &[String], made: &Made) -> bool {
    // What it is given to read is no part of a rule.
    let quiet = ["2>&1", "> /dev/null", "<<< x", "< in"];
    rules.iter().any(|rule| {
        let (words, more) = said(rule);
        let matches = match more {
            true => {
                let reaches = made.words.iter().any(|word| reaches(&words, word));
                let safe_glob = made.unknown.is_none_or(|it| matches!(it, "*.rs" | "?"));
                made.words.starts_with(&words) && !reaches && safe_glob
            }
            false => made.words == words && made.unknown.is_none(),
        };
        matches
            && made.variable.is_none_or(|it| HARMLESS.contains(&it))
            && made.wrapper.is_none_or(|it| TRANSPARENT.contains(&it))
            && made.redirection.is_none_or(|it| quiet.contains(&it))
    })
}

/// Programs that only read, so that their name alone is a kind of command.
const READERS: &[&str] = &[
    "ls", "cat", "grep", "find", "rg", "echo", "head", "tail", "diff", "du",
];

/// Returns true if these are all words of a command with those that run it.
fn is_in_full(words: &[String], made: &Made) -> bool {
    let wrapper = made.wrapper.iter().flat_map(|it| it.split(' '));
    let all = wrapper.chain(made.words.iter().map(String::as_str));
    // At the beginning of a pipeline `time` is a word of the shell itself.
    all.eq(words.iter()) || (made.wrapper == Some("time") && made.words == words)
}

/// Returns true if a rule is made of a command of the line: all its words, or with `*` the program
/// and its subcommand.
fn is_from(rule: &str, line: &MadeLine) -> bool {
    let (words, more) = said(rule);
    line.commands.iter().any(|made| match more {
        true => {
            made.words.starts_with(&words)
                && (words.len() > 1 || READERS.contains(&words[0].as_str()))
        }
        false => is_in_full(&words, made),
    })
}

/// Checks that a suggestion, if it newly allows a line, says so of each of its commands that was not
/// allowed. Returns true if it newly allows the line.
fn check(before: &Rights, after: &Rights, rules: &[String], line: &MadeLine) -> bool {
    let command = text(line);
    let newly = asks(before, &command) && allows(after, &command);
    if newly {
        let unsaid = line.commands.iter().find(|made| {
            let with_wrapper = rules.iter().any(|rule| {
                let (words, more) = said(rule);
                !more && is_in_full(&words, made) && made.unknown.is_none()
            });
            !with_wrapper && !is_said(rules, made) && !allows(before, &spelled(made))
        });
        assert!(unsaid.is_none(), "{rules:?} allows {command}\n{unsaid:?}");
    }
    newly
}

fn policies() -> [Rights; 3] {
    let of_corpus = Arc::new(corpus::policy());
    [
        Rights::root(PermissionMode::Default, of_corpus, workspace().into()),
        rights(&[], &[], &[]),
        rights(
            &["Bash(rm *)", "Read(*.rs)"],
            &["Bash(cargo publish *)", "Bash(npm *)"],
            &["Bash(make *)"],
        ),
    ]
}

// proves QU-04 (part: a command; its kind; what no rule covers; 10,000 lines)
#[test]
fn a_suggestion_allows_what_its_text_says_and_nothing_else() {
    let mut random = Random::new(19);
    let lines: Vec<MadeLine> = (0..LINES).map(|_| line(&mut random)).collect();
    let policies = policies();
    let (mut offered, mut newly) = (0, 0);
    for asked in &lines {
        let before = &policies[random.below(3)];
        let command = text(asked);
        for suggestion in before.suggestions("Bash", &runs(&command)) {
            offered += 1;
            let after = accepted(before, &suggestion);
            assert!(
                allows(&after, &command),
                "{suggestion:?} does not settle {command}"
            );
            let strange = suggestion.rules.iter().find(|rule| !is_from(rule, asked));
            assert_eq!(strange, None, "for {command}");
            check(before, &after, &suggestion.rules, asked);
            for _ in 0..2 {
                let near = neighbour(&mut random, asked);
                newly += usize::from(check(before, &after, &suggestion.rules, &near));
                let other = &lines[random.below(lines.len())];
                newly += usize::from(check(before, &after, &suggestion.rules, other));
            }
        }
    }
    assert!(
        offered > 2_000 && newly > 300,
        "{offered} were offered, {newly} lines allowed by them"
    );
}

/// Returns a command of the corpus without the quotes that hide its name.
fn unquoted(command: &str) -> String {
    command.replace("$'", "'").replace(['\'', '"', '\\'], "")
}

/// Returns true if a suggestion says that it allows a command without quotes.
fn says(suggestion: &Suggestion, command: &str) -> bool {
    let wrapped = [
        "! ",
        "LC_ALL=C ",
        "time -p ",
        "time ",
        "nohup ",
        "nice ",
        "timeout 5 ",
        "stdbuf -o0 ",
    ];
    let inner = wrapped
        .iter()
        .find_map(|wrapper| command.strip_prefix(wrapper));
    let words: Vec<&str> = inner.unwrap_or(command).split_whitespace().collect();
    suggestion.rules.iter().any(|rule| {
        let (said, more) = said(rule);
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        words.starts_with(&said) && (more || words.len() == said.len())
    })
}

// proves QU-04 (part: the corpus)
#[test]
fn a_suggestion_for_a_trick_of_the_corpus_allows_no_other() {
    let lines: Vec<String> = corpus::commands();
    let mut random = Random::new(168);
    let mut offered = 0;
    for before in &policies() {
        let others: Vec<&String> = lines.iter().filter(|line| asks(before, line)).collect();
        for asked in &lines {
            for suggestion in before.suggestions("Bash", &runs(asked)) {
                offered += 1;
                let after = accepted(before, &suggestion);
                let newly = |other: &&&String| **other != asked && allows(&after, other);
                for other in others.iter().filter(newly) {
                    // Quoted, what a command is given to read is only that.
                    let (run, _) = other.split_once("<<'").unwrap_or((other, ""));
                    let is_plain = !run.contains(['>', '<', '`']);
                    let joined = run.replace("\\\n", "");
                    let parts = joined
                        .split([';', '|', '&', '\n', '(', ')', '{', '}'])
                        .map(str::trim);
                    let mut parts = parts.filter(|part| !part.is_empty());
                    let said = parts
                        .all(|part| allows(before, part) || says(&suggestion, &unquoted(part)));
                    assert!(
                        is_plain && said,
                        "{suggestion:?} for {asked} allows {other}"
                    );
                }
                for _ in 0..5 {
                    let made = line(&mut random);
                    check(before, &after, &suggestion.rules, &made);
                }
            }
        }
    }
    assert!(offered > 30, "{offered} were offered");
}
