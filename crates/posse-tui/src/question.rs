//! Questions to a person: what they want to know, and the dialog that comes to an answer.

pub mod choice;
mod dialog;

use std::path::PathBuf;

use posse_protocol::{Display, Question, QuestionKind, SandboxRefusal, authority};

pub use self::dialog::{DialogStep, QuestionDialog, Typing};
use crate::text::{changed_file, one_line, tame};

/// Returns what a call would do: all of a command or a plan, the questions that it asks, and the whole input of
/// any other tool. If a sandbox has refused something to it, what that is.
pub fn wanted(question: &Question) -> String {
    let wanted = wanted_of_input(question);
    match question.refused.as_ref().map(refused_lines) {
        Some(refused) => format!("{wanted}\n{refused}"),
        None => wanted,
    }
}

/// Returns what an agent does by asking, in few words that follow its name.
pub(crate) fn deed(question: &Question) -> String {
    match question.kind {
        QuestionKind::Choice | QuestionKind::Form => "asks you".to_owned(),
        QuestionKind::Plan => "hands in a plan".to_owned(),
        QuestionKind::Permission if question.tool == CONNECT => "wants to connect".to_owned(),
        QuestionKind::Permission => format!("wants to use {}", one_line(&question.tool)),
    }
}

/// What questions about hosts call what is to be done.
const CONNECT: &str = "Connect";

/// Returns what a command can do if it runs again, a line each.
fn refused_lines(refused: &SandboxRefusal) -> String {
    let paths = |verb: &'static str, paths: &[PathBuf]| -> Vec<String> {
        let line = |path: &PathBuf| format!("+ {verb} {}", path.display());
        paths.iter().map(line).collect()
    };
    let network = refused.network.then(|| "+ use the network".to_owned());
    let write = paths("write", &refused.write);
    let read = paths("read", &refused.read);
    let lines: Vec<String> = write.into_iter().chain(read).chain(network).collect();
    lines.join("\n")
}

fn wanted_of_input(question: &Question) -> String {
    if let Some(choices) = choice::of(question) {
        return choice::in_a_line(&choices);
    }
    let Ok(serde_json::Value::Object(mut input)) = serde_json::from_str(question.input.get())
    else {
        return question.input.get().to_owned();
    };
    if let (QuestionKind::Plan, Some(serde_json::Value::String(plan))) =
        (question.kind, input.get("plan"))
    {
        return plan.clone();
    }
    match (question.tool.as_str(), input.remove("command")) {
        ("Bash", Some(serde_json::Value::String(command))) if input.is_empty() => command,
        ("Bash", Some(serde_json::Value::String(command))) => {
            format!("{command}\n{}", serde_json::Value::Object(input))
        }
        (CONNECT, Some(serde_json::Value::String(command))) => {
            let host = input.get("host").and_then(serde_json::Value::as_str);
            let port = input.get("port").and_then(serde_json::Value::as_u64);
            match (host, port.and_then(|port| u16::try_from(port).ok())) {
                (Some(host), Some(port)) => format!("{} for {command}", authority(host, port)),
                _ => question.input.get().to_owned(),
            }
        }
        _ => question.input.get().to_owned(),
    }
}

/// Returns what a call would do in few words, for a list: the file that it changes, or what it wants.
pub fn about(question: &Question) -> String {
    match &question.shown {
        Some(Display::Diff(diff)) => changed_file(diff).to_string(),
        _ => wanted(question),
    }
}

/// Returns the rules that may be accepted with the answer, a numbered line each, safe to show.
pub fn suggestions(question: &Question) -> String {
    let line = |(number, suggestion): (usize, &posse_protocol::Suggestion)| {
        format!("  {number}  {}\n", tame(&suggestion.rules.join(", ")))
    };
    (1..).zip(&question.suggestions).map(line).collect()
}

#[cfg(test)]
mod tests {
    use posse_protocol::RawJson;

    use super::*;
    use crate::fixtures;

    // proves PE-12 (part: told; hosts)
    #[test]
    fn what_was_refused_and_which_host_is_wanted_is_shown_in_full() {
        let mut question = fixtures::question("c1");
        question.refused = Some(SandboxRefusal {
            write: vec!["/w/target".into(), "/w/b".into()],
            read: vec!["/h/.netrc".into()],
            network: true,
        });
        let expected = "ls\n+ write /w/target\n+ write /w/b\n+ read /h/.netrc\n+ use the network";
        assert_eq!(wanted(&question), expected);
        question.refused = None;
        question.tool = "Connect".into();
        let input = r#"{"host": "index.crates.io", "port": 443, "command": "cargo fetch"}"#;
        question.input = RawJson::parse(input).unwrap();
        assert_eq!(wanted(&question), "index.crates.io:443 for cargo fetch");
        let input = r#"{"host": "::1", "port": 80, "command": "curl"}"#;
        question.input = RawJson::parse(input).unwrap();
        assert_eq!(wanted(&question), "[::1]:80 for curl");
    }
}
