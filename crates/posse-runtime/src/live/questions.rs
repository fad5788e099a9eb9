//! Questions to a person that do not belong to a tool call: those about commands in a skill's
//! instructions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use posse_protocol::{AgentId, Answer, Event, EventKind, Question, QuestionId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::live::session::Session;
use crate::live::setup::Approver;

/// Questions that are not answered yet.
#[derive(Default)]
pub(crate) struct Questions(Mutex<HashMap<QuestionId, OpenQuestion>>);

/// A question that waits for its answer.
struct OpenQuestion {
    /// Main agent of the session whose front end answers.
    root: AgentId,
    answer: oneshot::Sender<Answer>,
}

impl Questions {
    /// Locks the table of open questions.
    fn open(&self) -> MutexGuard<'_, HashMap<QuestionId, OpenQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers an answer. Returns it if nobody waits for it.
    pub(crate) fn answer(&self, question: QuestionId, answer: Answer) -> Option<Answer> {
        match self.open().remove(&question) {
            // The error is dropped: the asker may have been cancelled meanwhile.
            Some(open) => {
                let _ = open.answer.send(answer);
                None
            }
            None => Some(answer),
        }
    }

    /// Drops the questions of a session that nobody can answer any more; their askers get none.
    pub(crate) fn forget(&self, root: AgentId) {
        self.open().retain(|_, open| open.root != root);
    }
}

impl Questions {
    /// Asks a person. Returns none if nobody is there to answer, or if it is cancelled first.
    pub(crate) async fn ask(
        &self,
        agent: AgentId,
        session: &Session,
        question: Question,
        cancel: &CancellationToken,
    ) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        let id = question.id;
        self.open().insert(
            id,
            OpenQuestion {
                root: session.root,
                answer,
            },
        );
        // Checked after the question is registered: a front end that leaves in between either drops
        // the question or is seen here.
        let attended = session.approver() != Approver::Nobody;
        let heard = async {
            let event = Event {
                agent,
                kind: EventKind::ApprovalRequested(Box::new(question)),
            };
            if !session.events.send(event).await {
                return None;
            }
            answered.await.ok()
        };
        let answer = tokio::select! {
            heard = heard, if attended => heard,
            () = cancel.cancelled() => None,
            else => None,
        };
        if self.open().remove(&id).is_some() && attended {
            // Not waited for: a front end that does not read must not hold up the agent.
            session.events.try_send(Event {
                agent,
                kind: EventKind::ApprovalWithdrawn { question: id },
            });
        }
        answer
    }
}
