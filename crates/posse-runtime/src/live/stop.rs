//! Stops runs with everything below them: first they are frozen so that nothing new begins, then
//! each is told to end, then all are waited for.

use std::sync::Arc;

use posse_protocol::{AgentId, Command, Notification, Outcome};
use uuid::Uuid;

use crate::live::registry::{By, LiveAgent, Registry, RegistryEntry};
use crate::live::run::Run;
use crate::live::session::Session;
use crate::live::wakeup::WakeReason;

/// Tells a run to end, without waiting for it.
pub(crate) fn abandon(registry: &Registry, run: &Run, by: AgentId) {
    tell_to_stop(registry, run.facts.task, By::Agent(by));
}

/// Stops every background run of a session and waits until all have ended.
pub(crate) async fn stop_all(registry: &Registry, root: AgentId, by: By) {
    let mut found: Vec<(u32, AgentId, Arc<Run>)> = Vec::new();
    for (agent, it) in registry
        .live_agents()
        .iter()
        .filter(|(_, it)| it.who.session.root == root)
    {
        if it.who.teammate.is_some() {
            // A teammate is interrupted, and stays a member of its team.
            let _ = it.who.commands.try_send(Command::Interrupt);
        }
        let own = it
            .who
            .run
            .iter()
            .filter(|run| run.is_background() && it.who.teammate.is_none());
        found.extend(own.map(|run| (it.who.depth, it.who.parent.unwrap_or(root), Arc::clone(run))));
        found.extend(
            it.shells
                .values()
                .map(|shell| (it.who.depth + 1, *agent, Arc::clone(&shell.run))),
        );
    }
    // From the top: stopping a run stops everything below it too.
    found.sort_by_key(|(depth, ..)| *depth);
    let mut told = Vec::new();
    for (_, above, run) in found {
        if !registry.is_frozen(above) {
            told.extend(tell_to_stop(registry, run.facts.task, by));
        }
    }
    for run in told {
        run.ended().await;
    }
}

/// Stops the agents that an agent has in the background. The agent ends its commands itself.
pub(crate) async fn stop_agents(registry: &Registry, agent: AgentId, by: By) {
    let mut runs = registry.live_runs(agent);
    runs.retain(|run| run.is_agent());
    stop_runs(registry, runs, by).await;
}

/// Stops runs with everything below them, and waits until all have ended.
async fn stop_runs(registry: &Registry, runs: Vec<Arc<Run>>, by: By) {
    let told: Vec<_> = runs
        .iter()
        .flat_map(|run| tell_to_stop(registry, run.facts.task, by))
        .collect();
    for run in told {
        run.ended().await;
    }
}

/// Stops a run with everything it has started, and waits until all have ended. Returns its end;
/// none if there is no such run here.
pub(crate) async fn stop(registry: &Registry, task: Uuid, by: By) -> Option<Arc<Notification>> {
    let runs = tell_to_stop(registry, task, by);
    let top = runs.first()?.clone();
    for run in &runs {
        run.ended().await;
    }
    top.outcome()
}

/// Tells a run and all below it to end, and returns them; the run itself comes first.
fn tell_to_stop(registry: &Registry, task: Uuid, by: By) -> Vec<Arc<Run>> {
    let Some((run, owner)) = registry.run(task) else {
        return Vec::new();
    };
    if !run.is_agent() {
        let shell = registry
            .live_agents()
            .get(&owner)
            .and_then(|it| it.shells.get(&task).cloned());
        shell.iter().for_each(|shell| shell.stop.stop(by));
        return vec![run];
    }
    // All are frozen before the first is told: otherwise one that ends could be replaced by another
    // that its parent starts.
    let frozen = freeze(registry, owner);
    for Frozen { agent, who } in &frozen {
        who.stop.stop(if *agent == owner { by } else { by.below() });
    }
    frozen
        .into_iter()
        .filter_map(|frozen| frozen.who.run.clone())
        .collect()
}

/// Freezes an agent and all below it: none of them can start anything.
fn freeze(registry: &Registry, top: AgentId) -> Vec<Frozen> {
    // One lock for the whole walk: no child can be entered between finding and freezing its parent.
    let mut live_agents = registry.live_agents();
    let mut found = vec![top];
    let mut at = 0;
    while at < found.len() {
        let above = found[at];
        found.extend(
            live_agents
                .iter()
                .filter(|(_, it)| it.who.parent == Some(above))
                .map(|(agent, _)| *agent),
        );
        at += 1;
    }
    let frozen = found.into_iter().filter_map(|agent| {
        let entry = live_agents.get_mut(&agent)?;
        entry.frozen = true;
        Some(Frozen {
            agent,
            who: Arc::clone(&entry.who),
        })
    });
    frozen.collect()
}

/// Tells the teammates of a session that live here to end. They remain members of their teams.
pub(crate) fn give_up_mates(registry: &Registry, session: &Arc<Session>) {
    let ours =
        |it: &&RegistryEntry| it.who.teammate.is_some() && Arc::ptr_eq(&it.who.session, session);
    for live_agent in registry.live_agents().values().filter(ours) {
        live_agent.who.stop.stop(By::Shutdown);
    }
}

/// Halts a session: its main agent ends its run with this outcome, and its teammates end with it.
/// They remain members of their teams, so that the session can be continued.
pub(crate) fn halt(registry: &Registry, session: &Session, outcome: Outcome) {
    // The first reason is what people are told; what comes after follows from it.
    if session.halted.set(outcome).is_ok() {
        registry.wake(session.root, WakeReason::Halted);
    }
}

/// Tells all agents of a session that live here to end.
pub(crate) fn give_up_tree(registry: &Registry, session: &Arc<Session>, by: By) {
    for live_agent in registry
        .live_agents()
        .values()
        .filter(|it| Arc::ptr_eq(&it.who.session, session))
    {
        live_agent.who.stop.stop(by);
    }
}

/// An agent that was frozen.
struct Frozen {
    agent: AgentId,
    who: Arc<LiveAgent>,
}
