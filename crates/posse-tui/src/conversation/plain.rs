//! A conversation in lines alone: no cursor moves and nothing that changes by itself, for screen
//! readers, dumb terminals and tiny windows. Everything is done by words: `/help` lists them.

use posse_protocol::{PermissionMode, QuestionId};
use ratatui_core::style::Style;
use ratatui_core::text::Line;

use super::Conversation;
use super::view::question_in_full;
use crate::terminal::text_bytes;
use crate::text::one_line;

/// Number of items of a list that are printed.
const LISTED: usize = 20;

/// What was printed last.
#[derive(Default)]
pub struct PlainView {
    /// The question that was shown, and how far its dialog was.
    question: Option<(QuestionId, String)>,
    was_working: bool,
    mode: Option<PermissionMode>,
}

impl PlainView {
    /// Returns what is new, as bytes to print; a bell rings at a question and when the agent rests.
    pub fn news(&mut self, it: &mut Conversation) -> Vec<u8> {
        let mut lines = it.take_printed();
        let mut rings = false;
        if self.mode.is_none() {
            lines.push(Line::raw("/help lists what can be typed"));
        }
        if let Some(notice) = it.notice.take() {
            lines.push(Line::raw(one_line(&notice)));
        }
        if let Some(chooser) = it.chooser.take() {
            // There are no keys to choose with.
            let found = chooser.picker.fitting_words(LISTED);
            lines.extend(found.map(|words| Line::raw(one_line(words))));
        }
        let first = it.questions.first();
        let question = first.map(|open| (open.dialog.id(), open.prompt.clone()));
        if question != self.question {
            if question.is_some() {
                lines.extend(question_in_full(it));
                lines.push(Line::raw(
                    "answer with /answer and one of these, for example /answer y",
                ));
                rings = true;
            }
            self.question = question;
        }
        let mode = it.mode();
        let before = self.mode.replace(mode);
        if before.is_some_and(|before| before != mode) {
            lines.push(Line::raw(format!("mode: {mode}")));
        }
        let is_working = it.is_working();
        if self.was_working && !is_working {
            lines.push(Line::styled("ready", Style::new().dim()));
            rings = true;
        }
        self.was_working = is_working;
        let mut bytes = text_bytes(&lines);
        if rings {
            bytes.push(b'\x07');
        }
        bytes
    }
}
