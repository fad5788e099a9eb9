//! The questions that a person answers, at a terminal or in a pane, one after the other.

use std::collections::VecDeque;

use posse_protocol::{AgentId, Answer, Command, Question, QuestionId};
use posse_tui::question::{DialogStep, QuestionDialog};

use crate::config::kept_rules::NewRules;
use crate::output::tame;

/// Open questions; the first one is shown.
#[derive(Default)]
pub(crate) struct QuestionQueue {
    open: VecDeque<QuestionDialog>,
    /// Another screen shows them meanwhile.
    is_hidden: bool,
}

/// What comes of something typed.
pub(crate) enum QueueStep {
    /// It is not answered yet; this is shown next.
    Ask(String),
    Answered {
        command: Command,
        /// What was done, in words.
        note: String,
        /// Rules that are to be kept for later sessions.
        rules: Option<NewRules>,
    },
}

impl QuestionQueue {
    /// Returns a queue of which nothing is shown before [`reveal`](Self::reveal).
    pub(crate) fn hidden() -> Self {
        Self {
            open: VecDeque::new(),
            is_hidden: true,
        }
    }

    /// Shows its questions from now on.
    pub(crate) fn reveal(&mut self) {
        self.is_hidden = false;
    }

    /// Adds a question. Returns true if it is the only one, and so to be shown.
    pub(crate) fn ask(&mut self, agent: AgentId, question: Question) -> bool {
        self.open.push_back(QuestionDialog::new(agent, question));
        self.open.len() == 1 && !self.is_hidden
    }

    /// Returns the question that is shown.
    pub(crate) fn first(&self) -> Option<&QuestionDialog> {
        self.open.front().filter(|_| !self.is_hidden)
    }

    /// Returns the number of questions that wait behind it.
    pub(crate) fn behind(&self) -> usize {
        self.open.len().saturating_sub(1)
    }

    /// Drops a question that needs no answer any more. Returns true if it was shown.
    pub(crate) fn withdraw(&mut self, question: QuestionId) -> bool {
        let is_shown = self.first().is_some_and(|it| it.id() == question);
        self.open.retain(|dialog| dialog.id() != question);
        is_shown
    }

    /// Drops all questions: the person has something else in mind.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// Handles something typed; `None` if nothing is asked.
    pub(crate) fn typed(&mut self, typed: &str) -> Option<QueueStep> {
        let dialog = self.open.front_mut().filter(|_| !self.is_hidden)?;
        let (agent, question) = (dialog.agent, dialog.id());
        let answer = match dialog.typed(typed) {
            DialogStep::Ask(next) => return Some(QueueStep::Ask(next)),
            DialogStep::Answered(answer) => answer,
        };
        let note = said(&answer);
        let rules = match &answer {
            Answer::Allow {
                always: Some(accepted),
                ..
            } => NewRules::of_answer(accepted),
            _ => None,
        };
        self.open.pop_front();
        let command = Command::Answer {
            agent,
            question,
            answer,
        };
        Some(QueueStep::Answered {
            command,
            note,
            rules,
        })
    }
}

/// Returns an answer in words.
fn said(answer: &Answer) -> String {
    match answer {
        Answer::Allow {
            always: None,
            input: None,
        } => "→ allowed once".into(),
        Answer::Allow {
            always: None,
            input: Some(_),
        } => "→ answered".into(),
        Answer::Allow {
            always: Some(accepted),
            ..
        } => format!("→ always allowed: {}", tame(&accepted.rules.join(", "))),
        Answer::Approve { mode: None, .. } => "→ approved".into(),
        Answer::Approve {
            mode: Some(mode), ..
        } => format!("→ approved, with {mode}"),
        Answer::Deny { .. } => "→ denied".into(),
    }
}
