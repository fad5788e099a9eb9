//! Questions to a person, as text.

use posse_port::store::QuestionRecord;
use posse_protocol::{Display, Question};
use posse_tui::question::{QuestionDialog, about, choice, wanted};
use posse_tui::terminal::styled_text;
use posse_tui::text::{changed_file, diff};
use serde_json::{Value, json};

use crate::output::time::{age, moment};
use crate::output::transcript::shortened;
use crate::output::{one_line, tame};

/// Maximum length of the reason for a question, in characters.
const REASON: usize = 160;
/// Number of characters of a reason, or of what is asked about in a line.
const LONGEST: usize = 200;

/// Returns what a person looks at before they answer, safe to show: the change that the call would
/// make, or all of its input.
pub(crate) fn content(question: &Question) -> String {
    match &question.shown {
        Some(Display::Diff(change)) if choice::of(question).is_none() => {
            let mut lines = vec![changed_file(change)];
            lines.extend(diff(change, usize::MAX));
            styled_text(&lines)
        }
        _ => plain_content(question),
    }
}

/// Returns the same for a file or a pipe: a change as programs read it.
pub(crate) fn plain_content(question: &Question) -> String {
    if let Some(choices) = choice::of(question) {
        return choices.questions.iter().map(choice::lines).collect();
    }
    match &question.shown {
        Some(Display::Diff(change)) => tame(&change.to_string()),
        Some(Display::Text { text }) => {
            format!("{}\n{}", tame(&wanted(question)), tame(text))
        }
        None => tame(&wanted(question)),
    }
}

/// Returns the question of a dialog in full, from `who`: a person must not allow what they do not
/// see.
pub(crate) fn shown(dialog: &QuestionDialog, who: Option<&str>) -> String {
    if dialog.is_choice() {
        let who = who.unwrap_or("the agent");
        return format!("? {who} asks\n{}", dialog.prompt());
    }
    let who = who.map(|who| format!("{who}: ")).unwrap_or_default();
    let question = dialog.question();
    format!(
        "? {who}{}\n  │ {}\n  ({})\n{}",
        one_line(&question.tool),
        content(question).trim_end().replace('\n', "\n  │ "),
        one_line(&shortened(&question.why, REASON)),
        dialog.prompt(),
    )
}

/// Returns a question in a line, with the command that answers it.
pub(crate) fn note(question: &Question) -> String {
    let who = tame(question.from.as_deref().unwrap_or("the main agent"));
    let what = one_line(&shortened(&tame(&about(question)), LONGEST));
    let id = short(question);
    if choice::of(question).is_some() {
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
