//! Teams: members and notes.

use std::collections::{BTreeMap, BTreeSet};

use posse_port::store::{
    Done, Greeting, Joining, Membership, OpResult, Refusal, TEXT_BYTES, TeamKey,
};
use posse_protocol::{AgentId, ListId, MailKind, Member, MemberState, Name, Note, RealmId, Sender};
use serde_json::{Map, Value};

use super::mail::Letter;
use super::operation::Doer;
use super::{HostNumber, Model, Said};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Team {
    description: String,
    settings: Map<String, Value>,
    created_ms: i64,
    /// Its current lead.
    pub(super) lead: AgentId,
    /// In order of joining.
    members: Vec<Said<Member>>,
    /// Names that members have or had, except the lead's.
    used: BTreeSet<Name>,
}

impl Team {
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(|member| &member.0)
    }

    pub(super) fn member(&self, name: &Name) -> Option<&Member> {
        self.members().find(|member| member.name == *name)
    }

    /// Returns the agent with this name; the lead also has the lead's name.
    pub(super) fn called(&self, name: &Name) -> Option<AgentId> {
        if name.as_str() == Name::LEAD {
            return Some(self.lead);
        }
        self.member(name).map(|member| member.agent)
    }

    pub(super) fn shown(&self, realm: RealmId, name: &Name) -> posse_protocol::Team {
        posse_protocol::Team {
            realm,
            name: name.clone(),
            description: self.description.clone(),
            lead: self.lead,
            created_ms: self.created_ms,
            settings: self.settings.clone(),
            members: self.members().cloned().collect(),
            former: self
                .used
                .iter()
                .filter(|name| self.member(name).is_none())
                .cloned()
                .collect(),
        }
    }

    pub(super) fn from_archive(team: &posse_protocol::Team) -> Self {
        Self {
            description: team.description.clone(),
            settings: team.settings.clone(),
            created_ms: team.created_ms,
            lead: team.lead,
            members: team.members.iter().cloned().map(Said).collect(),
            used: team
                .members
                .iter()
                .map(|it| &it.name)
                .chain(&team.former)
                .cloned()
                .collect(),
        }
        .without_reserved()
    }

    fn without_reserved(mut self) -> Self {
        self.used.retain(|name| !name.is_reserved());
        self
    }

    /// Returns the name, or the name with the lowest number above those in use with it, that no
    /// member has or had and no agent of the realm is `registered` under.
    fn free_name(&self, wished: &Name, registered: &BTreeSet<Name>) -> Name {
        let highest = self.used.iter().filter_map(|name| {
            let number = name.as_str().rsplit('-').next()?.parse().ok()?;
            (number < 1_000_000_000 && wished.numbered(number) == *name).then_some(number)
        });
        let numbered =
            (highest.max().unwrap_or(1).max(1) + 1..).map(|number| wished.numbered(number));
        let mut names = std::iter::once(wished.clone()).chain(numbered);
        let taken = |name: &Name| self.used.contains(name) || registered.contains(name);
        names
            .find(|name| !name.is_reserved() && !taken(name))
            .unwrap_or_else(|| wished.clone())
    }

    /// Returns true if a member has or had a name.
    pub(super) fn knows(&self, name: &Name) -> bool {
        self.used.contains(name)
    }

    pub(super) fn first(&self) -> Option<&Member> {
        self.members().next()
    }

    /// Adds a member; returns its colour.
    fn add(&mut self, name: Name, joining: &Joining, joined_ms: i64) -> String {
        let Joining {
            agent,
            agent_type,
            model,
            prompt,
            color,
            backend,
            cwd,
            role,
            takes,
        } = joining.clone();
        let taken: BTreeSet<String> = self.members().map(|member| member.color.clone()).collect();
        let color = color.filter(|color| !color.is_empty() && !taken.contains(color));
        let color = color.unwrap_or_else(|| posse_protocol::team::free_color(&taken));
        if !name.is_reserved() {
            self.used.insert(name.clone());
        }
        let (state, waiting, held) = (MemberState::default(), 0, false);
        self.members.push(Said(Member {
            name,
            agent,
            agent_type,
            model,
            prompt,
            color: color.clone(),
            backend,
            cwd,
            joined_ms,
            role,
            takes,
            state,
            waiting,
            held,
        }));
        color
    }
}

impl Model {
    /// Teams, newest first, then by name.
    pub fn teams(&self, realm: Option<RealmId>) -> Vec<posse_protocol::Team> {
        let wanted = self
            .teams
            .iter()
            .filter(|((of, _), _)| realm.is_none_or(|realm| realm == *of));
        let mut teams: Vec<_> = wanted
            .map(|((realm, name), team)| team.shown(*realm, name))
            .collect();
        for team in &mut teams {
            for member in &mut team.members {
                let here = self
                    .agents
                    .get(&member.agent)
                    .filter(|agent| agent.realm == team.realm);
                member.state = here.map_or(MemberState::Idle, |agent| agent.state.0.of_member());
                member.waiting = self.mail_waiting(team.realm, member.agent);
                member.held = here.is_some_and(|agent| agent.holder.is_some());
            }
        }
        teams.sort_by_key(|team| std::cmp::Reverse(TeamKey::of(team)));
        teams
    }

