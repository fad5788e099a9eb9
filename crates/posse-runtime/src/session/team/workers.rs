//! Leaves teammates to workers: the lead creates them, and a worker that has room takes them from
//! the store. The lead's process does not run them itself; it warns if no worker does.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use posse_port::store::{AgentRecord, Epoch, StoreError};
use posse_port::text::line;
use posse_protocol::{AgentId, Event, EventKind, MemberState};

use crate::definition::spawning::WORKER;
use crate::live::lookup::{is_teammate, terms};
use crate::live::session::Session;
use crate::live::{lookup, roster};
use crate::prompt::reminder;
use crate::session::factory::Factory;
use crate::session::start_error::StartError;

/// Time that a member may wait for a worker before a warning.
const PATIENCE: Duration = Duration::from_secs(15);
/// Interval at which the store is asked who waits.
const LOOK: Duration = Duration::from_secs(1);

/// Leaves a teammate that was created here to any worker.
pub(crate) async fn leave_to_workers(
    factory: &Arc<Factory>,
    agent: AgentId,
    session: &Arc<Session>,
) {
    // The error is dropped: it means that a worker has taken the member already.
    let _ = factory.ports.store.release(agent, Epoch(1)).await;
    expect_workers(factory, session);
}

/// Watches that workers take what is left to them, as long as something is.
pub(crate) fn expect_workers(factory: &Arc<Factory>, session: &Arc<Session>) {
    // One watcher for each session: the swap lets only the first caller through.
    if !session.leaves_to_workers() || session.expects.swap(true, Ordering::AcqRel) {
        return;
    }
    let (there, session, stop) = (
        Arc::downgrade(factory),
        Arc::downgrade(session),
        factory.supervisor.branch(),
    );
    factory.supervisor.start_errand(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = expect(there, session) => {}
        }
    });
}

/// Returns the members of a session's teams that wait for a worker.
async fn free(factory: &Arc<Factory>, session: &Session) -> Vec<(AgentId, String)> {
    // The error is dropped: the next commit meets the same failure and reports it.
    let teams = roster::teams(&*factory.ports.store, session.realm)
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

/// Returns true if an agent of a session is for this process. Members that were created for workers
/// are for workers, with everything they start; nothing else is.
pub(crate) async fn is_for(
    factory: &Arc<Factory>,
    record: &AgentRecord,
    session: &Session,
) -> Result<bool, StoreError> {
    if !session.is_worker && !session.leaves_to_workers() {
        return Ok(true);
    }
    let mut at = record.clone();
    while !is_teammate(&at) {
        let parent = match &at.origin {
            Some(origin) => lookup::row(&*factory.ports.store, origin.parent).await?,
            None => None,
        };
        // There is no teammate above it: it comes from the main agent.
        let Some(parent) = parent else {
            return Ok(!session.is_worker);
        };
        at = parent;
    }
    if at.agent != record.agent && factory.registry.live_agent(at.agent).is_some() {
        return Ok(true);
    }
    let raised = roster::team_identity(&*factory.ports.store, at.realm, at.agent)
        .await?
        .is_some_and(|team_identity| team_identity.backend == WORKER);
    // A worker takes up what a member has started together with the member, or not at all.
    Ok(raised == session.is_worker && (at.agent == record.agent || !session.is_worker))
}

/// Returns true if a worker can run a member: its directory must exist here, and its transcript
/// must be in this process's dialect. A worker that cannot leaves the member alone, and reports it
/// once.
pub(crate) async fn is_fit_for(
    factory: &Arc<Factory>,
    record: &AgentRecord,
    session: &Session,
) -> Result<bool, StartError> {
    if !session.is_worker {
        return Ok(true);
    }
    let terms = terms(record, session);
    let place = terms
        .worktree
        .as_ref()
        .map_or(&record.cwd, |worktree| &worktree.origin);
    let why = if place.is_dir() {
        let dialect = factory.ports.store.read(record.agent).await?.dialect;
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
        .insert(record.agent)
    {
        let what = format!("left a member to other workers: {why}");
        session.events.try_send(Event {
            agent: record.agent,
            kind: EventKind::Warning(what),
        });
    }
    Ok(false)
}

/// Warns of members that have waited too long, until nobody waits.
async fn expect(factory: Weak<Factory>, session: Weak<Session>) {
    let mut waiting: HashMap<AgentId, Duration> = HashMap::new();
    loop {
        let Some(look) = factory
            .upgrade()
            .map(|factory| factory.ports.clock.sleep(LOOK))
        else {
            return;
        };
        look.await;
        let (Some(factory), Some(session)) = (factory.upgrade(), session.upgrade()) else {
            return;
        };
        let waits = free(&factory, &session).await;
        waiting.retain(|agent, _| waits.iter().any(|(waits, _)| waits == agent));
        if waits.is_empty() {
            session.expects.store(false, Ordering::Release);
            // A member left to workers between the query and the store above is seen by this second
            // query. If its own watcher has started since, this one ends.
            if free(&factory, &session).await.is_empty()
                || session.expects.swap(true, Ordering::AcqRel)
            {
                return;
            }
        }
        let mut late = Vec::new();
        for (agent, name) in waits {
            let waited = waiting.entry(agent).or_default();
            *waited += LOOK;
            // Equal, not at least: each member is reported once.
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
            session.notice(reminder(&line(&what)));
            let event = Event {
                agent: session.root,
                kind: EventKind::Warning(what),
            };
            session.events.send(event).await;
        }
    }
}
