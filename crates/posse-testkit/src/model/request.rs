//! Requests for a yes or no, open until they are answered.

use posse_port::store::{
    Address, Done, OpResult, OpenRequest, Receipt, Refusal, StateChange, Step,
};
use posse_protocol::{
    AgentId, MailId, MailKind, Member, MemberState, Name, RealmId, Request, RequestKind, Response,
    Sender,
};

use super::mail::Letter;
use super::operation::Doer;
use super::{Model, Said};

/// An open request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Open {
    shown: Said<OpenRequest>,
    team: Name,
    /// The number of its mail.
    number: u64,
}

impl Open {
    fn approver(&self) -> Option<AgentId> {
        match &self.shown.0.from {
            Sender::Agent { id, .. } => Some(*id),
            Sender::User => None,
        }
    }
}

impl Model {
    /// Open requests, oldest first: those that an agent was asked or has asked, or all.
    pub fn requests(&self, realm: RealmId, agent: Option<AgentId>) -> Vec<OpenRequest> {
        let here = self
            .requests
            .iter()
            .filter(|((of, _), _)| *of == realm)
            .map(|(_, open)| open);
        let concerned = |open: &&Open| match agent {
            Some(agent) => open.shown.0.to == agent || open.approver() == Some(agent),
            None => true,
        };
        let mut found: Vec<_> = here
            .filter(concerned)
            .map(|open| open.shown.0.clone())
            .collect();
        found.sort_by_key(|open| (open.asked_ms, open.id));
        found
    }

    pub(super) fn request(
        &mut self,
        doer: Doer,
        realm: RealmId,
        (id, to, kind): (MailId, &Address, RequestKind),
        text: &str,
        at_ms: i64,
    ) -> OpResult {
        let body = json(&Request {
            request_id: id,
            text: text.to_owned(),
        });
        let letter = Letter {
            id,
            kind: kind.asking(),
            summary: kind.asked(),
            body: &body,
            at_ms,
        };
        letter.fits()?;
        let (mut agent, mut name) = self.recipient(doer, realm, to)?;
        let team = self.about(realm, (agent, &name), to, kind)?;
        if kind == RequestKind::Plan
            && doer == Doer::Agent(agent)
            && let Some(first) = self.team(realm, &team)?.first()
        {
            (agent, name) = (first.agent, first.name.to_string());
        }
        if doer == Doer::Agent(agent) {
            return Err(Refusal::NotYours { name });
        }
        match kind {
            RequestKind::Shutdown => self.must_be_above(doer, realm, agent, &name)?,
            RequestKind::Plan if doer == Doer::User => return Err(Refusal::NotYours { name }),
            RequestKind::Plan => {}
        }
        let open =
            |open: &&Open| open.shown.0.to == agent && open.shown.0.kind == RequestKind::Shutdown;
        let here = self
            .requests
            .iter()
            .filter(|((of, _), _)| *of == realm)
            .map(|(_, open)| open);
        if let Some(open) = here
            .into_iter()
            .find(open)
            .filter(|_| kind == RequestKind::Shutdown)
        {
            let held = self.holder(realm, agent).is_some();
            let (kind, number) = (MailKind::ShutdownRequest, open.number);
            let receipt = Receipt {
                to: agent,
                name,
                kind,
                number,
                held,
            };
            return Ok(Done::Requested {
                request: open.shown.0.id,
                receipt,
            });
        }
        self.must_have_room(realm, (agent, &name), &letter, 1)?;
        let from = self.sender(doer, realm, Some(&team));
        let receipt = self.put(realm, (agent, name), &from, &letter);
        let shown = OpenRequest {
            id,
            kind,
            from,
            to: agent,
            text: text.to_owned(),
            asked_ms: at_ms,
        };
        let open = Open {
            shown: Said(shown),
            team,
            number: receipt.number,
        };
        self.requests.insert((realm, id), open);
        Ok(Done::Requested {
            request: id,
            receipt,
        })
    }

    /// Returns the team of a request: one of its members is asked to end, or its lead to approve.
    fn about(
        &self,
        realm: RealmId,
        (agent, name): (AgentId, &str),
        to: &Address,
        kind: RequestKind,
    ) -> Result<Name, Refusal> {
        let plan = kind == RequestKind::Plan;
        if let Address::Member { team, name } = to {
            return match self.team(realm, team)?.lead == agent {
                leads if leads == plan => Ok(team.clone()),
                true => Err(Refusal::IsLead { name: name.clone() }),
                false => Err(Refusal::NotLead { team: team.clone() }),
            };
        }
        let mut here = self.teams.iter().filter(|((of, _), _)| *of == realm);
        let belongs = |member: &Member| member.agent == agent;
        let found =
            here.find(|(_, team)| team.members().any(belongs) && (team.lead == agent) == plan);
        let team = found.map(|((_, team), _)| team.clone());
        team.ok_or_else(|| Refusal::NotYours {
            name: name.to_owned(),
        })
    }

