//! Questions to people.

use posse_port::store::{
    Done, NewQuestion, OpResult, Page, QuestionChange, QuestionChangeKind, QuestionFilter,
    QuestionKey, QuestionRecord, QuestionState, Refusal, StateChange, Step, Wake,
};
use posse_protocol::{AgentId, GivenAnswer, MemberState, QuestionId, RealmId};

use super::{Model, Said};

/// A question, shown as it is.
pub(super) type Asked = Said<QuestionRecord>;

impl Model {
    /// Questions, oldest first.
    pub fn questions(
        &self,
        filter: &QuestionFilter,
        page: &Page<QuestionKey>,
    ) -> Vec<QuestionRecord> {
        let meant = |record: &&QuestionRecord| {
            let id = record.question.id.uuid().simple().to_string();
            let prefix = filter.id_prefix.as_ref().map(|it| it.replace('-', ""));
            let unfinished =
                record.state == QuestionState::Open || record.state == QuestionState::Answered;
            filter.realm.is_none_or(|realm| realm == record.realm)
                && filter
                    .agent
                    .is_none_or(|agent| agent == record.agent && unfinished)
                && prefix.is_none_or(|prefix| id.starts_with(&prefix))
                && (!filter.open || record.state == QuestionState::Open)
        };
        let mut found: Vec<QuestionRecord> = self
            .questions
            .values()
            .map(|asked| &asked.0)
            .filter(meant)
            .filter(|record| {
                let key = QuestionKey::of(record);
                page.from.is_none_or(|from| match page.backwards {
                    true => key < from,
                    false => key > from,
                })
            })
            .cloned()
            .collect();
        found.sort_by_key(QuestionKey::of);
        match page.backwards {
            true => found.split_off(found.len().saturating_sub(page.limit)),
            false => {
                found.truncate(page.limit);
                found
            }
        }
    }

    /// Asks and closes questions. Returns none if a change makes no sense.
    pub(super) fn change_questions(&self, step: &Step) -> Option<Vec<Asked>> {
        let mut changed: Vec<Asked> = Vec::new();
        for QuestionChange { id, change } in &step.questions {
            let known = changed.iter().rposition(|asked| asked.0.question.id == *id);
            let before = match known {
                Some(at) => Some(changed.remove(at).0),
                None => self
                    .questions
                    .get(&(step.realm, *id))
                    .map(|it| it.0.clone()),
            };
            let record = match (change, before) {
                (QuestionChangeKind::Asked(new), None) => {
                    let NewQuestion { call, question } = NewQuestion::clone(new);
                    QuestionRecord {
                        realm: step.realm,
                        agent: step.agent,
                        call,
                        question,
                        asked_ms: step.at_ms,
                        state: QuestionState::Open,
                        answer: None,
                        answered_ms: None,
                    }
                }
                (QuestionChangeKind::Asked(_), Some(_)) => return None,
                (change, before) => {
                    let mut record = before.filter(|record| record.agent == step.agent)?;
                    record.state = match (change, record.state) {
                        (QuestionChangeKind::Done, QuestionState::Answered) => QuestionState::Done,
                        (
                            QuestionChangeKind::Withdrawn,
                            QuestionState::Open | QuestionState::Answered,
                        ) => QuestionState::Withdrawn,
                        _ => return None,
                    };
                    record
                }
            };
            changed.push(Said(record));
        }
        Some(changed)
    }

    pub(super) fn keep_questions(&mut self, changed: Vec<Asked>) {
        for asked in changed {
            let key = (asked.0.realm, asked.0.question.id);
            self.questions.insert(key, asked);
        }
    }

    /// Withdraws the questions of an agent that ends.
    pub(super) fn withdraw_questions(&mut self, step: &Step) {
        let ends = match step.state {
            Some(StateChange::To(state) | StateChange::UnlessMail(state)) => {
                state.of_member() == MemberState::ShutDown
            }
            None => false,
        };
        for asked in self.questions.values_mut().filter(|_| ends) {
            let unfinished = matches!(asked.0.state, QuestionState::Open | QuestionState::Answered);
            if asked.0.agent == step.agent && unfinished {
                asked.0.state = QuestionState::Withdrawn;
            }
        }
    }

    /// Returns true if an agent has not finished with an answer.
    pub fn has_answers(&self, realm: RealmId, agent: AgentId) -> bool {
        self.questions.values().any(|asked| {
            let record = &asked.0;
            record.realm == realm
                && record.agent == agent
                && record.state == QuestionState::Answered
        })
    }

    /// Answers a question; the first answer counts.
    pub(super) fn answer(
        &mut self,
        realm: RealmId,
        question: QuestionId,
        answer: &GivenAnswer,
        at_ms: i64,
    ) -> OpResult {
        let asked = self
            .questions
            .get_mut(&(realm, question))
            .ok_or(Refusal::NoSuchQuestion { question })?;
        let record = &mut asked.0;
        if record.state != QuestionState::Open {
            let state = record.state;
            return Err(Refusal::QuestionClosed { question, state });
        }
        record.state = QuestionState::Answered;
        (record.answer, record.answered_ms) = (Some(answer.clone()), Some(at_ms));
        let agent = record.agent;
        let holder = self.agent(agent).and_then(|agent| agent.holder);
        if let Some(host) = holder {
            self.tell(host, Wake::Mail(agent));
        }
        let held = holder.is_some();
        Ok(Done::Answered { agent, held })
    }
}
