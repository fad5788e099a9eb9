//! Tasks that an agent has, and how a teammate finds the next one.

use std::sync::Arc;

use posse_port::store::{
    AgentState, Done, Op, OpResult, Operation, Page, Ready, StateChange, Step, StoreError,
    TaskFilter,
};
use posse_protocol::{ListId, Name, Task, TaskId, TaskStatus};

use crate::agent::actor::{Actor, lead};
use crate::agent::step::Input;
use crate::live::roster;
use crate::prompt;

/// Maximum number of an agent's own tasks that are looked at.
const OWN: usize = 32;

/// What the operations of a step do to tasks and to the agent's membership.
pub(crate) struct OwnTasks {
    /// Tasks with the position of the operation that changes them.
    touched: Vec<(usize, Option<Name>, TaskId)>,
    /// Position of the operation that agrees to a shutdown.
    agrees: Option<usize>,
}

impl OwnTasks {
    /// Collects what operations do to tasks.
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

/// Claims the tasks again that a revived teammate worked on, unless another has them.
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
        .tasks(list(actor, team.clone()), filter, Page::first(OWN))
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
        // Its process may have died after the claim and before the entry that tells of it. Then the
        // task is told in full.
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

/// Shows the registry whether the agent would take a task.
pub(super) fn show_accepts_tasks(actor: &Actor) {
    if actor.role.is_teammate() {
        actor
            .registry
            .set_accepts_tasks(actor.identity.agent, actor.machine.accepts_tasks());
    }
}

/// Returns an input to look for tasks. If the agent cannot look now, another teammate is woken.
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
        // The error is dropped: the next commit meets the same failure and reports it.
        .start_errand(async move { drop(roster::tasks_for(&registry, &*store, list).await) });
    None
}

/// Remembers the tasks that the agent has claimed, and whether it agreed to shut down.
pub(super) fn note_tasks(actor: &mut Actor, own: OwnTasks, results: &[OpResult]) {
    let done = |at: &usize| results.get(*at).is_some_and(Result::is_ok);
    let touched = own.touched.into_iter().filter(|(at, ..)| done(at));
    actor.tasks.extend(touched.map(|(_, team, id)| (team, id)));
    actor.machine.set_owning(!actor.tasks.is_empty());
    if actor.role.is_teammate() && own.agrees.as_ref().is_some_and(done) {
        actor.machine.leave();
    }
}

/// Returns the list of a team; none for the session's.
pub(super) fn list(actor: &Actor, team: Option<Name>) -> ListId {
    ListId {
        realm: actor.identity.realm,
        team,
    }
}

/// Finds the tasks that the agent works on; if there are none and `claim` is set, claims the next.
pub(super) async fn check_tasks(actor: &mut Actor, claim: bool) -> Result<Input, StoreError> {
    let agent = actor.identity.agent;
    let store = Arc::clone(&actor.ports.store);
    // Marked before it looks: it is woken for tasks that become ready after the query.
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
        open.extend(
            store
                .tasks(list(actor, team), filter, Page::first(OWN))
                .await?,
        );
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
    // Asked before claiming: an idle team would otherwise write a step for every look.
    if store
        .tasks(list(actor, team.clone()), filter, Page::first(1))
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
    // The claim makes it running in the same step, so that a lead that looks now does not take it
    // for idle.
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
        // Another teammate was faster. The step has made it running, so that is taken back.
        None if !actor.machine.has_run() => {
            actor.tell_state(AgentState::Idle).await?;
            lead::wake_main(actor);
        }
        None => {}
    }
    Ok(Input::Found { open, claimed })
}
