//! What commands that ask a model share: reading the question and showing the reply.

use std::io::{self, IsTerminal, Read};

use anyhow::Context;
use posse_port::model::ModelEvent;
use posse_protocol::StopReason;
use tokio_util::sync::CancellationToken;

use crate::error::Advised;
use crate::output::{print, say, say_to_person, tame};

/// How the reply is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// As it arrives, on a terminal.
    Live,
    /// In one piece: a program that reads a pipe must not get the output of a failed attempt.
    Whole,
    /// One object, whatever happens.
    Json,
}

impl AnswerForm {
    /// Returns the form for this process's output.
    pub(crate) fn of(json: bool) -> Self {
        match (json, io::stdout().is_terminal()) {
            (true, _) => Self::Json,
            (false, true) => Self::Live,
            (false, false) => Self::Whole,
        }
    }
}

/// Returns the question, from the argument or from standard input. `example` is a command line
/// with one.
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

/// Prints why the model stopped, unless it was done.
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

/// Prints a reply and remembers what was shown.
pub(crate) struct AnswerWriter {
    live: bool,
    /// The current attempt has shown text.
    anything: bool,
    at_line_start: bool,
    /// Why the reply could not be printed.
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

    /// Handles an event of the model call. Cancels the call if nobody reads the output.
    pub(crate) fn event(&mut self, event: ModelEvent<'_>, cancel: &CancellationToken) {
        match event {
            ModelEvent::Text(text) if self.live && !text.is_empty() => {
                self.anything = true;
                self.at_line_start = text.ends_with('\n');
                if let Err(error) = print(tame(text).as_bytes()) {
                    // Nobody reads any more, so that nothing more needs to be paid for.
                    self.unread = Some(error);
                    cancel.cancel();
                }
            }
            // A new reply: the one before was not the last.
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

    /// Ends the current line, so that notes start on a new one.
    pub(crate) fn end_line(&mut self) {
        if self.live && !self.at_line_start {
            self.at_line_start = true;
            // The reply is complete either way; a closed pipe was noticed before.
            let _ = print(b"\n");
        }
    }
}