    /// Memberships of an agent, by team name.
    pub fn membership(&self, realm: RealmId, agent: AgentId) -> Vec<Membership> {
        let mut teams = self.teams(Some(realm));
        teams.sort_by(|a, b| a.name.cmp(&b.name));
        let of = |team: posse_protocol::Team| {
            let members = team
                .members
                .into_iter()
                .filter(|member| member.agent == agent);
            members
                .map(|member| Membership {
                    team: team.name.clone(),
                    lead: team.lead,
                    member,
                })
                .collect::<Vec<_>>()
        };
        teams.into_iter().flat_map(of).collect()
    }

    /// The notes of a team or a session, by name.
    pub fn notes(&self, list: &ListId) -> Vec<Note> {
        let notes = self.notes.get(list).into_iter().flat_map(BTreeMap::values);
        notes.map(|note| note.0.clone()).collect()
    }

    pub(super) fn team(&self, realm: RealmId, team: &Name) -> Result<&Team, Refusal> {
        self.teams
            .get(&(realm, team.clone()))
            .ok_or_else(|| Refusal::NoSuchTeam { team: team.clone() })
    }

    fn team_mut(&mut self, realm: RealmId, team: &Name) -> Result<&mut Team, Refusal> {
        self.teams
            .get_mut(&(realm, team.clone()))
            .ok_or_else(|| Refusal::NoSuchTeam { team: team.clone() })
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
        let (members, used) = Default::default();
        let created_ms = at_ms;
        let mut team = Team {
            description,
            settings,
            created_ms,
            lead: lead.agent,
            members,
            used,
        };
        team.add(Name::lead(), lead, at_ms);
        self.teams.insert((realm, name.clone()), team);
        self.inboxes.entry((realm, lead.agent)).or_default();
        Ok(Done::TeamCreated)
    }

    pub(super) fn delete_team(&mut self, doer: Doer, realm: RealmId, name: &Name) -> OpResult {
        let team = self.team(realm, name)?;
        let follows = |member: &&Member| member.agent != team.lead;
        let others: Vec<Member> = team.members().filter(follows).cloned().collect();
        let holder = |member: &Member| self.holder(realm, member.agent);
        let ended = |member: &Member| {
            let here = self
                .agents
                .get(&member.agent)
                .filter(|agent| agent.realm == realm);
            here.is_some_and(|agent| agent.state.0.of_member() == MemberState::ShutDown)
        };
        let live = |member: &&Member| {
            !ended(member) && holder(member).is_some_and(|host| !self.is_gone(doer, host))
        };
        let names: Vec<String> = others
            .iter()
            .filter(live)
            .map(|member| member.name.to_string())
            .collect();
        if !names.is_empty() {
            return Err(Refusal::MembersLive { names });
        }
        let hosts = others.iter().filter_map(holder);
        let gone: BTreeSet<HostNumber> = hosts.filter(|host| self.is_gone(doer, *host)).collect();
        gone.into_iter().for_each(|host| self.take_for_dead(host));
        self.teams.remove(&(realm, name.clone()));
        self.drop_requests(realm, name, None);
        for member in others {
            let elsewhere = self.teams.iter().filter(|((of, _), _)| *of == realm);
            if !elsewhere
                .flat_map(|(_, team)| team.members())
                .any(|other| other.agent == member.agent)
            {
                self.inboxes.remove(&(realm, member.agent));
            }
        }
        let list = ListId {
            realm,
            team: Some(name.clone()),
        };
        self.notes.remove(&list);
        if let Some(list) = self.lists.get_mut(&list) {
            list.tasks.clear();
        }
        Ok(Done::TeamDeleted)
    }

    pub(super) fn join(
        &mut self,
        realm: RealmId,
        team: &Name,
        wished: &Name,
        (member, greeting): (&Joining, Option<&Greeting>),
        at_ms: i64,
    ) -> OpResult {
        let name = self
            .team(realm, team)?
            .free_name(wished, &self.registered(realm));
        let letter = greeting.map(|greeting| Letter {
            id: greeting.id,
            kind: MailKind::Text,
            summary: &greeting.summary,
            body: &member.prompt,
            at_ms,
        });
        if let Some(letter) = &letter {
            letter.fits()?;
            self.must_have_room(realm, (member.agent, name.as_str()), letter, 1)?;
        }
        let joined = self.team_mut(realm, team)?;
        let (lead, color) = (joined.lead, joined.add(name.clone(), member, at_ms));
        self.inboxes.entry((realm, member.agent)).or_default();
        if let Some(letter) = &letter {
            let from = Sender::Agent {
                id: lead,
                name: Name::LEAD.to_owned(),
            };
            self.put(realm, (member.agent, name.to_string()), &from, letter);
        }
        Ok(Done::Joined { name, color })
    }

