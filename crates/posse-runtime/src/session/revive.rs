//! Revives sub-agents: those that a message wakes, and those that a dead process left at work.
//!
//! Both take the agent from the store, which raises its epoch, so that a process that still held it
//! can write nothing. Then what was open is settled, and the agent starts in a new background run.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use posse_port::store::{
    AgentFilter, AgentRecord, AgentState, Epoch, MailFilter, Page, StateChange, Step, StoreError,
    Taken,
};
use posse_protocol::{
    AgentId, Command, Event, EventKind, MailKind, MemberChange, MemberState, Sender,
};
use uuid::Uuid;

use crate::agent::actor::{
    Identity, SubAgent, Teammate, depart, last_resort, sub_agent, teammate, wall_ms,
};
use crate::agent::ending;
use crate::agent::output::Output;
use crate::definition::output_schema::OutputSchema;
use crate::definition::spawning::IN_PROCESS;
use crate::definition::terms::Terms;
use crate::live::lookup::{is_teammate, terms};
use crate::live::run::Run;
use crate::live::session::Session;
use crate::live::setup::startable_at;
use crate::live::wakeup::WakeReason as Nudging;
use crate::live::{lookup, roster};
use crate::prompt;
use crate::session::assemble::{AgentParts, Assembled, Seed, SubAgentParts};
use crate::session::factory::{Factory, ToolsOf};
use crate::session::recover::{depth, facts};
use crate::session::servers;
use crate::session::start_error::StartError;
use crate::session::team::workers;
use crate::session::workspace::workspace_again;
use crate::session::{assemble, limits, recover};
use crate::supervise::AliveGuard;

/// Maximum number of unfinished agents that are taken up at once.
const UNFINISHED: usize = 10_000;

/// Mail for which an agent is revived.
struct Waiting {
    /// Number of the newest mail.
    newest: u64,
    /// Sender of the first message.
    from: Option<AgentId>,
}

impl Waiting {
    /// Returns the agent that is told when the run ends: the sender. If only a notification woke
    /// it, its parent is told: two agents that notified each other would wake each other for ever.
    fn starter(&self, record: &AgentRecord) -> AgentId {
        let parent = record
            .origin
            .as_ref()
            .map_or(record.agent, |origin| origin.parent);
        self.from.unwrap_or(parent)
    }
}

/// Revives a sub-agent for which mail waits.
pub(crate) async fn revive(factory: &Arc<Factory>, agent: AgentId) {
    // The error is dropped: the mail keeps waiting, and a later attempt reports what fails then.
    let _ = try_revive(factory, agent).await;
}

/// Revives the agent, unless it lives already, wants nothing, or belongs elsewhere.
async fn try_revive(factory: &Arc<Factory>, agent: AgentId) -> Result<(), StartError> {
    // If it is being revived already, it looks into its inbox once it lives: no hint is lost.
    let Some(alive) = factory.supervisor.room_for(agent) else {
        return Ok(());
    };
    let Some(record) = lookup::row(&*factory.ports.store, agent).await? else {
        return Ok(());
    };
    let Some(waiting) = wants_back(factory, &record).await? else {
        return Ok(());
    };
    let Some(session) =
        lookup::session_of(&factory.registry, &*factory.ports.store, &record).await?
    else {
        return Ok(());
    };
    if is_teammate(&record) {
        // A member with a pane or a worker is left to that process; if it dies, the member is taken
        // up then.
        let team_identity =
            roster::team_identity(&*factory.ports.store, record.realm, agent).await?;
        if team_identity.is_none_or(|team_identity| team_identity.backend != IN_PROCESS)
            || !factory.registry.has_room(&session)
        {
            return Ok(());
        }
    }
    let (newest, starter) = (waiting.newest, waiting.starter(&record));
    let brought = async {
        let taken = factory.ports.store.take(agent).await?;
        bring_back(factory, taken, alive, &session, starter).await
    };
    match brought.await {
        Ok((assembled, unanswered)) => {
            if unanswered {
                // The mail may be gone: a process that has died since may have shown it to the
                // model. The send cannot fail, because nobody else knows the agent yet.
                let _ = factory.registry.tell(agent, Command::Continue);
            }
            assembled.0.expect_mail();
            assemble::start(factory, assembled);
            Ok(())
        }
        Err(error) => {
            // Tried again for newer mail, not at every hint of the same mail.
            beyond_reach(factory).insert(agent, newest);
            Err(error)
        }
    }
}

