//! Questions of all agents, oldest first, one of which is highlighted and shown in full.
//!
//! A question is answered by a chord, or by keys after a person has opened it, and by neither within
//! a moment of its coming under the cursor: what was pressed then was not meant for it.

use posse_protocol::{AgentId, Answer, QuestionId};

use super::cursor::ListCursor;
use super::facts::BoardQuestion;
use crate::conversation::SETTLE_MS;
use crate::edit::EditBuffer;
use crate::question::{DialogStep, QuestionDialog, Typing};

/// Time for which a question that was answered is not shown, though it is still among those that
/// were read.
const ANSWERED_MS: i64 = 5000;

/// A question that waits.
pub(super) struct WaitingQuestion {
    pub(super) dialog: QuestionDialog,
    /// When it was asked.
    pub(super) asked_ms: i64,
    /// What may be typed now.
    pub(super) prompt: String,
    /// What the person writes to it.
    pub(super) words: EditBuffer,
}

/// All questions that wait.
#[derive(Default)]
pub(super) struct QuestionList {
    waiting: Vec<WaitingQuestion>,
    cursor: ListCursor<QuestionId>,
    /// True if the person has opened the highlighted one: keys are for it.
    is_open: bool,
    /// Since when the highlighted one is on the screen as it is.
    since_ms: i64,
    /// Questions that were answered here, and when.
    answered: Vec<(QuestionId, i64)>,
}

impl QuestionList {
    /// Replaces all questions. Returns what the person wrote to an open one that is gone.
    pub(super) fn set(
        &mut self,
        questions: Vec<BoardQuestion>,
        now_ms: i64,
    ) -> Option<(AgentId, String)> {
        self.answered
            .retain(|(_, at)| now_ms.saturating_sub(*at) < ANSWERED_MS);
        let before = self.cursor.key().copied();
        let mut old = std::mem::take(&mut self.waiting);
        let mut is_changed = false;
        for asked in questions {
            let id = asked.question.id;
            let is_known = |known: &WaitingQuestion| known.dialog.id() == id;
            let is_answered = self.answered.iter().any(|(answered, _)| *answered == id);
            if is_answered || self.waiting.iter().any(is_known) {
                continue;
            }
            let known = old.iter().position(is_known).map(|at| old.remove(at));
            let same = known.filter(|known| *known.dialog.question() == asked.question);
            is_changed |= same.is_none() && before == Some(id);
            self.waiting.push(same.unwrap_or_else(|| waiting(asked)));
        }
        let keys: Vec<QuestionId> = self.waiting.iter().map(|it| it.dialog.id()).collect();
        self.cursor.refresh(&keys);
        let lost = old.into_iter().find(|it| Some(it.dialog.id()) == before);
        let lost = lost.filter(|_| self.is_open);
        if is_changed || self.cursor.key().copied() != before {
            self.look(now_ms);
        }
        lost.map(|lost| (lost.dialog.agent, lost.words.expanded()))
    }

    pub(super) fn all(&self) -> &[WaitingQuestion] {
        &self.waiting
    }

    pub(super) fn count(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn cursor(&self) -> &ListCursor<QuestionId> {
        &self.cursor
    }

    pub(super) fn highlighted(&self) -> Option<&WaitingQuestion> {
        self.waiting.get(self.cursor.at())
    }

    /// Returns what the person writes to the open question.
    pub(super) fn words(&mut self) -> Option<&mut EditBuffer> {
        let at = self.cursor.at();
        self.waiting.get_mut(at).map(|it| &mut it.words)
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns how the open question is answered.
    pub(super) fn typing(&self) -> Option<Typing> {
        let open = self.highlighted().filter(|_| self.is_open);
        open.map(|it| it.dialog.typing())
    }

    /// Returns true if the highlighted question has been on the screen for a moment.
    pub(super) fn is_settled(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.since_ms) >= SETTLE_MS as i64
    }

    /// The person begins to look at the highlighted question.
    pub(super) fn look(&mut self, now_ms: i64) {
        self.since_ms = now_ms;
        self.close();
    }

    /// Highlights another question.
    pub(super) fn go(&mut self, number: usize, height: usize, now_ms: i64) {
        let at = number.min(self.waiting.len().saturating_sub(1));
        let key = self.waiting.get(at).map(|it| it.dialog.id());
        if key.as_ref() != self.cursor.key() {
            self.look(now_ms);
        }
        self.cursor.go(key, at, (self.waiting.len(), height));
    }

    /// Returns the number of the first question of an agent.
    pub(super) fn of(&self, agent: AgentId) -> Option<usize> {
        self.waiting.iter().position(|it| it.dialog.agent == agent)
    }

    /// Opens the highlighted question, so that keys are for it.
    pub(super) fn open(&mut self, now_ms: i64) -> bool {
        self.is_open = self.is_settled(now_ms) && self.highlighted().is_some();
        self.is_open
    }

    /// Leaves the question where it is; keys are for the board again.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        let at = self.cursor.at();
        if let Some(it) = self.waiting.get_mut(at) {
            it.dialog.restart();
            it.prompt = it.dialog.prompt();
        }
    }

    /// The list has this many rows of the screen.
    pub(super) fn fit(&mut self, height: usize) {
        self.cursor.fit(self.waiting.len(), height);
    }

    /// Tells the highlighted question something. Returns its answer if that is one.
    pub(super) fn tell(
        &mut self,
        words: &str,
        now_ms: i64,
    ) -> Option<(AgentId, QuestionId, Answer)> {
        if !self.is_settled(now_ms) {
            return None;
        }
        let at = self.cursor.at();
        let it = self.waiting.get_mut(at)?;
        match it.dialog.typed(words) {
            DialogStep::Ask(prompt) => {
                it.prompt = prompt;
                None
            }
            DialogStep::Answered(answer) => {
                let it = self.waiting.remove(at);
                let id = it.dialog.id();
                self.answered.push((id, now_ms));
                let keys: Vec<QuestionId> = self.waiting.iter().map(|it| it.dialog.id()).collect();
                self.cursor.refresh(&keys);
                self.look(now_ms);
                Some((it.dialog.agent, id, answer))
            }
        }
    }
}

fn waiting(asked: BoardQuestion) -> WaitingQuestion {
    let dialog = QuestionDialog::new(asked.agent, asked.question);
    WaitingQuestion {
        prompt: dialog.prompt(),
        dialog,
        asked_ms: asked.asked_ms,
        words: EditBuffer::new(),
    }
}