    pub(super) fn respond(
        &mut self,
        doer: Doer,
        realm: RealmId,
        (id, kind): (MailId, RequestKind),
        response: &Response,
        at_ms: i64,
    ) -> OpResult {
        let (request, summary) = (response.request_id, kind.answered(response.approve));
        let body = json(response);
        let letter = Letter {
            id,
            kind: kind.answering(),
            summary,
            body: &body,
            at_ms,
        };
        letter.fits()?;
        let open = self.requests.get(&(realm, request)).filter(|open| {
            let asked =
                doer == Doer::Agent(open.shown.0.to) && open.approver() != Some(open.shown.0.to);
            let mine = (doer == Doer::User && kind == RequestKind::Plan) || asked;
            open.shown.0.kind == kind && mine
        });
        let open = open.ok_or(Refusal::NotOpen { request })?.clone();
        let approver = match open.approver() {
            Some(approver) => approver,
            None => self.team(realm, &open.team)?.lead,
        };
        let name = self.name_in(realm, approver, &open.team);
        let name = name.unwrap_or_else(|| self.name_of(realm, approver));
        self.must_have_room(realm, (approver, &name), &letter, 1)?;
        let from = self.sender(doer, realm, Some(&open.team));
        let receipt = self.put(realm, (approver, name), &from, &letter);
        self.requests.remove(&(realm, request));
        if kind == RequestKind::Shutdown
            && response.approve
            && let Some(name) = self
                .name_in(realm, open.shown.0.to, &open.team)
                .and_then(|name| name.parse().ok())
        {
            let _ = self.leave(doer, realm, &open.team, &name, at_ms);
        }
        Ok(Done::Responded(receipt))
    }

    /// Moves plans that wait for one agent to another, who gets them as mail, except the other's
    /// own. Drops requests that the other shut down.
    pub(super) fn pass_on(
        &mut self,
        realm: RealmId,
        team: &Name,
        (from, to): (AgentId, (AgentId, &Name)),
        at_ms: i64,
    ) {
        let (next, name) = to;
        let ends =
            |open: &Open| open.shown.0.kind == RequestKind::Shutdown && open.shown.0.to == next;
        self.requests
            .retain(|(of, _), open| *of != realm || open.team != *team || !ends(open));
        for plan in self.requests(realm, Some(from)) {
            let key = (realm, plan.id);
            let Some(open) = self.requests.get(&key).filter(|open| open.team == *team) else {
                continue;
            };
            if plan.kind != RequestKind::Plan || plan.to != from || open.approver() == Some(next) {
                continue;
            }
            let body = json(&Request {
                request_id: plan.id,
                text: plan.text.clone(),
            });
            let (kind, summary) = (MailKind::PlanApprovalRequest, RequestKind::Plan.asked());
            let letter = Letter {
                id: plan.id,
                kind,
                summary,
                body: &body,
                at_ms,
            };
            let receipt = self.put(realm, (next, name.to_string()), &plan.from, &letter);
            if let Some(open) = self.requests.get_mut(&key) {
                (open.shown.0.to, open.number) = (next, receipt.number);
            }
        }
    }

    /// Drops the requests that an agent leaving a team was asked there, and has asked.
    pub(super) fn drop_requests(&mut self, realm: RealmId, team: &Name, agent: Option<AgentId>) {
        let concerned = |open: &Open| {
            agent.is_none_or(|agent| open.shown.0.to == agent || open.approver() == Some(agent))
        };
        self.requests
            .retain(|(of, _), open| *of != realm || open.team != *team || !concerned(open));
    }

    /// Drops the shutdown request and the plan of an agent that a step ends.
    pub(super) fn end_requests(&mut self, step: &Step) {
        let Some(StateChange::To(state) | StateChange::UnlessMail(state)) = step.state else {
            return;
        };
        if state.of_member() != MemberState::ShutDown {
            return;
        }
        let about = |open: &Open| match open.shown.0.kind {
            RequestKind::Shutdown => open.shown.0.to == step.agent,
            RequestKind::Plan => {
                open.approver() == Some(step.agent) && open.shown.0.to != step.agent
            }
        };
        self.requests
            .retain(|(of, _), open| *of != step.realm || !about(open));
        self.stop_leading(step.realm, step.agent, step.at_ms);
        self.free_tasks(step.realm, step.agent, None);
        self.unassign(step.realm, step.agent, None);
    }
}

/// The body of a mail.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