/// Locks the table of agents that could not be revived.
fn beyond_reach(factory: &Arc<Factory>) -> MutexGuard<'_, HashMap<AgentId, u64>> {
    factory
        .beyond_reach
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Returns the mail for which an ended agent is revived: none for a main agent, for one that a
/// person stopped, for mail that waited when it was stopped, and for mail that it could not be
/// revived for.
async fn wants_back(
    factory: &Arc<Factory>,
    record: &AgentRecord,
) -> Result<Option<Waiting>, StoreError> {
    let ended = record.ended.as_deref();
    if record.origin.is_none() || ended.is_some_and(|ended| ended.by_person) {
        return Ok(None);
    }
    let filter = MailFilter { waiting: true };
    let mail = factory
        .ports
        .store
        .mail(record.realm, record.agent, filter, Page::first(UNFINISHED))
        .await?;
    let newest = mail.last().map_or(0, |mail| mail.number);
    let stopped = ended.map_or(0, |ended| ended.mail);
    let tried = beyond_reach(factory)
        .get(&record.agent)
        .copied()
        .unwrap_or(0);
    // What is being stopped must not grow a new agent.
    let frozen = record.origin.as_ref().is_some_and(|origin| {
        factory.registry.live_agent(origin.parent).is_some()
            && factory.registry.is_frozen(origin.parent)
    });
    if newest <= stopped.max(tried) || frozen {
        return Ok(None);
    }
    let words = mail
        .iter()
        .filter(|mail| mail.kind != MailKind::Notification);
    let from = words.filter_map(|mail| match mail.from {
        Sender::Agent { id, .. } if id != record.agent => Some(id),
        _ => None,
    });
    Ok(Some(Waiting {
        newest,
        from: from.into_iter().next(),
    }))
}

/// Takes up the sub-agents of a session that a dead process left at work or for which mail waits.
/// They are assembled and not started.
pub(crate) async fn adopt(
    factory: &Arc<Factory>,
    session: &Arc<Session>,
) -> Result<Vec<Assembled>, StartError> {
    let filter = AgentFilter {
        realm: Some(session.realm),
        unfinished: true,
        ..AgentFilter::default()
    };
    // Teammates come first: a sub-agent belongs to this process only if its teammate is here.
    let mut found = members_of(factory, session).await?;
    for record in factory
        .ports
        .store
        .agents(filter, Page::first(UNFINISHED))
        .await?
    {
        if found.iter().all(|known| known.agent != record.agent) {
            found.push(record);
        }
    }
    let mut adopted: Vec<Assembled> = Vec::new();
    for record in &found {
        match take_up(factory, record, session).await {
            Ok(assembled) => adopted.extend(assembled),
            Err(StartError::Store(
                error @ (StoreError::Engine { .. } | StoreError::Full { .. }),
            )) => {
                // The store itself fails. What was taken is given back at once, so that another
                // process need not wait for this one's lease to run out.
                for (actor, _) in adopted {
                    depart::give_back(actor).await;
                }
                return Err(error.into());
            }
            // Another process has it.
            Err(StartError::Store(StoreError::Held { .. })) => {}
            // One damaged agent must not keep the session from resuming the others.
            Err(error) => {
                let what = format!("sub-agent {} could not be resumed: {error}", record.agent);
                let event = Event {
                    agent: session.root,
                    kind: EventKind::Warning(what),
                };
                // Not waited for: while a session is resumed nobody may be reading events yet.
                session.events.try_send(event);
            }
        }
    }
    for (actor, _) in &adopted {
        if let Some(sub) = actor.role.sub_agent().filter(|_| !actor.role.is_teammate()) {
            factory.registry.count(&sub.run);
        }
        // What it waited for may have ended while it was not registered.
        factory.registry.wake(actor.agent(), Nudging::Settle);
    }
    Ok(adopted)
}

