//! The way to an agent that lives in this process.

use posse_protocol::{AgentId, Command, Event};
use tokio::sync::mpsc;

use posse_port::store::AgentRecord;

/// Commands that may wait for an agent.
pub(crate) const COMMANDS: usize = 16;

/// An agent that lives in this process.
pub struct Agent {
    /// Its id, and that of its session.
    pub id: AgentId,
    /// What the store had of it when it was resumed or forked; none of a new one.
    pub found: Option<AgentRecord>,
    /// Whether [`Command::Continue`] has something to continue.
    pub unfinished: bool,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The way to it. When all handles are dropped the agent finishes what it was told and ends;
    /// then `events` closes.
    pub handle: AgentHandle,
    /// What happens to it.
    pub events: mpsc::Receiver<Event>,
}

/// The way to an agent.
#[derive(Clone)]
pub struct AgentHandle {
    pub(crate) commands: mpsc::Sender<Command>,
}

/// The agent has ended and hears nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent has ended")]
pub struct Gone;

impl AgentHandle {
    /// A way to somebody, and where it leads.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Command>) {
        let (commands, told) = mpsc::channel(COMMANDS);
        (Self { commands }, told)
    }

    /// Tells the agent something.
    pub async fn send(&self, command: Command) -> Result<(), Gone> {
        self.commands.send(command).await.map_err(|_| Gone)
    }
}
