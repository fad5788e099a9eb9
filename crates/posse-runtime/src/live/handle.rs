//! Handle of an agent that lives in this process.

use posse_protocol::{AgentId, Command, Event};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::govern::Account;
use crate::live::servers::ServerWatch;
use posse_port::store::AgentRecord;

/// Number of commands that may wait for an agent. A sender that finds the channel full waits.
pub(crate) const COMMANDS: usize = 16;

/// An agent that lives in this process.
pub struct Agent {
    /// ID of the agent and of its session.
    pub id: AgentId,
    /// Its record when it was resumed or forked; none if it is new.
    pub found: Option<AgentRecord>,
    /// True if [`Command::Continue`] has something to continue.
    pub unfinished: bool,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Its servers.
    pub servers: ServerWatch,
    /// The session's account: what this process has spent on it.
    pub account: Account,
    /// Accepts commands. When all handles are dropped, the agent finishes what it was told and
    /// ends; then `events` closes.
    pub handle: AgentHandle,
    /// Events of the agent and its session.
    pub events: mpsc::Receiver<Event>,
}

/// Sends commands to an agent. Cheap to clone.
#[derive(Clone)]
pub struct AgentHandle {
    /// Boxed: a channel has room for many from its beginning, and most agents get none.
    pub(crate) commands: mpsc::Sender<Box<Command>>,
}

/// Returned if the agent has ended and accepts no commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent has ended")]
pub struct Gone;

impl AgentHandle {
    /// Returns a handle and the receiving end of its commands.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Box<Command>>) {
        let (commands, told) = mpsc::channel(COMMANDS);
        (Self { commands }, told)
    }

    /// Sends a command. Waits while the agent has too many.
    pub async fn send(&self, command: Command) -> Result<(), Gone> {
        self.commands
            .send(Box::new(command))
            .await
            .map_err(|_| Gone)
    }
}

/// Sends commands to a live agent.
#[derive(Clone)]
pub(crate) enum CommandSender {
    /// To a sub-agent, which listens as long as it lives.
    Sub(mpsc::Sender<Box<Command>>),
    /// To a main agent, which ends when its front end lets go of it: this does not keep it.
    Main(mpsc::WeakSender<Box<Command>>),
}

impl CommandSender {
    /// Sends a command at once, or not at all.
    pub(crate) fn try_send(&self, command: Command) -> Result<(), TellError> {
        let sender = match self {
            Self::Sub(sender) => sender.clone(),
            Self::Main(sender) => sender.upgrade().ok_or(TellError::NotHere)?,
        };
        sender
            .try_send(Box::new(command))
            .map_err(|error| match error {
                TrySendError::Full(_) => TellError::Busy,
                TrySendError::Closed(_) => TellError::NotHere,
            })
    }
}

/// Why an agent was not told a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TellError {
    /// It does not live in this process, or is about to end.
    #[error("it is not in this process")]
    NotHere,
    /// Too many commands wait for it.
    #[error("too many commands wait for it; try again")]
    Busy,
}
