//! Questions to people, which wait in the store: they outlive the process that asks, and any process
//! can answer them.

use std::fmt;

use posse_protocol::{AgentId, GivenAnswer, Question, QuestionId, RealmId};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::CallKey;

/// Returns the id of an agent's question. It follows from what the question is about, so that a
/// question that is asked again after a crash is the same one.
pub fn question_id(agent: AgentId, about: &str) -> QuestionId {
    let bytes = [agent.uuid().as_bytes(), about.as_bytes()].concat();
    uuid::Builder::from_custom_bytes(xxh3_128(&bytes).to_be_bytes())
        .into_uuid()
        .into()
}

/// A change of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionChange {
    /// The question.
    pub id: QuestionId,
    /// The change.
    pub change: QuestionChangeKind,
}

/// A kind of change of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionChangeKind {
    /// It is asked, and waits for an answer.
    Asked(Box<NewQuestion>),
    /// Its answer is carried out by this step. One that nobody has answered is a bad step.
    Done,
    /// It needs no answer any more, whether it has one or not.
    Withdrawn,
}

/// A question to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQuestion {
    /// The call that it is about.
    pub call: CallKey,
    /// The question; its id is that of the change.
    pub question: Question,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// It waits for an answer.
    Open,
    /// It is answered, and the agent has not heard of it yet.
    Answered,
    /// The agent has carried out its answer.
    Done,
    /// It was closed without its answer being carried out: its call was stopped or lost.
    Withdrawn,
}

impl QuestionState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Open, Self::Answered, Self::Done, Self::Withdrawn];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Done => "done",
            Self::Withdrawn => "withdrawn",
        }
    }
}

impl fmt::Display for QuestionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "not answered yet",
            Self::Answered | Self::Done => "answered",
            Self::Withdrawn => "withdrawn",
        })
    }
}

/// A question as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRecord {
    /// Its realm.
    pub realm: RealmId,
    /// The agent that asks.
    pub agent: AgentId,
    /// The call that it is about.
    pub call: CallKey,
    /// The question.
    pub question: Question,
    /// Time at which it was asked, in milliseconds of Unix time.
    pub asked_ms: i64,
    /// What became of it.
    pub state: QuestionState,
    /// Its answer.
    pub answer: Option<GivenAnswer>,
    /// Time of the answer.
    pub answered_ms: Option<i64>,
}

/// A filter for questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionFilter {
    /// Only those of this realm.
    pub realm: Option<RealmId>,
    /// Only those of this agent that it has not finished with: open, or answered.
    pub agent: Option<AgentId>,
    /// Only those whose id has this prefix.
    pub id_prefix: Option<String>,
    /// Only those that wait for an answer.
    pub open: bool,
}

/// The place of a question in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuestionKey {
    /// Time at which it was asked.
    pub asked_ms: i64,
    /// Its id.
    pub id: QuestionId,
}

impl QuestionKey {
    /// Returns the place of a question.
    pub fn of(record: &QuestionRecord) -> Self {
        Self {
            asked_ms: record.asked_ms,
            id: record.question.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_same_question_has_the_same_id() {
        let [one, other] = [1, 2].map(|number| AgentId::from(Uuid::from_u128(number)));
        assert_eq!(question_id(one, "3.0.0"), question_id(one, "3.0.0"));
        assert_ne!(question_id(one, "3.0.0"), question_id(one, "3.0.1"));
        assert_ne!(question_id(one, "3.0.0"), question_id(other, "3.0.0"));
    }
}
