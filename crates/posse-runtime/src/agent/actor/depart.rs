//! Ends of an agent: in order, after a store failure, after a panic.

use std::sync::Arc;

use posse_port::store::StoreError;
use posse_protocol::{EventKind, Fault, FaultClass, Outcome, RunChange as News, RunEnd, RunUpdate};

use crate::agent::actor::sub_agent::last_resort;
use crate::agent::actor::work::{ModelWork, Work};
use crate::agent::actor::{Actor, Role, hooks, report, sub_agent};
use crate::agent::ending;
use crate::agent::hooked_worktree::WorktreeHooks;
use crate::agent::step::Ended;
use crate::live::stop;

/// Leaves the registry and reports the end to those who wait. Returns true if mail may have arrived
/// since.
pub(super) async fn depart(mut actor: Actor, lost: Option<EventKind>) -> bool {
    let agent = actor.identity.agent;
    // A run that breaks off has not looked at its worktree yet.
    let looked = if lost.is_some() {
        sub_agent::own_worktree_end(&actor).await
    } else {
        None
    };
    let worktree = actor
        .role
        .sub_agent_mut()
        .and_then(|sub| sub.worktree.take());
    // From here on it can be revived, unless its worktree must be released first.
    let alive = actor.alive.take().filter(|_| worktree.is_some());
    let unread = actor.machine.left_mail() && !actor.stop.token.is_cancelled();
    let (sub, teammate) = match actor.role {
        Role::Main { .. } => (None, None),
        Role::Sub(sub) => (Some(sub), None),
        Role::Teammate(sub, teammate) => (Some(sub), Some(teammate)),
    };
    let Some(sub) = sub else {
        // Before the last event: a front end that sees the end may resume the session at once.
        actor.registry.leave(agent);
        if let Some(event) = lost {
            actor.sink.emit(event).await;
        }
        // Hooks that a front end runs for it end, so that nothing waits for their events.
        actor.stop.token.cancel();
        // The error is dropped: if this fails, the lease runs out and others can take the agent.
        let _ = actor.ports.store.release(agent, actor.identity.epoch).await;
        return false;
    };
    if let Some(teammate) = teammate.filter(|_| lost.is_none()) {
        match sub.end {
            Some(_) => {
                let left = teammate
                    .team_identity
                    .news(posse_protocol::MemberChange::Left);
                actor.sink.emit(EventKind::Member(left)).await;
            }
            None => {
                // It has not left its team: another process, or a later resume, continues it.
                actor.registry.leave(agent);
                let end = ending::broken(&sub.run.facts, sub.run.id, "posse was stopped".into());
                sub.run.over(end);
                if let Some(worktree) = worktree {
                    actor.ports.worktrees.release(&worktree).await;
                }
                // The lease runs out by itself if this fails.
                let _ = actor.ports.store.release(agent, actor.identity.epoch).await;
                return false;
            }
        }
    }
    let broken = |error| ending::broken(&sub.run.facts, sub.run.id, error);
    let mut end = match (sub.end, &lost) {
        (Some(end), None) => end,
        (_, Some(EventKind::Ended(end))) => match &end.outcome {
            Outcome::Failed(fault) | Outcome::Paused(fault) => broken(fault.message.clone()),
            _ => broken("the store failed".into()),
        },
        _ => broken("it was stopped before it had begun".into()),
    };
    end.worktree = end.worktree.or(looked);
    if lost.is_some() && sub.run.is_durable() {
        // The step that failed was to report the end. One more attempt, so that its starter hears
        // of it.
        last_resort(&actor.ports, actor.identity, &sub.run, &end, 0).await;
    }
    // Left before the run is over: those that wait for the end must not find it registered.
    let (mail, durable) = (actor.registry.leave(agent) || unread, sub.run.is_durable());
    let removed = end
        .worktree
        .as_ref()
        .is_some_and(|worktree| worktree.kept.is_none());
    sub.run.over(end.clone());
    // Nobody was told that a run began that is not durable, so nobody is told of its end.
    if durable {
        if sub.run.is_background() {
            let (session, rights) = (&*actor.session, actor.machine.rights());
            let outside = (&actor.ports, &actor.supervisor);
            hooks::on_background_ended(outside, (session, rights), &sub.run.facts);
        }
        let news = RunUpdate {
            run: sub.run.facts.clone(),
            what: News::Ended(Box::new(end)),
        };
        actor.sink.emit(EventKind::Run(Box::new(news))).await;
    }
    let Some(worktree) = worktree else {
        return mail;
    };
    // After the end was reported: nobody has to wait for files to be deleted.
    let left = match worktree.by_hook {
        true => {
            let hooks = WorktreeHooks {
                ports: &actor.ports,
                session: &actor.session,
                rights: actor.machine.rights(),
                agent,
            };
            hooks.remove(&worktree, actor.supervisor.branch()).await
        }
        false => actor.ports.worktrees.release(&worktree).await,
    };
    if let Some(kept) = left.filter(|_| removed) {
        let what = format!(
            "the worktree {} was kept after all: {kept}",
            worktree.path.display()
        );
        actor.sink.emit(EventKind::Warning(what)).await;
    }
    drop(alive);
    // While it was held, mail could not revive it, so the inbox is looked at again. If the store
    // has failed, it would fail again.
    mail || lost.is_none()
}

