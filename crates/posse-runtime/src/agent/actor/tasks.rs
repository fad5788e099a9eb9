//! The tasks an agent has, and how a teammate finds the next one.

use std::sync::Arc;

use posse_port::store::{
    AgentState, Done, Op, OpResult, Operation, Ready, StateChange, Step, StoreError, TaskFilter,
};
use posse_protocol::{ListId, Name, Task, TaskId, TaskStatus};

use crate::agent::actor::{Actor, lead};
use crate::agent::step::Input;
use crate::live::roster;
use crate::prompt;

/// So many of the tasks that an agent is doing are looked at.
const OWN: usize = 32;

/// What a step does to tasks, and to the agent itself.
pub(crate) struct OwnTasks {
    /// The tasks, by the operation that touches them.
    touched: Vec<(usize, Option<Name>, TaskId)>,
    /// The operation that agrees to end.
    agrees: Option<usize>,
}

impl OwnTasks {
    pub(crate) fn of(operations: &[Operation]) -> Self {
        let touched =
            operations
                .iter()
                .enumerate()
                .filter_map(|(at, operation)| match &operation.op {
                    Op::UpdateTask {
                        team, id, change, ..
                    } if change.status.is_some() => Some((at, team.clone(), *id)),
                    Op::Claim { team, id } => Some((at, team.clone(), *id)),
                    _ => None,
                });
        let agrees = operations.iter().position(|operation| {
            let Op::Respond { kind, approve, .. } = &operation.op else {
                return false;
            };
            *kind == posse_protocol::RequestKind::Shutdown && *approve
        });
        Self {
            touched: touched.collect(),
            agrees,
        }
    }
}

/// A teammate that was given up while it did tasks has them again, unless somebody else has.
pub(super) async fn reclaim(actor: &mut Actor) -> Result<(), StoreError> {
    let Some(team_identity) = actor
        .role
        .teammate()
        .map(|teammate| Arc::clone(&teammate.team_identity))
    else {
        return Ok(());
    };
    let team = Some(team_identity.team.clone());
    let filter = TaskFilter {
        lost_by: Some(team_identity.name.to_string()),
        ..TaskFilter::default()
    };
    let lost = actor
        .ports
        .store
        .tasks(list(actor, team.clone()), filter, OWN)
        .await?;
    if lost.is_empty() {
        return Ok(());
    }
    let claim = |task: &Task| Operation {
        call: None,
        op: Op::Claim {
            team: team.clone(),
            id: task.id,
        },
    };
    let operations: Vec<_> = lost.iter().map(claim).collect();
    let own = OwnTasks::of(&operations);
    let step = Step {
        operations,
        ..actor.new_step()
    };
    let committed = actor.ports.store.commit(step).await?;
    for result in &committed.results {
        // Its process may have ended after the claim and before the entry that tells of it.
        if let Ok(Done::Claimed(task)) = result
            && !actor
                .prefix
                .history
                .contains(&prompt::team::opening(task.id))
        {
            actor.machine.tell(prompt::team::claimed(task));
        }
    }
    note_tasks(actor, own, &committed.results);
    Ok(())
}

/// Whether it would take a task is known to those who tell of tasks.
pub(super) fn show_accepts_tasks(actor: &Actor) {
    if actor.role.is_teammate() {
        actor
            .registry
            .set_accepts_tasks(actor.identity.agent, actor.machine.accepts_tasks());
    }
}

/// There may be a task for it; if it cannot look now, somebody else may.
pub(super) fn on_hint(actor: &Actor) -> Option<Input> {
    show_accepts_tasks(actor);
    if actor.machine.accepts_tasks() {
        return Some(Input::Look);
    }
    let list = list(
        actor,
        actor
            .role
            .teammate()
            .map(|teammate| teammate.team_identity.team.clone()),
    );
    let (registry, store) = (Arc::clone(&actor.registry), Arc::clone(&actor.ports.store));
    actor
        .supervisor
        .start_errand(async move { drop(roster::tasks_for(&registry, &*store, list).await) });
    None
}

/// Remembers which tasks the agent has had, and whether it has agreed to end.
pub(super) fn note_tasks(actor: &mut Actor, own: OwnTasks, results: &[OpResult]) {
    let done = |at: &usize| results.get(*at).is_some_and(Result::is_ok);
    let touched = own.touched.into_iter().filter(|(at, ..)| done(at));
    actor.tasks.extend(touched.map(|(_, team, id)| (team, id)));
    actor.machine.set_owning(!actor.tasks.is_empty());
    if actor.role.is_teammate() && own.agrees.as_ref().is_some_and(done) {
        actor.machine.leave();
    }
}

pub(super) fn list(actor: &Actor, team: Option<Name>) -> ListId {
    ListId {
        realm: actor.identity.realm,
        team,
    }
}

/// Looks which tasks the agent is doing; if it does none, and `claim`, takes the next one.
pub(super) async fn check_tasks(actor: &mut Actor, claim: bool) -> Result<Input, StoreError> {
    let agent = actor.identity.agent;
    let store = Arc::clone(&actor.ports.store);
    // From here on it is nudged for tasks: what becomes ready after it has looked is not missed.
    actor.registry.set_accepts_tasks(agent, claim);
    let mut lists: Vec<Option<Name>> = actor.tasks.iter().map(|(team, _)| team.clone()).collect();
    lists.extend(
        actor
            .role
            .teammate()
            .map(|teammate| Some(teammate.team_identity.team.clone())),
    );
    lists.sort_unstable();
    lists.dedup();
    let mut open = Vec::new();
    for team in lists {
        let status = Some(TaskStatus::InProgress);
        let filter = TaskFilter {
            status,
            owner: Some(agent),
            ..TaskFilter::default()
        };
        open.extend(store.tasks(list(actor, team), filter, OWN).await?);
    }
    let team_identity = actor
        .role
        .teammate()
        .map(|teammate| Arc::clone(&teammate.team_identity));
    let (Some(team_identity), true) = (team_identity, claim && open.is_empty()) else {
        return Ok(Input::Found {
            open,
            claimed: None,
        });
    };
    let (team, takes) = (
        Some(team_identity.team.clone()),
        team_identity.takes.clone(),
    );
    let ready = Some(Ready {
        agent: Some(agent),
        takes: takes.clone(),
    });
    let filter = TaskFilter {
        ready,
        ..TaskFilter::default()
    };
    if store
        .tasks(list(actor, team.clone()), filter, 1)
        .await?
        .is_empty()
    {
        return Ok(Input::Found {
            open,
            claimed: None,
        });
    }
    let op = Op::ClaimNext {
        team: team.clone(),
        takes,
    };
    // Who takes one is at work from then on: a lead that looks meanwhile does not take it for idle.
    let (operations, state) = (
        vec![Operation { call: None, op }],
        StateChange::To(AgentState::Running),
    );
    let step = Step {
        operations,
        state: Some(state),
        ..actor.new_step()
    };
    let committed = store.commit(step).await?;
    let claimed = committed
        .results
        .into_iter()
        .find_map(|result| match result {
            Ok(Done::Claimed(task)) => Some(task),
            _ => None,
        });
    match &claimed {
        Some(task) => drop(actor.tasks.insert((team, task.id))),
        // Somebody was faster.
        None if !actor.machine.has_run() => {
            actor.tell_state(AgentState::Idle).await?;
            lead::wake_main(actor);
        }
        None => {}
    }
    Ok(Input::Found { open, claimed })
}
