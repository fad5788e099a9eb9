//! Teammates that any worker may take: they are born by the lead, and whoever has room for them takes them from the
//! store. What is left to workers the lead's process does not take up itself; it says so if nobody else does.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use posse_port::store::{Epoch, Session, StoreError};
use posse_port::text::line;
use posse_protocol::{AgentId, Event, EventKind, MemberState};

use crate::definition::spawning::WORKER;
use crate::live::lookup::{is_mate, terms};
use crate::live::session::Tree;
use crate::live::{lookup, roster};
use crate::prompt::reminder;
use crate::session::factory::Factory;
use crate::session::start_error::StartError;

/// How long a member may wait for a worker until that is said, and how often it is looked.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_secs(1);

/// Leaves a teammate that was born here to whichever worker takes it.
pub(crate) async fn leave_to_workers(factory: &Arc<Factory>, agent: AgentId, tree: &Arc<Tree>) {
    // Whoever fences it now has it already.
    let _ = factory.ports.store.release(agent, Epoch(1)).await;
    expect_workers(factory, tree);
}

/// Looks whether workers take what is left to them, as long as something is.
pub(crate) fn expect_workers(factory: &Arc<Factory>, tree: &Arc<Tree>) {
    if !tree.leaves_to_workers() || tree.expects.swap(true, Ordering::AcqRel) {
        return;
    }
    let (there, tree, stop) = (
        Arc::downgrade(factory),
        Arc::downgrade(tree),
        factory.supervisor.branch(),
    );
    factory.supervisor.start_errand(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = expect(there, tree) => {}
        }
    });
}

/// Members of a session's teams that wait for a worker.
async fn free(factory: &Arc<Factory>, tree: &Tree) -> Vec<(AgentId, String)> {
    // A store that fails is noticed by whoever commits next.
    let teams = roster::teams(&*factory.ports.store, tree.realm)
        .await
        .unwrap_or_default();
    let members = teams
        .iter()
        .flat_map(|team| team.members.iter().map(|member| (&team.name, member)));
    let free = members.filter(|(_, member)| {
        !member.held && member.backend == WORKER && member.state != MemberState::ShutDown
    });
    free.map(|(team, member)| (member.agent, format!("{}@{team}", member.name)))
        .collect()
}

/// Whether an agent of a session is for this process. What was raised for workers is for them, with all that comes
/// from it; and nothing else is.
pub(crate) async fn is_for(
    factory: &Arc<Factory>,
    session: &Session,
    tree: &Tree,
) -> Result<bool, StoreError> {
    if !tree.is_worker && !tree.leaves_to_workers() {
        return Ok(true);
    }
    let mut at = session.clone();
    while !is_mate(&at) {
        let parent = match &at.origin {
            Some(origin) => lookup::row(&*factory.ports.store, origin.parent).await?,
            None => None,
        };
        // It comes from the main agent.
        let Some(parent) = parent else {
            return Ok(!tree.is_worker);
        };
        at = parent;
    }
    if at.agent != session.agent && factory.registry.resident(at.agent).is_some() {
        return Ok(true);
    }
    let raised = roster::team_identity(&*factory.ports.store, at.realm, at.agent)
        .await?
        .is_some_and(|team_identity| team_identity.backend == WORKER);
    // What a member has started comes with it, or stays.
    Ok(raised == tree.is_worker && (at.agent == session.agent || !tree.is_worker))
}

/// Whether a worker can do anything for a member: what the member works on must be here, and its model be spoken to
/// as its transcript is written. One that cannot leaves it as it is, and says so once.
pub(crate) async fn is_fit_for(
    factory: &Arc<Factory>,
    session: &Session,
    tree: &Tree,
) -> Result<bool, StartError> {
    if !tree.is_worker {
        return Ok(true);
    }
    let terms = terms(session, tree);
    let place = terms
        .worktree
        .as_ref()
        .map_or(&session.cwd, |worktree| &worktree.origin);
    let why = if place.is_dir() {
        let dialect = factory.ports.store.read(session.agent).await?.dialect;
        let asked = factory.ports.model.dialect();
        (dialect != asked)
            .then(|| format!("it was started with {dialect}, and this process uses {asked}"))
    } else {
        Some(format!("{} does not exist here", place.display()))
    };
    let Some(why) = why else { return Ok(true) };
    if factory
        .left
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(session.agent)
    {
        let what = format!("left a member to other workers: {why}");
        let _ = tree.events.try_send(Event {
            agent: session.agent,
            kind: EventKind::Unheard(what),
        });
    }
    Ok(false)
}

/// Looks who waits for a worker, and says who has waited for too long, until nobody waits.
async fn expect(factory: Weak<Factory>, tree: Weak<Tree>) {
    let mut waiting: HashMap<AgentId, Duration> = HashMap::new();
    loop {
        let Some(look) = factory
            .upgrade()
            .map(|factory| factory.ports.clock.sleep(LOOK))
        else {
            return;
        };
        look.await;
        let (Some(factory), Some(tree)) = (factory.upgrade(), tree.upgrade()) else {
            return;
        };
        let waits = free(&factory, &tree).await;
        waiting.retain(|agent, _| waits.iter().any(|(waits, _)| waits == agent));
        if waits.is_empty() {
            tree.expects.store(false, Ordering::Release);
            // Who was left to them since is looked after here, or by whoever has left it.
            if free(&factory, &tree).await.is_empty() || tree.expects.swap(true, Ordering::AcqRel) {
                return;
            }
        }
        let mut late = Vec::new();
        for (agent, name) in waits {
            let waited = waiting.entry(agent).or_default();
            *waited += LOOK;
            if *waited == PATIENCE {
                late.push(name);
            }
        }
        if !late.is_empty() {
            let what = format!(
                "no worker has taken {} for {} seconds; `posse worker` starts one",
                late.join(", "),
                PATIENCE.as_secs()
            );
            tree.notice(reminder(&line(&what)));
            let event = Event {
                agent: tree.root,
                kind: EventKind::Unheard(what),
            };
            let _ = tree.events.send(event).await;
        }
    }
}
