//! Operations: their callers, and their dispatch.

use posse_port::store::{Charge, Done, Op, OpResult, Refusal};
use posse_protocol::{AgentId, ListId, Name, Owner, RealmId, Response};

use super::Model;
use super::mail::Letter;

/// The caller of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doer {
    /// A person.
    User,
    /// An agent, in a step.
    Agent(AgentId),
}

impl Model {
    /// Performs one operation, or refuses it without any change.
    pub(super) fn operation(
        &mut self,
        doer: Doer,
        realm: RealmId,
        op: &Op,
        at_ms: i64,
    ) -> OpResult {
        let list = |team: &Option<Name>| ListId {
            realm,
            team: team.clone(),
        };
        match op {
            Op::Send {
                id,
                to,
                kind,
                summary,
                body,
            } => self.send(
                doer,
                realm,
                to,
                &Letter {
                    id: *id,
                    kind: *kind,
                    summary,
                    body,
                    at_ms,
                },
            ),
            Op::Charge { agent, charge } => self.charge(realm, *agent, charge),
            Op::Answer { question, answer } => self.answer(realm, *question, answer, at_ms),
            Op::CreateTeam {
                team,
                description,
                settings,
                lead,
            } => self.create_team(realm, team, (description, settings), lead, at_ms),
            Op::DeleteTeam { team } => self.delete_team(doer, realm, team),
            Op::Join {
                team,
                name,
                member,
                greeting,
            } => self.join(realm, team, name, (member, greeting.as_ref()), at_ms),
            Op::HandOver { team, to } => self.hand_over(doer, realm, team, to, at_ms),
            Op::Request { id, to, kind, text } => {
                self.request(doer, realm, (*id, to, *kind), text, at_ms)
            }
            Op::Respond {
                id,
                request,
                kind,
                approve,
                text,
            } => {
                let response = Response {
                    request_id: *request,
                    approve: *approve,
                    text: text.clone(),
                };
                self.respond(doer, realm, (*id, *kind), &response, at_ms)
            }
            Op::Leave { team, name } => self.leave(doer, realm, team, name, at_ms),
            Op::WriteNote {
                team,
                name,
                text,
                expect,
            } => self.write_note(doer, &list(team), (name, text, *expect), at_ms),
            Op::CreateTask { team, task } => self.create_task(&list(team), task, at_ms),
            Op::UpdateTask {
                team,
                id,
                expect,
                change,
            } => self.update_task(doer, &list(team), *id, *expect, change, at_ms),
            Op::Claim { team, id } => self.claim(doer, &list(team), *id, at_ms),
            Op::ClaimNext { team, takes } => self.claim_next(doer, &list(team), takes, at_ms),
        }
    }

    /// Adds to the charges of an agent of the realm, and changes nothing else of it.
    fn charge(&mut self, realm: RealmId, agent: AgentId, charge: &Charge) -> OpResult {
        let found = self.agent_mut(agent).filter(|found| found.realm == realm);
        found.ok_or(Refusal::NoSuchAgent { agent })?.charge(charge);
        Ok(Done::Charged)
    }

    /// Returns the caller as the owner of a task or the author of a note: by its name in the team,
    /// else its path.
    pub(super) fn owner(&self, doer: Doer, list: &ListId) -> Owner {
        match doer {
            Doer::User => Owner {
                agent: None,
                name: "user".to_owned(),
            },
            Doer::Agent(agent) => {
                let member = list
                    .team
                    .as_ref()
                    .and_then(|team| self.name_in(list.realm, agent, team));
                Owner {
                    agent: Some(agent),
                    name: member.unwrap_or_else(|| self.path_of(list.realm, agent)),
                }
            }
        }
    }
}
