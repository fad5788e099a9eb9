//! `posse requests show`.

use std::process::ExitCode;

use posse_port::store::{QuestionRecord, QuestionState, Store};
use posse_protocol::{Answer, Answerer, RuleScope};
use posse_tui::question::{choice, suggestions};

use super::list::object;
use super::meant::{self, Request};
use crate::output::time::{age, now_ms};
use crate::output::{json_line, print, tame, width};
use crate::present::question;

/// Show one request in full: who asks, what would run, and what became of it.
#[derive(clap::Args)]
pub(super) struct ShowRequest {
    /// Request; a unique prefix of its ID is enough
    #[arg(value_name = "REQUEST")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ShowRequest {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let request = meant::meant(store, &self.id).await?;
        let text = match self.json {
            true => json_line(&object(&request)),
            false => at_length(&request),
        };
        print(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn at_length(request: &Request) -> String {
    let ago = |at_ms: i64| age(now_ms().saturating_sub(at_ms));
    let (kind, from, id) = (request.kind(), request.from(), request.id());
    let asked = ago(request.asked_ms());
    let head = format!("{kind} of {from}, asked {asked} ago\n{id}\n");
    match request {
        Request::Plan(_, plan) => format!("{head}\n  {}\n", indented(&plan.text)),
        Request::Question(record) => {
            let asked = &record.question;
            // Already safe to show, and in colours.
            let content = match width() {
                Some(_) => question::content(asked),
                None => question::plain_content(asked),
            };
            let what = content.trim_end().replace('\n', "\n  ");
            let (tool, why) = (tame(&asked.tool), tame(&asked.why));
            let always = always(record);
            format!(
                "{head}{tool}:\n  {what}\nwhy: {why}\n{always}{}\n",
                state(record)
            )
        }
    }
}

/// Returns the rules that may be accepted, with the command that does.
fn always(record: &QuestionRecord) -> String {
    let asked = &record.question;
    match (record.state, suggestions(asked)) {
        (_, rules) if rules.is_empty() => String::new(),
        (QuestionState::Open, rules) => format!(
            "to allow such calls from now on, `posse requests answer {} --always` (--rule NUMBER):\n{rules}",
            question::short(asked)
        ),
        (_, rules) => format!("suggested rules:\n{rules}"),
    }
}

/// Returns a text whose later lines are indented.
fn indented(text: &str) -> String {
    tame(text.trim_end()).replace('\n', "\n  ")
}

/// Returns what became of a question.
fn state(record: &QuestionRecord) -> String {
    let left = |until_ms: i64| age(until_ms.saturating_sub(now_ms()));
    match (record.state, &record.answer) {
        (QuestionState::Open, _) => match record.question.until_ms {
            Some(until) if until > now_ms() => {
                format!("waits for an answer, {} more", left(until))
            }
            Some(_) => "its time is over, and it will be denied".into(),
            None => "waits for an answer".into(),
        },
        (QuestionState::Withdrawn, None) => {
            "withdrawn: its call was stopped or lost before an answer came".into()
        }
        (state, Some(given)) => {
            let (word, more) = match &given.answer {
                Answer::Allow {
                    input: Some(input), ..
                } if choice::of(&record.question).is_some() => {
                    let choices = choice::of(&record.question);
                    let told = choices.and_then(|choices| {
                        let answers = choices.answered(input).ok()?;
                        Some(choice::answered(&choices, &answers))
                    });
                    let told = told.unwrap_or_default();
                    ("answered", format!(":\n{}", told.trim_end()))
                }
                Answer::Allow { input, always } => {
                    let other = input.as_ref().map(|input| input.get());
                    let other = other.map(|input| format!(" with another input: {}", tame(input)));
                    let rules = always.as_ref().map(|accepted| {
                        let scope = match accepted.scope {
                            RuleScope::Session => "in the session",
                            RuleScope::Directory => "in its directory",
                            RuleScope::Everywhere => "everywhere",
                        };
                        format!(", and {} {scope}", tame(&accepted.rules.join(", ")))
                    });
                    let more = [other, rules].into_iter().flatten().collect();
                    ("allowed", more)
                }
                Answer::Approve { plan, mode } => {
                    let mode = mode.map(|mode| format!(", to continue in {mode}"));
                    let plan = plan.as_deref().map(indented);
                    let plan = plan.map(|plan| format!(", with this plan:\n  {plan}"));
                    let more = [mode, plan].into_iter().flatten().collect();
                    ("approved", more)
                }
                Answer::Deny { message, .. } => ("denied", format!(": {}", tame(message))),
            };
            let by = match given.by {
                Answerer::Person => "by a person",
                Answerer::Nobody => "because nobody answered",
            };
            let what = match state {
                QuestionState::Answered => "; the agent has not heard of it yet",
                QuestionState::Withdrawn => "; its call was stopped before that was carried out",
                QuestionState::Open | QuestionState::Done => "",
            };
            format!("{word} {by}{more}{what}")
        }
        (state, None) => state.to_string(),
    }
}
