//! Members of a team in a process of their own: a pane, or a second process that helps. The store is what joins
//! them to the others.

use std::sync::{Arc, Weak};

use posse_permission::Rights;
use posse_port::store::StoreError;
use posse_protocol::{AgentId, Command, Event, EventKind};
use tokio::sync::mpsc;

use crate::agent::events::EVENTS;
use crate::govern::{Account, Budgets, RunSlots};
use crate::live::handle::AgentHandle;
use crate::live::registry::By;
use crate::live::session::Session;
use crate::live::setup::Setup;
use crate::live::{lookup, stop};
use crate::session::assemble::own_spill;
use crate::session::factory::Factory;
use crate::session::start_error::StartError;
use crate::session::{assemble, dispatch, revive};

/// What a process hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosting {
    /// The main agent of the session.
    pub session: AgentId,
    /// Which members of its teams.
    pub members: Members,
}

/// Members that a process hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// This one alone; all that happens to it is told.
    One(AgentId),
    /// Every one that nobody has, now and whenever a process dies.
    Free {
        /// But no more than so many.
        most: Option<usize>,
    },
    /// The same, of those that were raised for workers. Of all sessions that it hosts so a process takes up no
    /// more than the largest number that was said.
    Raised {
        /// But no more than so many.
        most: Option<usize>,
    },
}

/// Members of teams that live in this process.
pub struct Hosted {
    /// Those that were taken up at once.
    pub agents: Vec<AgentId>,
    /// The way to them, by [`Command::To`] and [`Command::Answer`]. When all handles are dropped they are given
    /// up, and others can take them.
    pub handle: AgentHandle,
    /// What happens to them. Closes when none is left.
    pub events: mpsc::Receiver<Event>,
}

/// Hosts members of a session's teams whose lead lives elsewhere.
pub(crate) async fn host(
    factory: &Arc<Factory>,
    hosting: Hosting,
    setup: Setup,
) -> Result<Hosted, StartError> {
    let Hosting { session, members } = hosting;
    dispatch::start(factory);
    let (session, events) = foreign_tree(factory, session, members, setup).await?;
    let adopted = match members {
        Members::One(agent) => vec![revive::take_member(factory, agent, &session).await?],
        Members::Free { .. } | Members::Raised { .. } => {
            // Once it stays, news of a death makes this process take members up as well. That
            // waits: otherwise both would fill the same room, and neither would know of all.
            let _alone = factory.adopting.lock().await;
            factory.registry.stays(&session);
            revive::adopt(factory, &session).await?
        }
    };
    let agents = adopted.iter().map(|(actor, _)| actor.agent()).collect();
    for adopted in adopted {
        assemble::start(factory, adopted);
    }
    let (handle, told) = AgentHandle::new();
    // Who hosts whatever is free stays for what comes.
    let stays = !matches!(members, Members::One(_));
    let stays = stays.then(|| Arc::clone(&session));
    let porter = porter(
        Arc::downgrade(factory),
        (Arc::downgrade(&session), stays),
        told,
    );
    factory.supervisor.start_errand(porter);
    Ok(Hosted {
        agents,
        handle,
        events,
    })
}

/// Passes commands on until nobody is there to give any; then all that is hosted is given up.
async fn porter(
    factory: Weak<Factory>,
    (session, stays): (Weak<Session>, Option<Arc<Session>>),
    mut told: mpsc::Receiver<Command>,
) {
    while let Some(command) = told.recv().await {
        let Some(factory) = factory.upgrade() else {
            return;
        };
        let (agent, command) = match command {
            Command::To { agent, command } => (agent, *command),
            Command::Answer {
                agent,
                call,
                answer,
            } => (
                agent,
                Command::Answer {
                    agent,
                    call,
                    answer,
                },
            ),
            _ => continue,
        };
        if factory.registry.pass_on(agent, command).is_err()
            && let Some(session) = session.upgrade()
        {
            let what = format!("{agent} is not in this process");
            let _ = session.events.try_send(Event {
                agent,
                kind: EventKind::Warning(what),
            });
        }
    }
    let (Some(factory), Some(session)) = (factory.upgrade(), session.upgrade()) else {
        return;
    };
    drop(stays);
    stop::give_up_tree(&factory.registry, &session, By::Shutdown);
}

/// A session whose main agent lives elsewhere, for the members of its teams that are to live here.
async fn foreign_tree(
    factory: &Arc<Factory>,
    session: AgentId,
    members: Members,
    setup: Setup,
) -> Result<(Arc<Session>, mpsc::Receiver<Event>), StartError> {
    let row = lookup::row(&*factory.ports.store, session)
        .await?
        .ok_or(StoreError::NotFound { agent: session })?;
    let (events, heard) = mpsc::channel(EVENTS);
    let budgets = Budgets {
        subtree: setup.limits.budget,
        ..Budgets::default()
    };
    let workspace = own_spill(&setup.workspace, session);
    let session = Session {
        rights: Rights::root(row.mode, Arc::clone(&setup.policy), workspace),
        root: session,
        realm: row.realm,
        slots: RunSlots::new(setup.spawning.running),
        account: Account::session(budgets, factory.ports.clock.now()),
        setup,
        events,
        preambles: std::sync::Mutex::default(),
        attended: true.into(),
        shown: match members {
            Members::One(agent) => Some(agent),
            Members::Free { .. } | Members::Raised { .. } => None,
        },
        is_worker: matches!(members, Members::Raised { .. }),
        expects: false.into(),
        takes_over: match members {
            Members::One(_) => 0,
            Members::Free { most } | Members::Raised { most } => most.unwrap_or(usize::MAX),
        },
        raising: 0.into(),
        notices: std::sync::Mutex::default(),
    };
    Ok((Arc::new(session), heard))
}
