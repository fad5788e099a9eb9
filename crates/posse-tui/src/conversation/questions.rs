//! Questions of all agents of the session, in one queue: the oldest is shown.
//!
//! A question never takes focus. It is answered by a chord, or by keys after a person has opened
//! it, and by neither within a moment of its appearing: what was typed then was not meant for it.

use std::collections::VecDeque;

use posse_protocol::{AgentId, Answer, Question, QuestionId};

use crate::edit::EditBuffer;
use crate::question::{DialogStep, QuestionDialog, Typing};

/// Time after a question's appearing or changing in which nothing answers it.
pub const SETTLE_MS: u64 = 400;

/// A question that is open.
pub(crate) struct OpenQuestion {
    pub(crate) dialog: QuestionDialog,
    /// What may be typed now.
    pub(crate) prompt: String,
    /// What the person writes to it.
    pub(crate) words: EditBuffer,
    /// True if all of what it is about was printed, if the live region is too small for it.
    is_printed: bool,
    /// What may be typed, if it was printed since the live region is too small for it.
    printed_prompt: String,
}

/// The questions that wait for the person.
#[derive(Default)]
pub(crate) struct Questions {
    waiting: VecDeque<OpenQuestion>,
    /// True if the person has opened the first one: letters are for it.
    pub(crate) is_open: bool,
    /// Since when the first one is on the screen as it is.
    since_ms: u64,
}

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) agent: AgentId,
    pub(crate) question: QuestionId,
    pub(crate) answer: Answer,
}

impl Questions {
    /// Adds a question, unless it is there.
    pub(crate) fn ask(&mut self, agent: AgentId, question: Question, now_ms: u64) -> bool {
        let known = |open: &OpenQuestion| open.dialog.id() == question.id;
        if self.waiting.iter().any(known) {
            return false;
        }
        if self.waiting.is_empty() {
            self.since_ms = now_ms;
        }
        let dialog = QuestionDialog::new(agent, question);
        let prompt = dialog.prompt();
        self.waiting.push_back(OpenQuestion {
            dialog,
            prompt,
            words: EditBuffer::default(),
            is_printed: false,
            printed_prompt: String::new(),
        });
        true
    }

    /// Removes a question that needs no answer any more. Returns what the person wrote to it.
    pub(crate) fn withdraw(&mut self, id: QuestionId, now_ms: u64) -> Option<String> {
        let at = self
            .waiting
            .iter()
            .position(|open| open.dialog.id() == id)?;
        let open = self.waiting.remove(at)?;
        if at == 0 {
            self.changed(now_ms);
        }
        Some(open.words.expanded())
    }

    /// Returns what the person writes to the first question.
    pub(crate) fn words(&mut self) -> Option<&mut EditBuffer> {
        self.waiting.front_mut().map(|open| &mut open.words)
    }

    pub(crate) fn first(&self) -> Option<&OpenQuestion> {
        self.waiting.front()
    }

    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if somebody of these asks.
    pub(crate) fn asks(&self, agent: AgentId) -> bool {
        self.waiting.iter().any(|open| open.dialog.agent == agent)
    }

    /// Opens the first question, so that keys are for it.
    pub(crate) fn open(&mut self, now_ms: u64) -> bool {
        let may_open = self.is_settled(now_ms) && !self.waiting.is_empty();
        if may_open {
            self.is_open = true;
            self.since_ms = now_ms.saturating_sub(SETTLE_MS);
        }
        may_open
    }

    /// Returns true once for each question that is open.
    pub(crate) fn is_first_opening(&mut self) -> bool {
        let open = self.waiting.front_mut().filter(|_| self.is_open);
        open.is_some_and(|open| !std::mem::replace(&mut open.is_printed, true))
    }

    /// Returns true once for each thing that the open question asks.
    pub(crate) fn is_first_asking(&mut self) -> bool {
        let open = self.waiting.front_mut().filter(|_| self.is_open);
        open.is_some_and(|open| {
            let is_new = open.printed_prompt != open.prompt;
            open.printed_prompt.clone_from(&open.prompt);
            is_new
        })
    }

    /// Leaves the question where it is; keys are for the prompt again.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
        if let Some(open) = self.waiting.front_mut() {
            // The chords that it shows then are those of its beginning.
            open.dialog.restart();
            open.prompt = open.dialog.prompt();
        }
    }

    /// Shows the next question first.
    pub(crate) fn skip(&mut self, now_ms: u64) {
        if self.waiting.len() > 1 {
            let is_open = self.is_open;
            self.close();
            self.waiting.rotate_left(1);
            self.changed(now_ms);
            self.is_open = is_open;
        }
    }

    /// Returns how the open question is answered.
    pub(crate) fn typing(&self) -> Option<Typing> {
        let first = self.waiting.front().filter(|_| self.is_open);
        first.map(|open| open.dialog.typing())
    }

    /// Returns true if the first question may be answered now.
    pub(crate) fn is_settled(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) >= SETTLE_MS
    }

    /// Tells the first question something. Returns its answer if that is one.
    pub(crate) fn tell(&mut self, words: &str, now_ms: u64) -> Option<Answered> {
        if !self.is_settled(now_ms) {
            return None;
        }
        let open = self.waiting.front_mut()?;
        match open.dialog.typed(words) {
            DialogStep::Ask(prompt) => {
                open.prompt = prompt;
                None
            }
            DialogStep::Answered(answer) => {
                let open = self.waiting.pop_front()?;
                self.changed(now_ms);
                Some(Answered {
                    agent: open.dialog.agent,
                    question: open.dialog.id(),
                    answer,
                })
            }
        }
    }

    /// Another question is first: it must be seen before it can be answered.
    fn changed(&mut self, now_ms: u64) {
        self.since_ms = now_ms;
        self.close();
    }
}
