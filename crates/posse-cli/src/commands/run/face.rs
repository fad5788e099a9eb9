//! How a run is shown: as text, as one object, or as lines.

use posse_protocol::EventKind;
use serde_json::{Value, json};
use uuid::Uuid;

use super::lines::Lines;
use super::result;
use super::text::{self, Text};
use crate::output::{json_line, tame};
use crate::session::Facts;

/// Something to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// On stdout, as it is.
    Out(String),
    /// On stderr, a line.
    Note(String),
}

/// One of the forms.
pub(super) enum Face {
    Text(Text),
    Json(Facts),
    Lines(Lines),
}

impl Face {
    /// What is written before anything happens.
    pub(super) fn greet(&self) -> Vec<Said> {
        match self {
            Self::Lines(lines) => vec![line(&lines.init())],
            Self::Text(_) | Self::Json(_) => Vec::new(),
        }
    }

    /// What is written of an event.
    pub(super) fn event(&mut self, event: &EventKind) -> Vec<Said> {
        match (self, event) {
            (Self::Text(text), event) => text.event(event),
            (Self::Lines(lines), event) => lines.event(event).iter().map(line).collect(),
            (Self::Json(facts), EventKind::Ended(end)) => {
                let mut result = result::result(facts.session, end);
                result["uuid"] = json!(Uuid::now_v7());
                vec![line(&result)]
            }
            (Self::Json(_), EventKind::Retry(retry)) => vec![Said::Note(text::failed_attempt(retry, ""))],
            (Self::Json(_), _) => Vec::new(),
        }
    }

    /// What is written of a line of input that could not be read.
    pub(super) fn not_understood(&self, what: &str) -> Vec<Said> {
        let note = Said::Note(format!("input: {}", tame(what)));
        match self {
            Self::Lines(lines) => vec![note, line(&lines.not_understood(what))],
            Self::Text(_) | Self::Json(_) => vec![note],
        }
    }
}

/// An object on a line of its own.
pub(super) fn line(value: &Value) -> Said {
    Said::Out(json_line(value))
}