/// Takes up one agent, if it belongs to this session and has something to do.
async fn take_up(
    factory: &Arc<Factory>,
    record: &AgentRecord,
    session: &Arc<Session>,
) -> Result<Option<Assembled>, StartError> {
    if !belongs(factory, record).await? {
        close_former(factory, record, session).await?;
        return Ok(None);
    }
    let starter = match record.state.is_open() || is_teammate(record) {
        true => record
            .starter
            .or(record.origin.as_ref().map(|origin| origin.parent)),
        false => wants_back(factory, record)
            .await?
            .map(|waiting| waiting.starter(record)),
    };
    let Some(starter) = starter else {
        return Ok(None);
    };
    let mine = lookup::session_of(&factory.registry, &*factory.ports.store, record)
        .await?
        .is_some_and(|found| Arc::ptr_eq(&found, session));
    if !mine || is_teammate(record) && !factory.registry.has_room(session) {
        return Ok(None);
    }
    if !workers::is_for(factory, record, session).await?
        || !workers::is_fit_for(factory, record, session).await?
    {
        return Ok(None);
    }
    let Some(alive) = factory.supervisor.room_for(record.agent) else {
        return Ok(None);
    };
    let taken = factory.ports.store.take(record.agent).await?;
    let (assembled, unanswered) = bring_back(factory, taken, alive, session, starter).await?;
    if unanswered {
        // Cannot fail: nobody else knows the agent yet.
        let _ = factory.registry.tell(record.agent, Command::Continue);
    }
    assembled.0.expect_mail();
    Ok(Some(assembled))
}

/// Assembles a stored sub-agent again, in a background run of its own, and settles what was open.
/// The flag is true if it has something to continue besides mail. An agent that cannot continue has
/// failed, and its starter is told.
async fn bring_back(
    factory: &Arc<Factory>,
    taken: Taken,
    alive: AliveGuard,
    session: &Arc<Session>,
    starter: AgentId,
) -> Result<(Assembled, bool), StartError> {
    let (record, epoch) = (taken.transcript.record.clone(), taken.epoch);
    match in_its_place(factory, taken, session, starter).await {
        Ok((mut assembled, unanswered)) => {
            assembled.0.alive = Some(alive);
            Ok((assembled, unanswered))
        }
        Err(error) => {
            if !is_of_the_store(&error) {
                give_up(factory, &record, epoch, session, starter, &error).await;
            }
            // Released last: before the failure is stored, another attempt would take the agent
            // again.
            drop(alive);
            Err(error)
        }
    }
}

/// Does the same after reclaiming the worktree that the agent has for itself.
async fn in_its_place(
    factory: &Arc<Factory>,
    taken: Taken,
    session: &Arc<Session>,
    starter: AgentId,
) -> Result<(Assembled, bool), StartError> {
    assemble::same_dialect(factory, &taken.transcript)?;
    let terms = terms(&taken.transcript.record, session);
    let Some(worktree) = terms.worktree.clone() else {
        return rebuild(factory, taken, session, starter, terms).await;
    };
    let remade = factory
        .ports
        .worktrees
        .reclaim(&worktree)
        .await
        .map_err(|why| StartError::Place(why.to_string()))?;
    match rebuild(factory, taken, session, starter, terms).await {
        Ok((mut assembled, unanswered)) => {
            if remade {
                assembled.0.machine.tell(prompt::remade(&worktree));
            }
            sub_agent::set_worktree(&mut assembled.0, Some(worktree));
            Ok((assembled, unanswered))
        }
        Err(error) => {
            factory.ports.worktrees.release(&worktree).await;
            Err(error)
        }
    }
}

/// Ends a sub-agent that cannot continue, and tells its starter.
async fn give_up(
    factory: &Arc<Factory>,
    record: &AgentRecord,
    epoch: Epoch,
    session: &Session,
    starter: AgentId,
    error: &StartError,
) {
    let run = Run::new(
        facts(record, starter, session.output(record.agent)),
        Uuid::now_v7(),
        true,
    );
    let mut end = ending::broken(
        &run.facts,
        run.id,
        format!("it could not continue: {error}"),
    );
    end.worktree = record
        .ended
        .as_ref()
        .and_then(|ended| ended.worktree.clone());
    let filter = MailFilter { waiting: true };
    let mail = factory
        .ports
        .store
        .mail(record.realm, record.agent, filter, Page::first(UNFINISHED))
        .await;
    // Mail up to this number counts as known to it, so that it does not revive the agent at once.
    let newest = mail
        .ok()
        .and_then(|mail| mail.last().map(|mail| mail.number))
        .unwrap_or(0);
    let who = Identity {
        realm: record.realm,
        agent: record.agent,
        epoch,
    };
    last_resort(&factory.ports, who, &run, &end, newest).await;
}

