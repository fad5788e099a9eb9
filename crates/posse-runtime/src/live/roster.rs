//! Who belongs to which team, as the store has it, and what is to be done for a list of tasks.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{
    AgentId, ListId, Member, MemberState, RealmId, Takes, Task, TaskStatus, Team,
};

use crate::definition::teammate::TeamIdentity;
use crate::live::registry::Registry;
use crate::live::wakeup::WakeReason;
use crate::prompt;
use posse_port::store::{Membership, Ready, Store, StoreError, TaskFilter};

/// Number of tasks of each status that are told of a list, and number of teams whose lists are told.
const TASKS: usize = 100;
const LISTED_TEAMS: usize = 16;
/// A session has no more teams than this that are looked at.
pub(crate) const TEAMS: usize = 1000;

/// Whether somebody belongs to a team. A session that was forked shares its realm with the one it comes from, and
/// not its teams.
pub(crate) fn has(team: &Team, agent: AgentId) -> bool {
    team.members.iter().any(|member| member.agent == agent)
}

/// The teams of a session.
pub(crate) async fn teams(store: &dyn Store, realm: RealmId) -> Result<Vec<Team>, StoreError> {
    store.teams(Some(realm), TEAMS).await
}

/// Who an agent is in its team; none if it is in none, or has left it.
pub(crate) async fn team_identity(
    store: &dyn Store,
    realm: RealmId,
    agent: AgentId,
) -> Result<Option<TeamIdentity>, StoreError> {
    let mut found = store.membership(realm, agent).await?.into_iter();
    Ok(found.next().map(|Membership { team, member, .. }| {
        let Member {
            name,
            color,
            takes,
            backend,
            ..
        } = member;
        TeamIdentity {
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
    registry: &Registry,
    store: &dyn Store,
    realm: RealmId,
    root: AgentId,
) -> Result<usize, StoreError> {
    let mut busy = 0;
    for team in teams(store, realm)
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
        if busy == 0 && finds_work(registry, store, &team, &others).await? {
            busy += 1;
        }
    }
    Ok(busy)
}

/// Whether a member that does nothing would take a task.
async fn finds_work(
    registry: &Registry,
    store: &dyn Store,
    team: &Team,
    members: &[&Member],
) -> Result<bool, StoreError> {
    let list = ListId {
        realm: team.realm,
        team: Some(team.name.clone()),
    };
    for member in members {
        let takes = registry.accepts_tasks(member.agent).unwrap_or(member.held);
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
        if !store.tasks(list.clone(), filter, 1).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tasks of a list have become ready: as many teammates are nudged as there are tasks for them.
pub(crate) async fn tasks_for(
    registry: &Registry,
    store: &dyn Store,
    list: ListId,
) -> Result<(), StoreError> {
    const PAGE: usize = 256;
    let accepting_tasks = registry.accepting_tasks(&list);
    if accepting_tasks.is_empty() {
        return Ok(());
    }
    let mut told = BTreeSet::new();
    let mut assigned = TaskFilter {
        assigned: true,
        ..TaskFilter::default()
    };
    loop {
        let theirs = store.tasks(list.clone(), assigned.clone(), PAGE).await?;
        let owners = theirs.iter().filter_map(|task| task.owner.as_ref()?.agent);
        told.extend(owners.filter(|owner| accepting_tasks.iter().any(|(agent, _)| agent == owner)));
        match theirs.last() {
            Some(last) if theirs.len() == PAGE => assigned.after = last.id.0,
            _ => break,
        }
    }
    let mut alike: BTreeMap<&Takes, Vec<AgentId>> = BTreeMap::new();
    for (agent, team_identity) in accepting_tasks
        .iter()
        .filter(|(agent, _)| !told.contains(agent))
    {
        alike.entry(&team_identity.takes).or_default().push(*agent);
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
        let free = store.tasks(list.clone(), filter, agents.len()).await?;
        told.extend(agents.into_iter().take(free.len()));
    }
    for agent in told {
        registry.wake(agent, WakeReason::Tasks);
    }
    Ok(())
}

/// The task lists that concern an agent: the session's, and those of its teams.
pub(crate) async fn lists(
    store: &dyn Store,
    realm: RealmId,
    agent: AgentId,
) -> Result<Vec<prompt::List>, StoreError> {
    let open = async |list: ListId| -> Result<Vec<Task>, StoreError> {
        let mut found = Vec::new();
        for status in [TaskStatus::InProgress, TaskStatus::Pending] {
            let filter = TaskFilter {
                status: Some(status),
                ..TaskFilter::default()
            };
            found.extend(store.tasks(list.clone(), filter, TASKS).await?);
        }
        Ok(found)
    };
    let mut lists = vec![prompt::List {
        team: None,
        tasks: open(ListId { realm, team: None }).await?,
    }];
    for team in store.teams(Some(realm), LISTED_TEAMS).await? {
        if team.members.iter().any(|member| member.agent == agent) {
            let tasks = open(ListId {
                realm,
                team: Some(team.name.clone()),
            })
            .await?;
            lists.push(prompt::List {
                team: Some(team),
                tasks,
            });
        }
    }
    Ok(lists)
}
