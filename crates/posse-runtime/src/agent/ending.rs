//! The end of a run, as it is reported to its starter.

use posse_protocol::{Limit, Notification, RunFacts, RunStatus, RunUsage};
use uuid::Uuid;

use crate::live::registry::By;
use posse_port::tool::RunReport;

/// Maximum size of a result in a message, in bytes of JSON; all of it is in the output file.
const MOST_BYTES: usize = 128 * 1024;

/// Maximum size of the description and of the summary, in bytes.
const MOST_LINE: usize = 1024;
/// Maximum size of the error, in bytes.
const MOST_ERROR: usize = 8 * 1024;

/// Returns the end of a sub-agent's run.
pub(crate) fn of_agent(
    facts: &RunFacts,
    run: Uuid,
    (status, error): (RunStatus, Option<String>),
    text: &str,
    usage: RunUsage,
) -> Notification {
    let summary = format!("{} {}", facts.description, status.as_str());
    ended(facts, run, (status, summary, error), text, usage)
}

/// Returns the end of a background command.
pub(crate) fn of_shell(facts: &RunFacts, report: &RunReport, usage: RunUsage) -> Notification {
    let summary = format!("{}: {}", facts.description, report.summary);
    let error = (report.status != RunStatus::Completed).then(|| report.summary.clone());
    ended(
        facts,
        facts.task,
        (report.status, summary, error),
        &report.result,
        usage,
    )
}

/// Returns the end of a run with every text cut to its limit.
fn ended(
    facts: &RunFacts,
    run: Uuid,
    (status, summary, error): (RunStatus, String, Option<String>),
    text: &str,
    usage: RunUsage,
) -> Notification {
    let short = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    let kept = fitting(text, MOST_BYTES);
    let mut result = text[..kept].to_owned();
    if kept < text.len() {
        result.push_str(&format!(
            "\n[… {} more bytes are in the output file]",
            text.len() - kept
        ));
    }
    Notification {
        task: facts.task,
        run,
        call: facts.call.clone(),
        kind: facts.kind,
        description: short(&facts.description, MOST_LINE),
        output_file: facts.output_file.clone(),
        status,
        summary: short(&summary, MOST_LINE),
        result,
        error: error.map(|error| short(&error, MOST_ERROR)),
        usage,
        model: String::new(),
        value: None,
        worktree: None,
    }
}

/// Returns the length of the longest beginning of a text that takes at most `most` bytes in JSON.
fn fitting(text: &str, most: usize) -> usize {
    let mut taken = 0;
    let too_much = |(_, c): &(usize, char)| {
        taken += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        taken > most
    };
    text.char_indices()
        .find(too_much)
        .map_or(text.len(), |(at, _)| at)
}

/// Returns the end of a run that broke off.
pub(crate) fn broken(facts: &RunFacts, run: Uuid, error: String) -> Notification {
    of_agent(
        facts,
        run,
        (RunStatus::Failed, Some(error)),
        "",
        RunUsage::default(),
    )
}

/// Returns the reason for a run that a limit stopped.
pub(crate) fn limit(limit: Limit) -> String {
    match limit {
        Limit::Turns => "it reached its limit of turns",
        Limit::Budget => "its budget is used up",
        Limit::Output => "its last reply was cut at its length limit",
        Limit::Tasks => "its team has open tasks",
        Limit::Hook => "a hook has ended its run",
        Limit::Repetition => "it repeated a call that failed in the same way each time",
        Limit::Context => "its conversation fills the model's context window",
    }
    .to_owned()
}

/// Returns the reason for a run that was stopped.
pub(crate) fn stopped(by: By) -> String {
    match by {
        By::Person => "the user stopped it",
        By::Agent(_) => "it was stopped",
        By::Above { .. } => "its parent was stopped",
        By::Shutdown => "posse was stopped",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_fits_into_a_message_whatever_it_is() {
        for text in [
            "\u{1b}".repeat(400_000),
            "\"\\\n".repeat(200_000),
            "ü".repeat(300_000),
        ] {
            let kept = fitting(&text, MOST_BYTES);
            let told = serde_json::to_string(&text[..kept]).unwrap();
            assert!(
                told.len() <= MOST_BYTES + 2 && told.len() > MOST_BYTES - 8,
                "{}",
                told.len()
            );
        }
        assert_eq!(fitting("short", MOST_BYTES), 5);
    }
}
