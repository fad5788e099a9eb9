//! Questions to a person that do not belong to a tool call: those about commands in a skill's
//! instructions. Whoever asks hands them to the agent, which stores them and hears the answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use posse_port::store::NewQuestion;
use posse_protocol::{AgentId, Answer, QuestionId};
use tokio::sync::oneshot;

/// Questions that agents have not taken yet.
#[derive(Default)]
pub(crate) struct SideQuestions(Mutex<HashMap<AgentId, Vec<SideQuestion>>>);

/// A question that waits for its answer.
pub(crate) struct SideQuestion {
    pub(crate) asked: NewQuestion,
    /// Closed once its asker does not wait any more.
    pub(crate) answer: oneshot::Sender<Answer>,
}

impl SideQuestion {
    pub(crate) fn id(&self) -> QuestionId {
        self.asked.question.id
    }
}

impl SideQuestions {
    fn waiting(&self) -> MutexGuard<'_, HashMap<AgentId, Vec<SideQuestion>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a question for an agent, which must be woken.
    pub(crate) fn put(&self, agent: AgentId, question: SideQuestion) {
        self.waiting().entry(agent).or_default().push(question);
    }

    /// Takes the questions of an agent.
    pub(crate) fn take(&self, agent: AgentId) -> Vec<SideQuestion> {
        self.waiting().remove(&agent).unwrap_or_default()
    }
}
