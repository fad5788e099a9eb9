//! The questions that a person answers at the terminal, one after the other.

use std::collections::VecDeque;

use posse_protocol::{AgentId, Answer, Command, Question, QuestionId};

use super::keyboard::Typing;
use super::question_dialog::{DialogStep, QuestionDialog};
use crate::config::kept_rules::NewRules;
use crate::output::tame;

/// Open questions; the first one is shown.
#[derive(Default)]
pub(crate) struct TerminalQuestions {
    open: VecDeque<QuestionDialog>,
}

/// What comes of something typed.
pub(crate) enum TerminalStep {
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

impl TerminalQuestions {
    /// Adds a question, and returns what is shown if it is the only one.
    pub(crate) fn ask(&mut self, agent: AgentId, question: Question) -> Option<String> {
        self.open.push_back(QuestionDialog::new(agent, question));
        match self.open.len() {
            1 => self.shown(),
            _ => None,
        }
    }

    /// Returns the first question in full.
    pub(crate) fn shown(&self) -> Option<String> {
        let first = self.open.front()?;
        let from = first.from().map(tame);
        let shown = first.shown(from.as_deref());
        Some(match self.open.len() - 1 {
            0 => shown,
            more => format!("{shown} · {more} more after this"),
        })
    }

    /// Returns how the question that is shown is answered; `None` if there is none.
    pub(crate) fn typing(&self) -> Option<Typing> {
        self.open.front().map(QuestionDialog::typing)
    }

    /// Drops a question that needs no answer any more. Returns true if it was shown.
    pub(crate) fn withdraw(&mut self, question: QuestionId) -> bool {
        let is_shown = self.open.front().is_some_and(|it| it.id() == question);
        self.open.retain(|dialog| dialog.id() != question);
        is_shown
    }

    /// Drops all questions: the person has something else in mind.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// Handles something typed; `None` if nothing is asked.
    pub(crate) fn typed(&mut self, typed: &str) -> Option<TerminalStep> {
        let dialog = self.open.front_mut()?;
        let (agent, question) = (dialog.agent, dialog.id());
        // Keys that come together are pasted, or a key that is no letter: no clear answer.
        let is_unclear = dialog.typing() == Typing::Key && typed.chars().count() != 1;
        let answer = match dialog.typed(if is_unclear { "" } else { typed }) {
            DialogStep::Ask(next) => return Some(TerminalStep::Ask(next)),
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
        Some(TerminalStep::Answered {
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
