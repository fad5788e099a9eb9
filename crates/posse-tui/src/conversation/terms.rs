//! The model, effort and permission mode of each agent, as far as they are known.

use std::collections::HashMap;

use posse_protocol::{
    AgentId, MemberChange, MemberUpdate, ModelUpdate, PermissionMode, RunKind, RunUpdate,
};

/// Number of agents of which something is kept.
const MOST: usize = 10_000;

/// How an agent works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentTerms {
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) mode: Option<PermissionMode>,
}

/// How each agent works.
#[derive(Default)]
pub(super) struct KnownTerms(HashMap<AgentId, AgentTerms>);

impl KnownTerms {
    /// Returns what is known of an agent.
    pub(super) fn of(&self, agent: AgentId) -> AgentTerms {
        self.0.get(&agent).cloned().unwrap_or_default()
    }

    /// Notes with which terms an agent begins.
    pub(super) fn begins(&mut self, agent: AgentId, model: &str, mode: PermissionMode) {
        if let Some(terms) = self.entry(agent) {
            terms.model = Some(model.to_owned());
            terms.mode = Some(mode);
        }
    }

    /// Something happened to a run.
    pub(super) fn run(&mut self, update: &RunUpdate) {
        let run = &update.run;
        if let Some(place) = run.place.as_ref().filter(|_| run.kind == RunKind::Agent)
            && !self.0.contains_key(&run.task.into())
        {
            self.begins(run.task.into(), &place.model, place.mode);
        }
    }

    /// Something happened to a member of a team.
    pub(super) fn member(&mut self, agent: AgentId, update: &MemberUpdate) {
        if let MemberChange::Joined { model, .. } = &update.what
            && let Some(terms) = self.entry(agent)
        {
            terms.model = Some(model.clone());
        }
    }

    /// An agent has another mode.
    pub(super) fn mode(&mut self, agent: AgentId, mode: PermissionMode) {
        if let Some(terms) = self.entry(agent) {
            terms.mode = Some(mode);
        }
    }

    /// An agent has another model or effort.
    pub(super) fn model(&mut self, agent: AgentId, update: &ModelUpdate) {
        if let Some(terms) = self.entry(agent) {
            terms.model = Some(update.model.clone());
            terms.effort.clone_from(&update.effort);
        }
    }

    fn entry(&mut self, agent: AgentId) -> Option<&mut AgentTerms> {
        let has_room = self.0.len() < MOST || self.0.contains_key(&agent);
        has_room.then(|| self.0.entry(agent).or_default())
    }
}
