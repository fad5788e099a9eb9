//! Where the events of a session go: to its front end, which misses nothing, and to viewers.

use posse_protocol::{AgentId, Event};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::live::viewers::{Audience, Viewers};

/// Number of events that may wait for the front end.
const EVENTS: usize = 256;

/// Accepts the events of all agents of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionEvents {
    root: AgentId,
    front_end: mpsc::Sender<Event>,
    viewers: Viewers,
}

impl SessionEvents {
    /// Returns the events of the session with the main agent `root`, and the front end's end of
    /// them.
    pub(crate) fn new(root: AgentId, viewers: Viewers) -> (Self, mpsc::Receiver<Event>) {
        let (front_end, heard) = mpsc::channel(EVENTS);
        let events = Self {
            root,
            front_end,
            viewers,
        };
        (events, heard)
    }

    /// Returns those who watch an agent of the session.
    pub(crate) fn audience(&self, agent: AgentId) -> Audience {
        Audience::new(self.viewers.clone(), agent, self.root)
    }

    /// Sends an event. Waits while the front end has too many; returns false if it has gone.
    pub(crate) async fn send(&self, event: Event) -> bool {
        self.viewers.show(self.root, &event);
        self.front_end.send(event).await.is_ok()
    }

    /// Sends an event that the front end may miss: one that does not read must not hold up the
    /// caller.
    pub(crate) fn try_send(&self, event: Event) {
        self.viewers.show(self.root, &event);
        // Full, or gone.
        let _ = self.front_end.try_send(event);
    }

    /// Waits until the front end has room; none if it has gone.
    pub(crate) async fn room(&self) -> Option<mpsc::Permit<'_, Event>> {
        self.front_end.reserve().await.ok()
    }

    /// Returns room at the front end, if there is some.
    pub(crate) fn try_room(&self) -> Result<mpsc::Permit<'_, Event>, TrySendError<()>> {
        self.front_end.try_reserve()
    }
}
