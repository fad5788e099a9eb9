//! Who belongs to which team, as the store has it, and what is to be done for a list of tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use posse_protocol::{AgentId, ListId, Member, MemberState, RealmId, Takes, Team};

use crate::definition::teammate::Card;
use crate::live::registry::House;
use crate::live::wakeup::About;
use posse_port::store::{Membership, Ready, StoreError, TaskFilter};

/// A session has no more teams than this that are looked at.
pub(crate) const TEAMS: usize = 1000;

/// Whether somebody belongs to a team. A session that was forked shares its realm with the one it comes from, and
/// not its teams.
pub(crate) fn has(team: &Team, agent: AgentId) -> bool {
    team.members.iter().any(|member| member.agent == agent)
}

impl House {
    /// The teams of a session.
    pub(crate) async fn teams(&self, realm: RealmId) -> Result<Vec<Team>, StoreError> {
        self.ports.store.teams(Some(realm), TEAMS).await
    }

    /// Who an agent is in its team; none if it is in none, or has left it.
    pub(crate) async fn card(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> Result<Option<Card>, StoreError> {
        let mut found = self.ports.store.membership(realm, agent).await?.into_iter();
        Ok(found.next().map(|Membership { team, member, .. }| {
            let Member {
                name,
                color,
                takes,
                backend,
                ..
            } = member;
            Card {
                team,
                name,
                color,
                takes,
                backend,
            }
        }))
    }

    /// How many members of a session's teams do something, or will without being told. `root` is not counted.
    pub(crate) async fn busy_members(
        &self,
        realm: RealmId,
        root: AgentId,
    ) -> Result<usize, StoreError> {
        let mut busy = 0;
        for team in self
            .teams(realm)
            .await?
            .into_iter()
            .filter(|team| has(team, root))
        {
            let others: Vec<&Member> = team
                .members
                .iter()
                .filter(|member| member.agent != root)
                .collect();
            let works = |member: &&&Member| {
                member.state.is_busy() || member.state == MemberState::Idle && member.waiting > 0
            };
            busy += others.iter().filter(works).count();
            if busy == 0 && self.finds_work(&team, &others).await? {
                busy += 1;
            }
        }
        Ok(busy)
    }

    /// Whether a member that does nothing would take a task.
    async fn finds_work(&self, team: &Team, members: &[&Member]) -> Result<bool, StoreError> {
        let list = ListId {
            realm: team.realm,
            team: Some(team.name.clone()),
        };
        for member in members {
            let takes = self.is_seeking(member.agent).unwrap_or(member.held);
            if member.state != MemberState::Idle || !takes {
                continue;
            }
            let ready = Ready {
                agent: Some(member.agent),
                takes: member.takes.clone(),
            };
            let filter = TaskFilter {
                ready: Some(ready),
                ..TaskFilter::default()
            };
            if !self
                .ports
                .store
                .tasks(list.clone(), filter, 1)
                .await?
                .is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tasks of a list have become ready: as many teammates are nudged as there are tasks for them.
    pub(crate) async fn tasks_for(self: Arc<Self>, list: ListId) -> Result<(), StoreError> {
        const PAGE: usize = 256;
        let seekers = self.seekers(&list);
        if seekers.is_empty() {
            return Ok(());
        }
        let mut told = BTreeSet::new();
        let mut assigned = TaskFilter {
            assigned: true,
            ..TaskFilter::default()
        };
        loop {
            let theirs = self
                .ports
                .store
                .tasks(list.clone(), assigned.clone(), PAGE)
                .await?;
            let owners = theirs.iter().filter_map(|task| task.owner.as_ref()?.agent);
            told.extend(owners.filter(|owner| seekers.iter().any(|(agent, _)| agent == owner)));
            match theirs.last() {
                Some(last) if theirs.len() == PAGE => assigned.after = last.id.0,
                _ => break,
            }
        }
        let mut alike: BTreeMap<&Takes, Vec<AgentId>> = BTreeMap::new();
        for (agent, card) in seekers.iter().filter(|(agent, _)| !told.contains(agent)) {
            alike.entry(&card.takes).or_default().push(*agent);
        }
        for (takes, agents) in alike {
            let ready = Ready {
                agent: None,
                takes: takes.clone(),
            };
            let filter = TaskFilter {
                ready: Some(ready),
                ..TaskFilter::default()
            };
            let free = self
                .ports
                .store
                .tasks(list.clone(), filter, agents.len())
                .await?;
            told.extend(agents.into_iter().take(free.len()));
        }
        for agent in told {
            self.nudge(agent, About::Tasks);
        }
        Ok(())
    }
}
