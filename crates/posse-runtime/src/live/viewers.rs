//! Viewers: who watches which agents, and what each of them has not read yet.
//!
//! A viewer has a bounded queue of its own. An agent puts its events there and goes on: one that
//! reads slowly, or not at all, loses events and is told how many, and no agent waits for it.
//! Nothing is done for an agent that nobody watches.

mod queue;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_protocol::{AgentId, Detail, Event, EventKind, WatchTarget};
use tokio::sync::Notify;

use self::queue::EventQueue;

/// What a viewer reads next.
#[derive(Clone, Debug, PartialEq)]
pub enum Viewed {
    /// An event of an agent that it watches.
    Event(Event),
    /// It did not read in time and has lost events. What they reported is in the store; text of a
    /// reply that is arriving may begin in the middle.
    Behind {
        /// The number of lost events.
        lost: u64,
    },
}

/// All viewers of this process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Viewers(Arc<Table>);

#[derive(Default)]
struct Table {
    /// Changes with every change of the lists, so that agents know when to look again.
    generation: AtomicU64,
    watched: Mutex<WatchLists>,
}

/// Viewers by what they watch.
#[derive(Default)]
struct WatchLists {
    agents: HashMap<AgentId, ViewerList>,
    /// Those that watch all agents of a session, by its main agent.
    sessions: HashMap<AgentId, ViewerList>,
}

type ViewerList = Vec<(Arc<Viewer>, Detail)>;
type SharedViewers = Arc<[(Arc<Viewer>, Detail)]>;

/// One viewer.
#[derive(Default)]
pub(crate) struct Viewer {
    queue: Mutex<EventQueue>,
    arrived: Notify,
}

impl Viewer {
    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, event: &Event) {
        if self.queue().push(event) {
            self.arrived.notify_one();
        }
    }

    /// Waits for what comes next. Dropping the future loses nothing.
    pub(crate) async fn next(&self) -> Viewed {
        loop {
            if let Some(viewed) = self.try_next() {
                return viewed;
            }
            self.arrived.notified().await;
        }
    }

    /// Returns what comes next, if it is there.
    pub(crate) fn try_next(&self) -> Option<Viewed> {
        self.queue().pop()
    }
}

impl Viewers {
    /// Makes a viewer watch something in this detail, or no longer.
    pub(crate) fn watch(&self, viewer: &Arc<Viewer>, target: WatchTarget, detail: Option<Detail>) {
        let mut lists = self.lists();
        let WatchLists { agents, sessions } = &mut *lists;
        let (map, key) = match target {
            WatchTarget::Agent(agent) => (agents, agent),
            WatchTarget::Session(root) => (sessions, root),
        };
        let list = map.entry(key).or_default();
        list.retain(|(other, _)| !Arc::ptr_eq(other, viewer));
        list.extend(detail.map(|detail| (Arc::clone(viewer), detail)));
        if list.is_empty() {
            map.remove(&key);
        }
        self.0.generation.fetch_add(1, Ordering::Release);
    }

    /// Forgets a viewer.
    pub(crate) fn leave(&self, viewer: &Arc<Viewer>) {
        let mut lists = self.lists();
        let WatchLists { agents, sessions } = &mut *lists;
        for map in [agents, sessions] {
            map.retain(|_, list| {
                list.retain(|(other, _)| !Arc::ptr_eq(other, viewer));
                !list.is_empty()
            });
        }
        self.0.generation.fetch_add(1, Ordering::Release);
    }

    /// Shows an event to all who watch its agent. Takes a lock that all agents share: meant for
    /// rare events of agents that have no [`Audience`] at hand.
    pub(crate) fn show(&self, root: AgentId, event: &Event) {
        if self.generation() == 0 {
            // Nobody has ever watched.
            return;
        }
        show(&self.of(event.agent, root), event);
    }

    /// Returns the viewers of an agent, each once with the most detail that it asked for.
    fn of(&self, agent: AgentId, root: AgentId) -> SharedViewers {
        let lists = self.lists();
        let mut viewers: ViewerList = lists.agents.get(&agent).cloned().unwrap_or_default();
        for (viewer, detail) in lists.sessions.get(&root).into_iter().flatten() {
            match viewers
                .iter_mut()
                .find(|(other, _)| Arc::ptr_eq(other, viewer))
            {
                Some((_, most)) => *most = (*most).max(*detail),
                None => viewers.push((Arc::clone(viewer), *detail)),
            }
        }
        viewers.into()
    }

    fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    fn lists(&self) -> MutexGuard<'_, WatchLists> {
        self.0
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn show(viewers: &[(Arc<Viewer>, Detail)], event: &Event) {
    for (viewer, detail) in viewers {
        if event.kind.is_in(*detail) {
            viewer.show(event);
        }
    }
}

/// Those who watch one agent. Looks at the shared lists only after they have changed.
pub(crate) struct Audience {
    viewers: Viewers,
    agent: AgentId,
    root: AgentId,
    /// The list, and the generation in which it was read.
    known: Mutex<(u64, SharedViewers)>,
}

impl Clone for Audience {
    fn clone(&self) -> Self {
        Self::new(self.viewers.clone(), self.agent, self.root)
    }
}

impl Audience {
    /// Returns the audience of an agent of the session with the main agent `root`.
    pub(crate) fn new(viewers: Viewers, agent: AgentId, root: AgentId) -> Self {
        // No list has the highest generation: the first look reads it.
        let known = Mutex::new((u64::MAX, Arc::default()));
        Self {
            viewers,
            agent,
            root,
            known,
        }
    }

    /// Returns true if somebody watches the agent in at least this detail.
    pub(crate) fn wants(&self, detail: Detail) -> bool {
        self.now().iter().any(|(_, wanted)| *wanted >= detail)
    }

    /// Shows what happened to the agent to those who want to see it.
    pub(crate) fn show(&self, kind: &EventKind) {
        let viewers = self.now();
        if viewers.iter().any(|(_, detail)| kind.is_in(*detail)) {
            let event = Event {
                agent: self.agent,
                kind: kind.clone(),
            };
            show(&viewers, &event);
        }
    }

    fn now(&self) -> SharedViewers {
        let generation = self.viewers.generation();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != generation {
            *known = (generation, self.viewers.of(self.agent, self.root));
        }
        Arc::clone(&known.1)
    }
}
