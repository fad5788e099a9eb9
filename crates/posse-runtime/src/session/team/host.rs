//! Hosts members of a team in another process than the lead's: a pane, or a second process that
//! helps. The processes share nothing but the store.

use std::sync::{Arc, Weak};

use posse_permission::Rights;
use posse_port::store::StoreError;
use posse_protocol::{AgentId, Command, Event, EventKind};
use tokio::sync::mpsc;

use crate::govern::{Account, Budgets, RunSlots};
use crate::live::handle::AgentHandle;
use crate::live::registry::By;
use crate::live::servers::SessionServers;
use crate::live::session::Session;
use crate::live::session_events::SessionEvents;
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
    /// Members of its teams to host.
    pub members: Members,
}

/// Members that a process hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// This member alone; all of its events are reported.
    One(AgentId),
    /// Every member that no process has, now and whenever a process dies.
    Free {
        /// Maximum number of members.
        most: Option<usize>,
    },
    /// The same for members that were created for workers. A process takes up no more than the
    /// largest maximum among the sessions that it hosts this way.
    Raised {
        /// Maximum number of members.
        most: Option<usize>,
    },
}

/// Members of teams that live in this process.
pub struct Hosted {
    /// Members that were taken up at once.
    pub agents: Vec<AgentId>,
    /// Accepts [`Command::To`] and [`Command::Answer`]. When all handles are dropped, the members
    /// are given up, and other processes can take them.
    pub handle: AgentHandle,
    /// Events of the members. Closes when none is left.
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
            // Once the session is registered, the death of a host makes this process take members
            // up as well. The lock makes that wait: otherwise both would fill the same room.
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
    // A process that hosts free members stays for those that become free later.
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

/// Passes commands on until all handles are dropped; then everything that is hosted is given up.
async fn porter(
    factory: Weak<Factory>,
    (session, stays): (Weak<Session>, Option<Arc<Session>>),
    mut told: mpsc::Receiver<Box<Command>>,
) {
    while let Some(command) = told.recv().await {
        let Some(factory) = factory.upgrade() else {
            return;
        };
        let (agent, command) = match *command {
            Command::To { agent, command } => (agent, *command),
            command @ Command::Answer { agent, .. } => (agent, command),
            _ => continue,
        };
        if let Err(error) = factory.registry.tell(agent, command)
            && let Some(session) = session.upgrade()
        {
            let what = format!("{agent} was not told: {error}");
            // A full channel may drop this warning: commands must not wait for a slow reader.
            session.events.try_send(Event {
                agent,
                kind: EventKind::Warning(what),
            });
        }
    }
    let (Some(factory), Some(session)) = (factory.upgrade(), session.upgrade()) else {
        return;
    };
    // First, so that no member is taken up while the others are given up.
    drop(stays);
    stop::give_up_tree(&factory.registry, &session, By::Shutdown);
}

/// Returns the session for members that live here while the main agent lives elsewhere.
async fn foreign_tree(
    factory: &Arc<Factory>,
    session: AgentId,
    members: Members,
    setup: Setup,
) -> Result<(Arc<Session>, mpsc::Receiver<Event>), StartError> {
    let row = lookup::row(&*factory.ports.store, session)
        .await?
        .ok_or(StoreError::NotFound { agent: session })?;
    let viewers = factory.registry.viewers.clone();
    let (events, heard) = SessionEvents::new(session, viewers);
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
        halted: std::sync::OnceLock::new(),
        servers: SessionServers::default(),
        message_row: Arc::default(),
        prompt: std::sync::Mutex::default(),
        takes_over: match members {
            Members::One(_) => 0,
            Members::Free { most } | Members::Raised { most } => most.unwrap_or(usize::MAX),
        },
        raising: 0.into(),
        notices: std::sync::Mutex::default(),
    };
    Ok((Arc::new(session), heard))
}
