//! Questions to a person: what they want to know, and the dialog that comes to an answer.

pub mod choice;
mod dialog;

use posse_protocol::{Display, Question, QuestionKind};

pub use self::dialog::{DialogStep, QuestionDialog, Typing};
use crate::text::{changed_file, tame};

/// Returns what a call would do: all of a command or a plan, the questions that it asks, and the whole input of
/// any other tool.
pub fn wanted(question: &Question) -> String {
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
