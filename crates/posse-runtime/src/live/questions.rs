//! Questions that are no call's own: about commands in a skill's instructions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use posse_protocol::{AgentId, Answer, Event, EventKind, Question};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::live::session::Session;
use crate::live::setup::Approver;

/// What is asked and not answered yet.
#[derive(Default)]
pub(crate) struct Questions(Mutex<HashMap<(AgentId, String), OpenQuestion>>);

struct OpenQuestion {
    root: AgentId,
    answer: oneshot::Sender<Answer>,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, HashMap<(AgentId, String), OpenQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an answer; gives it back if nobody waits for it.
    pub(crate) fn answer(&self, agent: AgentId, call: &str, answer: Answer) -> Option<Answer> {
        match self.open().remove(&(agent, call.to_owned())) {
            // Who has asked may have been told to end meanwhile.
            Some(open) => {
                let _ = open.answer.send(answer);
                None
            }
            None => Some(answer),
        }
    }

    /// Nobody can answer questions of this session any more.
    pub(crate) fn forget(&self, root: AgentId) {
        self.open().retain(|_, open| open.root != root);
    }
}

impl Questions {
    /// Asks a person; none if nobody is there, or it must end first.
    pub(crate) async fn ask(
        &self,
        agent: AgentId,
        session: &Session,
        question: Question,
        cancel: &CancellationToken,
    ) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        let call = question.call.clone();
        self.open().insert(
            (agent, call.clone()),
            OpenQuestion {
                root: session.root,
                answer,
            },
        );
        // Whoever could answer may have left just before.
        let attended = session.approver() == Approver::FrontEnd;
        let heard = async {
            session
                .events
                .send(Event {
                    agent,
                    kind: EventKind::ApprovalRequested(question),
                })
                .await
                .ok()?;
            answered.await.ok()
        };
        let answer = tokio::select! {
            heard = heard, if attended => heard,
            () = cancel.cancelled() => None,
            else => None,
        };
        if self.open().remove(&(agent, call.clone())).is_some() && attended {
            // Who does not read does not hold up anybody.
            let _ = session.events.try_send(Event {
                agent,
                kind: EventKind::ApprovalWithdrawn { call },
            });
        }
        answer
    }
}