/// Assembles the agent below its parent, or below the main agent if the parent is gone.
async fn rebuild(
    factory: &Arc<Factory>,
    taken: Taken,
    session: &Arc<Session>,
    starter: AgentId,
    terms: Terms,
) -> Result<(Assembled, bool), StartError> {
    let record = taken.transcript.record.clone();
    let agent = record.agent;
    let output_file = session.output(agent);
    let mut facts = facts(&record, starter, output_file.clone());
    if !record.state.is_open() {
        // A message has begun this run, not a call.
        facts.call.clear();
    }
    let parent = record
        .origin
        .as_ref()
        .map_or(session.root, |origin| origin.parent);
    let team_identity = match &terms.teammate {
        Some(_) => roster::team_identity(&*factory.ports.store, record.realm, agent)
            .await?
            .map(Arc::new),
        None => None,
    };
    facts.name = team_identity
        .as_ref()
        .map(|team_identity| team_identity.name.clone())
        .or(facts.name);
    let depth = depth(&record.path);
    let (parent_here, root_here) = (
        factory.registry.live_agent(parent),
        factory.registry.live_agent(session.root),
    );
    // A mode that follows a parent's keeps its last value if the parent is gone. A teammate that
    // planned may have left plan mode since, which only its record knows.
    let follows = parent_here.is_some()
        && terms
            .teammate
            .as_ref()
            .is_none_or(|teammate| !teammate.plan);
    let mode = if follows {
        terms.mode
    } else {
        Some(record.mode)
    };
    let (above, account) = match parent_here.or(root_here) {
        Some(above) => (above.rights.clone(), above.account.clone()),
        None => (session.rights.clone(), session.account.clone()),
    };
    let workspace = workspace_again(&above, &record, &terms)
        .map_err(|why| StartError::Place(why.to_string()))?;
    let rights = above
        .child(mode, workspace)
        .map_err(|outside| StartError::Place(outside.to_string()))?;
    terms
        .give(&rights)
        .map_err(|why| StartError::Place(why.to_string()))?;
    let parts = AgentParts {
        terms: Some(Box::new(terms.clone())),
        ..AgentParts::taken(&taken, None, &*factory.ports.model)
    };
    let name = match &team_identity {
        Some(team_identity) => team_identity.address(),
        None => facts
            .name
            .as_ref()
            .map_or_else(|| record.path.clone(), ToString::to_string),
    };
    let kind = session.definition(&facts.agent_type);
    let run = Arc::new(Run::new(facts, Uuid::now_v7(), true));
    let sub = SubAgent::new(run, parent, Output::new(output_file), String::new());
    let types = startable_at(depth, &session.setup, &terms);
    let with = (Some(&terms), kind.as_deref());
    let servers = servers::connect(factory, session, agent, &rights, with);
    let below = SubAgentParts {
        session: Arc::clone(session),
        sub,
        depth,
        account: account.reopen(
            limits::budgets(
                &session.setup.spawning,
                terms.teammate.as_ref().and_then(|teammate| teammate.budget),
            ),
            factory.ports.clock.now(),
            &record.with_reserved().cloned().collect::<Vec<_>>(),
        ),
        tools: factory.tools.for_agent(
            factory,
            agent,
            &session.setup,
            ToolsOf {
                terms: Some(&terms),
                types: types.as_deref(),
                model: &parts.model,
                has_servers: servers.is_some(),
            },
        ),
        turns: terms.turns,
        // The schema was accepted when the agent was created, so it compiles again.
        output_schema: terms
            .schema
            .as_deref()
            .and_then(|schema| OutputSchema::new(schema).ok()),
        rights,
        name,
        teammate: team_identity
            .map(|team_identity| Teammate::new(team_identity, MemberChange::TakenOver)),
        servers,
    };
    let seed = Seed::of(&taken, &*factory.ports.model)?;
    let frozen = || StoreError::BadStep("nothing more can be started".into());
    let mut assembled = assemble::assemble_sub(factory, parts, seed, below).ok_or_else(frozen)?;
    let settled = match recover::recover(factory, &mut assembled.0, taken).await {
        Ok(settle) => assembled.0.settle(settle).await.map_err(StartError::from),
        Err(error) => Err(error),
    };
    let settled = match settled {
        Ok(()) => teammate::on_revived(&mut assembled.0, record.entries == 0)
            .await
            .map_err(StartError::from),
        Err(error) => Err(error),
    };
    // It was entered into the registry when it was assembled, and will not run to leave it.
    if let Err(error) = settled {
        factory.registry.leave(agent);
        return Err(error);
    }
    let unanswered = record.state.is_open() && assembled.0.machine.unfinished();
    Ok((assembled, unanswered))
}

