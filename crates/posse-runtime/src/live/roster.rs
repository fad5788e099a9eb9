//! Questions about teams that the store answers: who belongs to which team, and who has work to do.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{
    AgentId, ListId, Member, MemberState, RealmId, Takes, Task, TaskStatus, Team,
};

use crate::definition::teammate::TeamIdentity;
use crate::live::registry::Registry;
use crate::live::wakeup::WakeReason;
use crate::prompt;
use posse_port::store::{Membership, Page, Ready, Store, StoreError, TaskFilter};

/// Number of tasks of each status that are shown of a list.
const TASKS: usize = 100;
/// Number of teams whose lists are shown.
const LISTED_TEAMS: usize = 16;
/// Maximum number of a session's teams that are looked at.
pub(crate) const TEAMS: usize = 1000;

/// Returns true if an agent belongs to a team. A forked session shares the realm of the session it
/// comes from, and not its teams.
pub(crate) fn has(team: &Team, agent: AgentId) -> bool {
    team.members.iter().any(|member| member.agent == agent)
}

/// Returns the teams of a realm.
pub(crate) async fn teams(store: &dyn Store, realm: RealmId) -> Result<Vec<Team>, StoreError> {
    store.teams(Some(realm), Page::first(TEAMS)).await
}

/// Returns an agent's identity in its team; none if it is in no team, or has left it.
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

/// Returns the number of members that work, or will without being told. `root` is not counted.
pub(crate) async fn busy_members(
    registry: &Registry,
    store: &dyn Store,
    teams: &[Team],
    root: AgentId,
) -> Result<usize, StoreError> {
    let mut busy = 0;
    for team in teams {
        let others: Vec<&Member> = team
            .members
            .iter()
            .filter(|member| member.agent != root)
            .collect();
        let works = |member: &&&Member| {
            // An idle member with mail will start a run as soon as it reads it.
            member.state.is_busy() || member.state == MemberState::Idle && member.waiting > 0
        };
        busy += others.iter().filter(works).count();
        // The task list is asked only if nobody works: callers only need to know whether anybody
        // does.
        if busy == 0 && finds_work(registry, store, team, &others).await? {
            busy += 1;
        }
    }
    Ok(busy)
}

/// Returns true if an idle member would take a task.
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
        // Of a member in another process it is only known whether some process has it.
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
        if !store
            .tasks(list.clone(), filter, Page::first(1))
            .await?
            .is_empty()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Wakes as many teammates as there are ready tasks for them.
pub(crate) async fn tasks_for(
    registry: &Registry,
    store: &dyn Store,
    list: ListId,
) -> Result<(), StoreError> {
    const TOGETHER: usize = 256;
    let accepting_tasks = registry.accepting_tasks(&list);
    if accepting_tasks.is_empty() {
        return Ok(());
    }
    // Assigned tasks first: each can be started by its owner only, so its owner must be woken.
    let mut told = BTreeSet::new();
    let assigned = TaskFilter {
        assigned: true,
        ..TaskFilter::default()
    };
    let mut page = Page::first(TOGETHER);
    loop {
        let theirs = store.tasks(list.clone(), assigned.clone(), page).await?;
        let owners = theirs.iter().filter_map(|task| task.owner.as_ref()?.agent);
        told.extend(owners.filter(|owner| accepting_tasks.iter().any(|(agent, _)| agent == owner)));
        match theirs.last() {
            Some(last) if theirs.len() == TOGETHER => page = Page::after(last.id, TOGETHER),
            _ => break,
        }
    }
    // Teammates that take the same tasks are counted together: waking all of them for one task
    // would make the others look in vain.
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
        let free = store
            .tasks(list.clone(), filter, Page::first(agents.len()))
            .await?;
        told.extend(agents.into_iter().take(free.len()));
    }
    for agent in told {
        registry.wake(agent, WakeReason::Tasks);
    }
    Ok(())
}

/// Returns the task lists that concern an agent: the session's, and those of its teams.
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
            found.extend(
                store
                    .tasks(list.clone(), filter, Page::first(TASKS))
                    .await?,
            );
        }
        Ok(found)
    };
    let mut lists = vec![prompt::List {
        team: None,
        tasks: open(ListId { realm, team: None }).await?,
    }];
    for team in store.teams(Some(realm), Page::first(LISTED_TEAMS)).await? {
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
