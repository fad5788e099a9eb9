//! How an agent departs: in order, after a store failure, after a panic.

use std::sync::Arc;

use posse_port::store::StoreError;
use posse_protocol::{EventKind, Fault, FaultClass, Outcome, RunChange as News, RunEnd, RunUpdate};

use crate::agent::actor::sub_agent::last_resort;
use crate::agent::actor::work::{ModelWork, Work};
use crate::agent::actor::{Actor, Role, report, sub_agent};
use crate::agent::ending;
use crate::agent::step::Ended;

/// Leaves the registry, and tells whoever waits how it ended. Whether mail may have come for it since.
pub(super) async fn depart(mut actor: Actor, lost: Option<EventKind>) -> bool {
    let agent = actor.identity.agent;
    // Of a run that breaks off nobody has looked yet.
    let looked = if lost.is_some() {
        sub_agent::own_worktree_end(&actor).await
    } else {
        None
    };
    let worktree = actor
        .role
        .sub_agent_mut()
        .and_then(|sub| sub.worktree.take());
    // From here on it can be brought to life again, unless what it works in must be given back first.
    let alive = actor.alive.take().filter(|_| worktree.is_some());
    let unread = actor.machine.left_mail() && !actor.stop.token.is_cancelled();
    let (sub, teammate) = match actor.role {
        Role::Main => (None, None),
        Role::Sub(sub) => (Some(sub), None),
        Role::Teammate(sub, teammate) => (Some(sub), Some(teammate)),
    };
    let Some(sub) = sub else {
        actor.registry.leave(agent);
        if let Some(event) = lost {
            actor.sink.emit(event).await;
        }
        // If it fails, others find out by themselves that this process has ended.
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
                // It goes on another time, or elsewhere.
                actor.registry.leave(agent);
                let end = ending::broken(&sub.run.facts, sub.run.id, "posse was stopped".into());
                sub.run.over(end);
                if let Some(worktree) = worktree {
                    actor.ports.worktrees.release(&worktree).await;
                }
                let _ = actor.ports.store.release(agent, actor.identity.epoch).await;
                return false;
            }
        }
    }
    let broken = |error| ending::broken(&sub.run.facts, sub.run.id, error);
    let mut end = match (sub.end, &lost) {
        (Some(end), None) => end,
        (_, Some(EventKind::Ended(end))) => match &end.outcome {
            Outcome::Failed(fault) => broken(fault.message.clone()),
            _ => broken("the store failed".into()),
        },
        _ => broken("it was stopped before it had begun".into()),
    };
    end.worktree = end.worktree.or(looked);
    if lost.is_some() && sub.run.is_durable() {
        last_resort(&actor.ports, actor.identity, &sub.run, &end, 0).await;
    }
    let (mail, durable) = (actor.registry.leave(agent) || unread, sub.run.is_durable());
    let removed = end
        .worktree
        .as_ref()
        .is_some_and(|worktree| worktree.kept.is_none());
    sub.run.over(end.clone());
    // Of one that is not durable nobody has heard that it began, either.
    if durable {
        let news = RunUpdate {
            run: sub.run.facts.clone(),
            what: News::Ended(Box::new(end)),
        };
        actor.sink.emit(EventKind::Run(Box::new(news))).await;
    }
    let Some(worktree) = worktree else {
        return mail;
    };
    if let Some(kept) = actor
        .ports
        .worktrees
        .release(&worktree)
        .await
        .filter(|_| removed)
    {
        let what = format!(
            "the worktree {} was kept after all: {kept}",
            worktree.path.display()
        );
        actor.sink.emit(EventKind::Warning(what)).await;
    }
    drop(alive);
    // Mail that has come meanwhile could not bring it back. Where the store fails it would fail again.
    mail || lost.is_none()
}

/// It was put together, and will not live after all.
pub(crate) async fn give_back(mut actor: Actor) {
    actor.registry.leave(actor.identity.agent);
    // If it fails, others find out by themselves that this process has ended.
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

/// What is done in its place if it panics: whoever waits must not wait for an end that never comes.
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
        // If it fails, others find out by themselves that this process has ended.
        let _ = ports.store.release(identity.agent, identity.epoch).await;
    }
}

/// The store refused: nothing that it did not take has happened, and nothing more will.
pub(super) fn on_store_error(actor: &mut Actor, error: &StoreError, work: &mut Work) -> EventKind {
    let fault = Fault::from(error);
    let ended = Ended {
        outcome: Outcome::Failed(fault),
        run: actor.machine.take_run(),
    };
    // Whoever waits for it waits no longer.
    (work.model, work.entry) = (ModelWork::None, None);
    work.calls.cancel();
    report::run_ended(actor, ended, work, 0)
}