/// Gives back an agent that was assembled and will not start.
pub(crate) async fn give_back(mut actor: Actor) {
    actor.registry.leave(actor.identity.agent);
    // The error is dropped: if this fails, the lease runs out and others can take the agent.
    let _ = actor
        .ports
        .store
        .release(actor.identity.agent, actor.identity.epoch)
        .await;
    if let Some(worktree) = actor
        .role
        .sub_agent_mut()
        .and_then(|sub| sub.worktree.take())
    {
        actor.ports.worktrees.release(&worktree).await;
    }
}

/// Returns what to do if the agent panics: those who wait must not wait for an end that never
/// comes.
pub(crate) fn crashed(actor: &Actor) -> impl Future<Output = ()> + Send + 'static {
    let (sink, ports, identity) = (actor.sink.clone(), actor.ports.clone(), actor.identity);
    let registry = Arc::clone(&actor.registry);
    let run = actor.role.sub_agent().map(|sub| Arc::clone(&sub.run));
    let worktree = actor.role.sub_agent().and_then(|sub| sub.worktree.clone());
    async move {
        let message = "posse itself failed during the run".to_owned();
        let mut end = run
            .as_ref()
            .map(|run| ending::broken(&run.facts, run.id, message.clone()));
        if let (Some(end), Some(worktree)) = (&mut end, &worktree) {
            end.worktree = Some(sub_agent::worktree_end(&ports, worktree).await);
        }
        if let (Some(run), Some(end)) = (&run, &end)
            && run.is_durable()
        {
            sub_agent::last_resort(&ports, identity, run, end, 0).await;
        }
        if let Some(worktree) = worktree {
            ports.worktrees.release(&worktree).await;
        }
        // As in an orderly end: first the registry, then those who wait.
        registry.leave(identity.agent);
        match run.zip(end) {
            Some((run, end)) => run.over(end),
            None => {
                let fault = Fault {
                    class: FaultClass::Internal,
                    status: None,
                    message,
                };
                sink.emit(EventKind::Ended(Box::new(RunEnd::of(Outcome::Failed(
                    fault,
                )))))
                .await;
            }
        }
        // The error is dropped: if this fails, the lease runs out and others can take the agent.
        let _ = ports.store.release(identity.agent, identity.epoch).await;
    }
}

/// Returns how a run ends after a store failure. A store that cannot write fails everyone in the
/// session, so that the whole session is halted: no agent waits for one that can no longer answer.
pub(super) fn on_store_error(actor: &Actor, error: &StoreError) -> Outcome {
    let fault = Fault::from(error);
    match error {
        // Space can be made and a server started again; nothing that was acknowledged is lost.
        StoreError::Full { .. } | StoreError::Engine { .. } => {
            let outcome = Outcome::Paused(fault);
            stop::halt(&actor.registry, &actor.session, outcome.clone());
            outcome
        }
        _ => Outcome::Failed(fault),
    }
}

/// Ends the run where it is: no effect of a failed step has happened, and nothing more will.
pub(super) fn break_off(actor: &mut Actor, outcome: Outcome, work: &mut Work) -> EventKind {
    let ended = Ended {
        outcome,
        run: actor.machine.take_run(),
    };
    // Dropping the call drops its reservation and its lead, so that siblings need not wait.
    (work.model, work.entry) = (ModelWork::None, None);
    work.calls.cancel();
    let mut event = report::run_ended(actor, ended, work, 0);
    if let EventKind::Ended(end) = &mut event {
        // Whatever ends now begins no run of this agent any more.
        end.live = 0;
    }
    event
}
