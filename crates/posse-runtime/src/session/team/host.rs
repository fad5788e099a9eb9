//! Members of a team in a process of their own: a pane, or a second process that helps. The store is what joins
//! them to the others.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use posse_protocol::{AgentId, Command, Event, EventKind};
use tokio::sync::mpsc;

use crate::live::handle::AgentHandle;
use crate::live::registry::{By, House};
use crate::live::session::Tree;
use crate::live::setup::Setup;
use crate::runtime::Runtime;
use crate::session::start_error::StartError;

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

impl Runtime {
    /// Hosts members of a session's teams whose lead lives elsewhere. They have no more rights than `setup`, and
    /// the mode that the session's main agent has now.
    pub async fn host(&self, hosting: Hosting, setup: Setup) -> Result<Hosted, StartError> {
        let Hosting { session, members } = hosting;
        let house = self.house();
        let (tree, events) = house.foreign_tree(session, members, setup).await?;
        let adopted = match members {
            Members::One(agent) => vec![house.take_member(agent, &tree).await?],
            Members::Free { .. } | Members::Raised { .. } => {
                // Once it stays, news of a death makes this process take members up as well. That
                // waits: otherwise both would fill the same room, and neither would know of all.
                let _alone = house.adopting.lock().await;
                house.stays(&tree);
                house.adopt(&tree).await?
            }
        };
        let agents = adopted.iter().map(|(actor, _)| actor.agent()).collect();
        adopted
            .into_iter()
            .for_each(|adopted| house.animate(adopted));
        let (handle, told) = AgentHandle::new();
        // Who hosts whatever is free stays for what comes.
        let stays = !matches!(members, Members::One(_));
        let stays = stays.then(|| Arc::clone(&tree));
        let porter = porter(Arc::downgrade(house), (Arc::downgrade(&tree), stays), told);
        house.supervisor.start_errand(porter);
        Ok(Hosted {
            agents,
            handle,
            events,
        })
    }

    /// Takes up what has become free of the sessions whose free members are hosted here.
    pub async fn take_up_free(&self) {
        self.house().take_over().await;
    }

    /// Whether this process was taken for dead: then it can write nothing any more.
    pub fn is_fenced(&self) -> bool {
        self.house().fenced.load(Ordering::Acquire)
    }

    /// How many members of a session's teams live here.
    pub fn members_here(&self, session: AgentId) -> usize {
        self.house().mates(session)
    }
}

/// Passes commands on until nobody is there to give any; then all that is hosted is given up.
async fn porter(
    house: Weak<House>,
    (tree, stays): (Weak<Tree>, Option<Arc<Tree>>),
    mut told: mpsc::Receiver<Command>,
) {
    while let Some(command) = told.recv().await {
        let Some(house) = house.upgrade() else { return };
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
        if house.pass_on(agent, command).is_err()
            && let Some(tree) = tree.upgrade()
        {
            let what = format!("{agent} is not here to be told anything");
            let _ = tree.events.try_send(Event {
                agent,
                kind: EventKind::Unheard(what),
            });
        }
    }
    let (Some(house), Some(tree)) = (house.upgrade(), tree.upgrade()) else {
        return;
    };
    drop(stays);
    house.give_up_tree(&tree, By::Shutdown);
}
