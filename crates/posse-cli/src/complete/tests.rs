//! What shells ask and get.

use clap::{Command, CommandFactory, ValueHint};

use super::kind::{ValueKind, kind};
use super::*;

/// A flag or an argument that is new needs somebody who says what its values are.
#[test]
fn every_argument_has_values_or_is_known_to_have_none() {
    fn walk(command: &Command, words: &str, faults: &mut Vec<String>) {
        for argument in command.get_arguments() {
            let takes = argument.get_action().takes_values();
            let is_known = !argument.get_possible_values().is_empty()
                || argument.get_value_hint() != ValueHint::Unknown
                || kind(words, argument.get_id().as_str()).is_some();
            if takes && !is_known {
                faults.push(format!("{words}: {}", argument.get_id()));
            }
        }
        for below in command.get_subcommands() {
            let words = format!("{words} {}", below.get_name());
            walk(below, words.trim_start(), faults);
        }
    }
    let mut command = crate::Args::command();
    command.build();
    let mut faults = Vec::new();
    walk(&command, "", &mut faults);
    faults.retain(|fault| !fault.contains(" help: ") && !fault.ends_with(": subcommand"));
    assert_eq!(faults, [""; 0]);
    assert_eq!(kind("team run", "resume"), Some(ValueKind::Session));
    assert_eq!(kind("mcp get", "name"), Some(ValueKind::Server));
    assert_eq!(kind("mcp add", "name"), Some(ValueKind::Free));
}

fn bash(line: &str, replaced: &str, kind: &str) -> CompletionRequest {
    let given = [line, replaced, kind].map(str::to_owned).to_vec();
    CompletionRequest::new(CompletionShell::Bash, given).unwrap()
}

#[test]
fn bash_gets_what_it_replaces() {
    let one = |value: &str, about: &str| Candidate {
        value: value.to_owned(),
        about: about.to_owned(),
    };
    let request = bash("posse --resume=01a", "01a", "9");
    assert_eq!(request.answer(&[one("--resume=01ab", "x")]), "01ab\n");
    let request = bash("posse mail send dev@", "", "9");
    assert_eq!(request.answer(&[one("dev@web", "")]), "web\n");
    let request = bash("posse skills show a", "a", "9");
    assert_eq!(request.answer(&[one("a b", "")]), "a\\ b\n");
    let two = [one("01a", "fix it"), one("01b", "")];
    let request = bash("posse cost ", "", "63");
    assert_eq!(request.answer(&two), "01a  (fix it)\n01b\n");
    assert_eq!(bash("posse cost ", "", "9").answer(&two), "01a\n01b\n");
}

#[test]
fn what_stands_before_decides() {
    let request = bash("posse task show --team web --store=sqlite:/a ", "", "9");
    assert_eq!(request.flag("--team"), Some("web"));
    assert_eq!(request.flag("--store"), Some("sqlite:/a"));
    assert_eq!(request.flag("--sto"), None);
    assert_eq!(request.current(), "");
    let alone = vec!["posse".to_owned()];
    assert_eq!(CompletionRequest::new(CompletionShell::Zsh, alone), None);
}
