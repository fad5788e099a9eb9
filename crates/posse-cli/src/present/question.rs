//! Questions to a person, as text.

use posse_port::store::QuestionRecord;
use posse_protocol::{Display, Question, QuestionKind};
use serde_json::{Value, json};

use crate::output::time::{age, moment};
use crate::output::transcript::shortened;
use crate::output::{one_line, tame};
use crate::present::choice;

/// Number of characters of a reason, or of what is asked about in a line.
const LONGEST: usize = 200;

/// Returns what a call would do: all of a command or a plan, the questions that it asks, and the whole input of
/// any other tool.
pub(crate) fn wanted(question: &Question) -> String {
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

/// Returns what a person looks at before they answer, safe to show: the change that the call would
/// make, or all of its input.
pub(crate) fn content(question: &Question) -> String {
    if let Some(choices) = choice::of(question) {
        return choices.questions.iter().map(choice::lines).collect();
    }
    match &question.shown {
        Some(Display::Diff(diff)) => tame(&diff.to_string()).lines().map(diff_line).collect(),
        Some(Display::Text { text }) => {
            format!("{}\n{}", tame(&wanted(question)), tame(text))
        }
        None => tame(&wanted(question)),
    }
}

/// Returns a line of a change in its colour.
fn diff_line(line: &str) -> String {
    let color = match line.as_bytes().first() {
        _ if line.starts_with("---") || line.starts_with("+++") => return format!("{line}\n"),
        Some(b'+') => 32,
        Some(b'-') => 31,
        Some(b'@') => 36,
        _ => return format!("{line}\n"),
    };
    format!("\x1b[{color}m{line}\x1b[39m\n")
}

/// Returns the rules that may be accepted with the answer, a numbered line each, safe to show.
pub(crate) fn suggestions(question: &Question) -> String {
    let line = |(number, suggestion): (usize, &posse_protocol::Suggestion)| {
        format!("  {number}  {}\n", tame(&suggestion.rules.join(", ")))
    };
    (1..).zip(&question.suggestions).map(line).collect()
}

/// Returns a question in a line, with the command that answers it.
pub(crate) fn note(question: &Question) -> String {
    let who = tame(question.from.as_deref().unwrap_or("the main agent"));
    let what = one_line(&shortened(&tame(&wanted(question)), LONGEST));
    let id = short(question);
    if question.kind == QuestionKind::Choice {
        return format!(
            "? {who} asks: {what} — answer with `posse requests answer {id} --choose 1`"
        );
    }
    format!(
        "? {who} asks about {}: {what} — answer with `posse requests answer {id} allow` (or `deny`)",
        tame(&question.tool)
    )
}

/// Returns as much of its ID as makes it unique.
pub(crate) fn short(question: &Question) -> String {
    let id = question.id.to_string();
    id.get(..8).unwrap_or(&id).to_owned()
}

/// Returns an agent's state, with how long it has waited for a person: `asks 5m`.
pub(crate) fn state(state: &str, asks: Option<&QuestionRecord>, now: i64) -> String {
    let Some(record) = asks else {
        return state.to_owned();
    };
    let asks = format!("asks {}", age(now.saturating_sub(record.asked_ms)));
    match state {
        "waiting" => asks,
        _ => format!("{state}, {asks}"),
    }
}

/// Returns what an agent asks, for programs; null if it asks nothing.
pub(crate) fn object(asks: Option<&QuestionRecord>) -> Value {
    asks.map_or(Value::Null, |record| {
        json!({
            "request_id": record.question.id, "tool": record.question.tool,
            "asked_at": moment(record.asked_ms),
        })
    })
}
