//! Teams: members and notes.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{AgentId, ListId, Member, Name, Note, RealmId};
use posse_runtime::port::store::{Done, Joining, OpResult, Refusal, TEXT_BYTES};
use serde_json::{Map, Value};

use super::operation::Doer;
use super::{HostNumber, Model, Said};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Team {
    description: String,
    settings: Map<String, Value>,
    created_ms: i64,
    /// In the order of joining; the first leads.
    members: Vec<Said<Member>>,
    notes: BTreeMap<Name, Said<Note>>,
}

impl Team {
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(|member| &member.0)
    }

    pub(super) fn member(&self, name: &Name) -> Option<&Member> {
        self.members().find(|member| member.name == *name)
    }

    pub(super) fn lead(&self) -> Option<AgentId> {
        self.members().next().map(|lead| lead.agent)
    }

    pub(super) fn shown(&self, realm: RealmId, name: &Name) -> Option<posse_protocol::Team> {
        Some(posse_protocol::Team {
            realm,
            name: name.clone(),
            description: self.description.clone(),
            lead: self.lead()?,
            created_ms: self.created_ms,
            settings: self.settings.clone(),
            members: self.members().cloned().collect(),
        })
    }

    pub(super) fn from_archive(team: &posse_protocol::Team, notes: &[Note]) -> Self {
        Self {
            description: team.description.clone(),
            settings: team.settings.clone(),
            created_ms: team.created_ms,
            members: team.members.iter().cloned().map(Said).collect(),
            notes: notes.iter().map(|note| (note.name.clone(), Said(note.clone()))).collect(),
        }
    }

    fn add(&mut self, name: Name, joining: &Joining, joined_ms: i64) {
        let Joining { agent, agent_type, model, prompt, color, backend, cwd } = joining.clone();
        let member = Member { name, agent, agent_type, model, prompt, color, backend, cwd, joined_ms };
        self.members.push(Said(member));
    }
}

impl Model {
    /// Teams, the newest first; of two that are as old, the one whose name comes first.
    pub fn teams(&self, realm: Option<RealmId>) -> Vec<posse_protocol::Team> {
        let wanted = self.teams.iter().filter(|((of, _), _)| realm.is_none_or(|realm| realm == *of));
        let mut teams: Vec<_> = wanted.filter_map(|((realm, name), team)| team.shown(*realm, name)).collect();
        teams.sort_by_key(|team| std::cmp::Reverse(team.created_ms));
        teams
    }

    /// A team's notes, by name.
    pub fn notes(&self, realm: RealmId, team: &Name) -> Vec<Note> {
        let team = self.teams.get(&(realm, team.clone()));
        team.into_iter().flat_map(|team| team.notes.values().map(|note| note.0.clone())).collect()
    }

    pub(super) fn team(&self, realm: RealmId, team: &Name) -> Result<&Team, Refusal> {
        self.teams.get(&(realm, team.clone())).ok_or_else(|| Refusal::NoSuchTeam { team: team.clone() })
    }

    fn team_mut(&mut self, realm: RealmId, team: &Name) -> Result<&mut Team, Refusal> {
        self.teams.get_mut(&(realm, team.clone())).ok_or_else(|| Refusal::NoSuchTeam { team: team.clone() })
    }

    pub(super) fn create_team(
        &mut self,
        realm: RealmId,
        name: &Name,
        (description, settings): (&str, &Map<String, Value>),
        lead: &Joining,
        at_ms: i64,
    ) -> OpResult {
        if self.team(realm, name).is_ok() {
            return Err(Refusal::TeamExists { team: name.clone() });
        }
        let (description, settings) = (description.to_owned(), settings.clone());
        let (members, notes) = Default::default();
        let mut team = Team { description, settings, created_ms: at_ms, members, notes };
        team.add(Name::lead(), lead, at_ms);
        self.teams.insert((realm, name.clone()), team);
        self.inboxes.entry((realm, lead.agent)).or_default();
        Ok(Done::TeamCreated)
    }

    pub(super) fn delete_team(&mut self, doer: Doer, realm: RealmId, name: &Name) -> OpResult {
        let team = self.team(realm, name)?;
        let follows = |member: &&Member| Some(member.agent) != team.lead();
        let others: Vec<Member> = team.members().filter(follows).cloned().collect();
        let holder = |member: &Member| self.holder(realm, member.agent);
        let live = |member: &&Member| holder(member).is_some_and(|host| !self.is_gone(doer, host));
        let names: Vec<String> = others.iter().filter(live).map(|member| member.name.to_string()).collect();
        if !names.is_empty() {
            return Err(Refusal::MembersLive { names });
        }
        let gone: BTreeSet<HostNumber> = others.iter().filter_map(holder).collect();
        gone.into_iter().for_each(|host| self.take_for_dead(host));
        self.teams.remove(&(realm, name.clone()));
        for member in others {
            let elsewhere = self.teams.iter().filter(|((of, _), _)| *of == realm);
            if !elsewhere.flat_map(|(_, team)| team.members()).any(|other| other.agent == member.agent) {
                self.inboxes.remove(&(realm, member.agent));
            }
        }
        if let Some(list) = self.lists.get_mut(&ListId { realm, team: Some(name.clone()) }) {
            list.tasks.clear();
        }
        Ok(Done::TeamDeleted)
    }

    pub(super) fn join(
        &mut self,
        realm: RealmId,
        team: &Name,
        name: &Name,
        member: &Joining,
        at_ms: i64,
    ) -> OpResult {
        let joined = self.team_mut(realm, team)?;
        if name.is_reserved() || joined.member(name).is_some() {
            return Err(Refusal::NameTaken { name: name.clone() });
        }
        joined.add(name.clone(), member, at_ms);
        self.inboxes.entry((realm, member.agent)).or_default();
        Ok(Done::Joined)
    }

    pub(super) fn leave(&mut self, realm: RealmId, team: &Name, name: &Name) -> OpResult {
        let left = self.team_mut(realm, team)?;
        let member =
            left.member(name).ok_or_else(|| Refusal::NoSuchRecipient { to: name.to_string() })?.agent;
        if left.members().next().is_some_and(|lead| lead.name == *name) {
            return Err(Refusal::IsLead { name: name.clone() });
        }
        left.members.retain(|member| member.0.name != *name);
        self.free_tasks(realm, member, Some(team));
        Ok(Done::Left)
    }

    pub(super) fn write_note(
        &mut self,
        doer: Doer,
        realm: RealmId,
        team: &Name,
        (name, text, expect): (&Name, &str, Option<u64>),
        at_ms: i64,
    ) -> OpResult {
        let known = self.team(realm, team)?.notes.get(name).map_or(0, |note| note.0.version);
        if expect.is_some_and(|expected| expected != known) {
            return Err(Refusal::Changed { version: known });
        }
        if text.len() > TEXT_BYTES {
            return Err(Refusal::TooLong { bytes: text.len(), most: TEXT_BYTES });
        }
        let author = self.owner(doer, &ListId { realm, team: Some(team.clone()) }).name;
        let (version, text) = (known + 1, text.to_owned());
        let note = Note { name: name.clone(), version, author, text, written_ms: at_ms };
        self.team_mut(realm, team)?.notes.insert(name.clone(), Said(note));
        Ok(Done::Noted { version })
    }
}
