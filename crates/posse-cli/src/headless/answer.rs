//! What commands that ask a model share: where the question comes from, and how the reply is shown.

use std::io::{self, IsTerminal, Read};

use anyhow::Context;
use posse_port::model::ModelEvent;
use posse_protocol::StopReason;
use tokio_util::sync::CancellationToken;

use crate::error::Advised;
use crate::output::{print, say, say_to_person, tame};

/// How the reply is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// As it comes, on a terminal.
    Live,
    /// In one piece: a program that reads a pipe must not get what a failed attempt had said.
    Whole,
    /// One object, whatever happens.
    Json,
}

impl AnswerForm {
    /// Returns what is wanted here.
    pub(crate) fn of(json: bool) -> Self {
        match (json, io::stdout().is_terminal()) {
            (true, _) => Self::Json,
            (false, true) => Self::Live,
            (false, false) => Self::Whole,
        }
    }
}

/// Returns the question: an argument, or standard input. `example` is a command line that has one.
pub(crate) fn question(text: Option<&str>, example: &str) -> anyhow::Result<String> {
    let text = match text {
        Some(text) if text != "-" => text.to_owned(),
        _ => {
            if io::stdin().is_terminal() {
                say_to_person("reading the question from the terminal; finish with Ctrl-D");
            }
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .context("cannot read standard input as text")?;
            text
        }
    };
    if text.trim().is_empty() {
        anyhow::bail!(Advised {
            what: "there is no question".into(),
            advice: example.into()
        });
    }
    Ok(text)
}

/// Says why the model stopped, if it is not that it was done.
pub(crate) fn say_stop(stop: &StopReason) {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse => {}
        StopReason::MaxTokens => say("the reply was cut at its limit"),
        StopReason::Refusal => say("the model declined to answer"),
        StopReason::PauseTurn => say("the provider paused the reply"),
        StopReason::ContextFull => say("the context window is full"),
        StopReason::Other(word) => say(&format!("the model stopped: {}", tame(word))),
    }
}

/// What has been shown of the reply.
pub(crate) struct AnswerWriter {
    live: bool,
    /// Whether this attempt has shown any text.
    anything: bool,
    at_line_start: bool,
    /// Why the reply could not be written out.
    pub(crate) unread: Option<io::Error>,
}

impl AnswerWriter {
    pub(crate) fn new(form: AnswerForm) -> Self {
        Self {
            live: form == AnswerForm::Live,
            anything: false,
            at_line_start: true,
            unread: None,
        }
    }

    pub(crate) fn event(&mut self, event: ModelEvent<'_>, cancel: &CancellationToken) {
        match event {
            ModelEvent::Text(text) if self.live && !text.is_empty() => {
                self.anything = true;
                self.at_line_start = text.ends_with('\n');
                if let Err(error) = print(tame(text).as_bytes()) {
                    // Nobody reads any more, so nothing more need be paid for.
                    self.unread = Some(error);
                    cancel.cancel();
                }
            }
            // A reply before this one was not the last.
            ModelEvent::Started { .. } => self.end_line(),
            ModelEvent::Retry {
                attempt,
                wait,
                error,
            } => {
                self.end_line();
                let void = if std::mem::take(&mut self.anything) {
                    ", and its partial reply is discarded"
                } else {
                    ""
                };
                say(&format!(
                    "attempt {attempt} failed{void}: {}; next in {:.1} s",
                    tame(&error.to_string()),
                    wait.as_secs_f64()
                ));
            }
            _ => {}
        }
    }

    pub(crate) fn end_line(&mut self) {
        if self.live && !self.at_line_start {
            self.at_line_start = true;
            // The reply is complete either way; a closed pipe has been noticed before.
            let _ = print(b"\n");
        }
    }
}