    pub(super) fn hand_over(
        &mut self,
        doer: Doer,
        realm: RealmId,
        team: &Name,
        to: &Name,
        at_ms: i64,
    ) -> OpResult {
        let handed = self.team(realm, team)?;
        let lead = handed.lead;
        if doer != Doer::User && doer != Doer::Agent(lead) {
            return Err(Refusal::NotLead { team: team.clone() });
        }
        let next = handed
            .called(to)
            .ok_or_else(|| Refusal::NoSuchRecipient { to: to.to_string() })?;
        if next == lead {
            return Err(Refusal::IsLead { name: to.clone() });
        }
        let here = self.agents.get(&next).filter(|agent| agent.realm == realm);
        if here.is_some_and(|agent| agent.state.0.of_member() == MemberState::ShutDown) {
            return Err(Refusal::NotRunning {
                name: to.to_string(),
            });
        }
        self.make_lead(realm, team, (next, to), at_ms);
        Ok(Done::HandedOver)
    }

    /// Makes another agent the team's lead.
    fn make_lead(&mut self, realm: RealmId, team: &Name, (next, to): (AgentId, &Name), at_ms: i64) {
        let registered = self.registered(realm);
        let Ok(handed) = self.team_mut(realm, team) else {
            return;
        };
        let lead = std::mem::replace(&mut handed.lead, next);
        let main = handed.free_name(&Name::main(), &registered);
        if let Some(old) = handed
            .members
            .iter_mut()
            .find(|member| member.0.name.as_str() == Name::LEAD)
        {
            old.0.name = main.clone();
            let agent = old.0.agent;
            handed.used.insert(main.clone());
            self.rename_owner(realm, team, agent, &main);
        }
        self.pass_on(realm, team, (lead, (next, to)), at_ms);
    }

    /// Makes the first member the lead, if it is not `from`; returns true if so.
    fn fall_back(&mut self, realm: RealmId, team: &Name, from: AgentId, at_ms: i64) -> bool {
        let first = self.team(realm, team).ok().and_then(Team::first);
        let Some(first) = first.filter(|first| first.agent != from).cloned() else {
            return false;
        };
        self.make_lead(realm, team, (first.agent, &first.name), at_ms);
        true
    }

    /// Hands over the teams that an ended agent has led.
    pub(super) fn stop_leading(&mut self, realm: RealmId, agent: AgentId, at_ms: i64) {
        let led = self
            .teams
            .iter()
            .filter(|((of, _), team)| *of == realm && team.lead == agent);
        let led: Vec<Name> = led.map(|((_, team), _)| team.clone()).collect();
        for team in led {
            self.fall_back(realm, &team, agent, at_ms);
        }
    }

    pub(super) fn leave(
        &mut self,
        doer: Doer,
        realm: RealmId,
        team: &Name,
        name: &Name,
        at_ms: i64,
    ) -> OpResult {
        let left = self.team(realm, team)?;
        let lead = left.lead;
        let agent = left
            .called(name)
            .filter(|agent| left.members().any(|member| member.agent == *agent));
        let agent = agent.ok_or_else(|| Refusal::NoSuchRecipient {
            to: name.to_string(),
        })?;
        let here = self.agents.get(&agent).filter(|known| known.realm == realm);
        let parent = here
            .and_then(|known| known.origin.0.as_ref())
            .map(|origin| origin.parent);
        if let Doer::Agent(me) = doer
            && ![Some(agent), Some(lead), parent].contains(&Some(me))
        {
            return Err(Refusal::NotYours {
                name: name.to_string(),
            });
        }
        if lead == agent && !self.fall_back(realm, team, agent, at_ms) {
            return Err(Refusal::IsLead { name: name.clone() });
        }
        let left = self.team_mut(realm, team)?;
        let is_it = |member: &Said<Member>| match name.as_str() {
            Name::LEAD => member.0.agent == agent,
            _ => member.0.name == *name,
        };
        if let Some(at) = left.members.iter().position(is_it) {
            left.members.remove(at);
        }
        self.free_tasks(realm, agent, Some(team));
        self.unassign(realm, agent, Some(team));
        self.drop_requests(realm, team, Some(agent));
        Ok(Done::Left)
    }

    pub(super) fn write_note(
        &mut self,
        doer: Doer,
        list: &ListId,
        (name, text, expect): (&Name, &str, Option<u64>),
        at_ms: i64,
    ) -> OpResult {
        if let Some(team) = &list.team {
            self.team(list.realm, team)?;
        }
        let known = self.notes.get(list).and_then(|notes| notes.get(name));
        let known = known.map_or(0, |note| note.0.version);
        if expect.is_some_and(|expected| expected != known) {
            return Err(Refusal::Changed { version: known });
        }
        if text.len() > TEXT_BYTES {
            return Err(Refusal::TooLong {
                bytes: text.len(),
                most: TEXT_BYTES,
            });
        }
        let author = self.owner(doer, list).name;
        let (version, text) = (known + 1, text.to_owned());
        let note = Note {
            name: name.clone(),
            version,
            author,
            text,
            written_ms: at_ms,
        };
        let notes = self.notes.entry(list.clone()).or_default();
        notes.insert(name.clone(), Said(note));
        Ok(Done::Noted { version })
    }
}