/// Takes up one member of a session's teams, for a process that hosts it alone.
pub(crate) async fn take_member(
    factory: &Arc<Factory>,
    agent: AgentId,
    session: &Arc<Session>,
) -> Result<Assembled, StartError> {
    let Some(alive) = factory.supervisor.room_for(agent) else {
        return Err(StartError::AlreadyHere { agent });
    };
    let record = lookup::row(&*factory.ports.store, agent)
        .await?
        .ok_or(StoreError::NotFound { agent })?;
    if !is_teammate(&record) || !belongs(factory, &record).await? {
        return Err(StartError::Place(format!(
            "agent {agent} is not in a team of this session"
        )));
    }
    let starter = record
        .origin
        .as_ref()
        .map_or(session.root, |origin| origin.parent);
    let taken = factory.ports.store.take(agent).await?;
    let (assembled, unanswered) = bring_back(factory, taken, alive, session, starter).await?;
    if unanswered {
        // Cannot fail: nobody else knows the agent yet.
        let _ = factory.registry.tell(agent, Command::Continue);
    }
    assembled.0.expect_mail();
    Ok(assembled)
}

/// Returns the members of a session's teams that have not shut down.
async fn members_of(
    factory: &Arc<Factory>,
    session: &Session,
) -> Result<Vec<AgentRecord>, StoreError> {
    let mut found = Vec::new();
    for team in roster::teams(&*factory.ports.store, session.realm).await? {
        let others = team
            .members
            .iter()
            .filter(|member| member.agent != session.root);
        for member in others.filter(|member| member.state != MemberState::ShutDown) {
            found.extend(
                lookup::row(&*factory.ports.store, member.agent)
                    .await?
                    .filter(is_teammate),
            );
        }
    }
    Ok(found)
}

/// Returns false for a teammate that has left its team: nothing revives it.
async fn belongs(factory: &Arc<Factory>, record: &AgentRecord) -> Result<bool, StoreError> {
    Ok(!is_teammate(record)
        || roster::team_identity(&*factory.ports.store, record.realm, record.agent)
            .await?
            .is_some())
}

/// Closes the record of a teammate that had left its team when its process died.
async fn close_former(
    factory: &Arc<Factory>,
    record: &AgentRecord,
    session: &Session,
) -> Result<(), StoreError> {
    if !record.state.is_open() {
        return Ok(());
    }
    // Taken only to be able to write; the agent is not assembled.
    let epoch = factory.ports.store.take(record.agent).await?.epoch;
    let state = Some(StateChange::To(AgentState::Completed));
    let at_ms = wall_ms(&*factory.ports.clock);
    factory
        .ports
        .store
        .commit(Step {
            state,
            ..Step::new(record.realm, record.agent, epoch, at_ms)
        })
        .await?;
    if let Some(worktree) = terms(record, session).worktree {
        factory.ports.worktrees.release(&worktree).await;
    }
    Ok(())
}

/// Takes up the members of teams whose hosts have died.
pub(crate) async fn take_over(factory: &Arc<Factory>) {
    let _alone = factory.adopting.lock().await;
    for session in factory
        .registry
        .sessions()
        .into_iter()
        .filter(|session| session.takes_over > 0)
    {
        // The error is dropped: the next commit meets the same failure and reports it.
        if let Ok(adopted) = adopt(factory, &session).await {
            adopted
                .into_iter()
                .for_each(|adopted| assemble::start(factory, adopted));
        }
        workers::expect_workers(factory, &session);
    }
}

/// Returns true if the store itself fails, and not this one agent.
fn is_of_the_store(error: &StartError) -> bool {
    let others =
        |error: &StoreError| !matches!(error, StoreError::BadStep(_) | StoreError::Damaged { .. });
    matches!(error, StartError::Store(error) if others(error))
}
