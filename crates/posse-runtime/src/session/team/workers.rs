//! Teammates that any worker may take: they are born by the lead, and whoever has room for them takes them from the
//! store. What is left to workers the lead's process does not take up itself; it says so if nobody else does.

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

/// How long a member may wait for a worker until that is said, and how often it is looked.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_secs(1);

/// Leaves a teammate that was born here to whichever worker takes it.
pub(crate) async fn leave_to_workers(
    factory: &Arc<Factory>,
    agent: AgentId,
    session: &Arc<Session>,
) {
    // Whoever fences it now has it already.
    let _ = factory.ports.store.release(agent, Epoch(1)).await;
    expect_workers(factory, session);
}

/// Looks whether workers take what is left to them, as long as something is.
pub(crate) fn expect_workers(factory: &Arc<Factory>, session: &Arc<Session>) {
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

/// Members of a session's teams that wait for a worker.
async fn free(factory: &Arc<Factory>, session: &Session) -> Vec<(AgentId, String)> {
    // A store that fails is noticed by whoever commits next.
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

/// Whether an agent of a session is for this process. What was raised for workers is for them, with all that comes
/// from it; and nothing else is.
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
        // It comes from the main agent.
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
    // What a member has started comes with it, or stays.
    Ok(raised == session.is_worker && (at.agent == record.agent || !session.is_worker))
}

/// Whether a worker can do anything for a member: what the member works on must be here, and its model be spoken to
/// as its transcript is written. One that cannot leaves it as it is, and says so once.
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
        let _ = session.events.try_send(Event {
            agent: record.agent,
            kind: EventKind::Warning(what),
        });
    }
    Ok(false)
}

/// Looks who waits for a worker, and says who has waited for too long, until nobody waits.
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
            // Who was left to them since is looked after here, or by whoever has left it.
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
            let _ = session.events.send(event).await;
        }
    }
}
