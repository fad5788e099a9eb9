//! The way to the agents of a conversation: in this process, or at the socket of another one.

use std::collections::VecDeque;

use posse_protocol::wire::{ClientMessage, ClientWatch, ServerMessage};
use posse_protocol::{AgentId, Command, ContentBlock, Detail, Event, WatchTarget};
use posse_runtime::live::handle::AgentHandle;
use posse_runtime::live::subscription::Subscription;
use posse_runtime::live::viewers::Viewed;
use tokio::sync::mpsc;

use crate::definitions::slash::{ReadPrompt, SlashCommands, SlashError};
use crate::headless::sending::{Sending, sent};
use crate::headless::view_socket::client::LiveAgent;

/// What comes from there.
pub(super) enum AgentNews {
    /// Something happened to an agent.
    Event(Event),
    /// Events were lost.
    Behind,
    /// A command was refused.
    Refused {
        /// Why.
        error: String,
        /// The prompt, if it was one.
        prompt: Option<String>,
    },
    /// Nobody is reached any more.
    Gone,
}

/// The way to the agents of a conversation.
pub(super) enum AgentLink {
    /// They live in this process.
    Here(Box<AgentsHere>),
    /// They live in another one.
    There(Box<AgentsThere>),
}

/// Agents of this process.
pub(super) struct AgentsHere {
    subscription: Subscription,
    handle: AgentHandle,
    /// The events of the main agent. They come by the subscription, too, which waits for nobody.
    events: mpsc::Receiver<Event>,
    /// Reads prompts.
    slash: SlashCommands,
    outbox: VecDeque<Command>,
    sending: Option<Sending>,
}

/// Agents of another process.
pub(super) struct AgentsThere {
    main: AgentId,
    process: LiveAgent,
    arrived: VecDeque<AgentNews>,
    /// Prompts that were sent and not answered, by the IDs of their messages.
    prompts: VecDeque<(u64, String)>,
    sent: u64,
}

impl AgentLink {
    /// Watches something in this detail, or no longer.
    pub(super) fn watch(&mut self, target: WatchTarget, detail: Option<Detail>) {
        match self {
            Self::Here(here) => {
                here.subscription.watch(target, detail);
            }
            Self::There(there) => there.send(ClientMessage::Watch(ClientWatch {
                id: None,
                target,
                detail,
            })),
        }
    }

    /// Sends a command to the main agent, or to the one that it names.
    pub(super) fn send(&mut self, command: Command) {
        match self {
            Self::Here(here) => here.outbox.push_back(command),
            Self::There(there) => there.command(command, None),
        }
    }

    /// Sends an agent a person's words, which may call a skill by its name. Returns warnings, or
    /// why they are not sent.
    pub(super) fn say(
        &mut self,
        main: AgentId,
        agent: AgentId,
        (prompt, words): (Vec<ContentBlock>, String),
    ) -> Result<Vec<String>, SlashError> {
        let to = |command: Command| match agent == main {
            true => command,
            false => Command::To {
                agent,
                command: Box::new(command),
            },
        };
        match self {
            Self::Here(here) => {
                let ReadPrompt { command, warnings } = here.slash.read(prompt)?;
                here.outbox.push_back(to(command));
                Ok(warnings)
            }
            Self::There(there) => {
                there.command(to(Command::Prompt(prompt)), Some(words));
                Ok(Vec::new())
            }
        }
    }

    /// Waits for what comes next, and sends what is to be sent. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> AgentNews {
        match self {
            Self::Here(here) => here.next().await,
            Self::There(there) => there.next().await,
        }
    }

    /// Returns what comes next, if it is there.
    pub(super) fn try_next(&mut self) -> Option<AgentNews> {
        match self {
            Self::Here(here) => here.subscription.try_next().map(AgentNews::from),
            Self::There(there) => there.arrived.pop_front(),
        }
    }
}

impl AgentsHere {
    pub(super) fn new(
        subscription: Subscription,
        handle: AgentHandle,
        events: mpsc::Receiver<Event>,
        slash: SlashCommands,
    ) -> Self {
        Self {
            subscription,
            handle,
            events,
            slash,
            outbox: VecDeque::new(),
            sending: None,
        }
    }

    /// Lets go of the main agent, and reads its events until it has ended.
    pub(super) async fn drain(self) {
        let mut events = self.events;
        drop((self.handle, self.sending));
        while events.recv().await.is_some() {}
    }

    async fn next(&mut self) -> AgentNews {
        loop {
            if self.sending.is_none()
                && let Some(command) = self.outbox.pop_front()
            {
                self.sending = Some(Sending::new(&self.handle, command));
            }
            tokio::select! {
                viewed = self.subscription.next() => return viewed.into(),
                event = self.events.recv() => if event.is_none() {
                    return AgentNews::Gone;
                },
                () = sent(&mut self.sending), if self.sending.is_some() => self.sending = None,
            }
        }
    }
}

impl AgentsThere {
    /// Returns the way to the agents of the process that runs one of them.
    pub(super) fn new(main: AgentId, process: LiveAgent) -> Self {
        Self {
            main,
            process,
            arrived: VecDeque::new(),
            prompts: VecDeque::new(),
            sent: 0,
        }
    }

    fn command(&mut self, command: Command, prompt: Option<String>) {
        let command = match command {
            command @ (Command::To { .. } | Command::Answer { .. }) => command,
            command => Command::To {
                agent: self.main,
                command: Box::new(command),
            },
        };
        self.sent += 1;
        let id = Some(self.sent.to_string());
        self.prompts
            .extend(prompt.map(|prompt| (self.sent, prompt)));
        self.send(ClientMessage::Command { id, command });
    }

    fn send(&mut self, message: ClientMessage) {
        if let Err(error) = self.process.send(message) {
            self.arrived.push_back(AgentNews::Refused {
                error: error.to_string(),
                prompt: None,
            });
        }
    }

    async fn next(&mut self) -> AgentNews {
        loop {
            if let Some(news) = self.arrived.pop_front() {
                return news;
            }
            let Ok(Some(messages)) = self.process.read().await else {
                return AgentNews::Gone;
            };
            for message in messages {
                let news = self.news(message);
                self.arrived.extend(news);
            }
        }
    }

    fn news(&mut self, message: ServerMessage) -> Option<AgentNews> {
        match message {
            ServerMessage::Hello { .. } => None,
            ServerMessage::Accepted { id } => {
                self.answered(&id);
                None
            }
            ServerMessage::Refused { id, error } => {
                let prompt = id.and_then(|id| self.answered(&id));
                Some(AgentNews::Refused { error, prompt })
            }
            ServerMessage::Behind { .. } => Some(AgentNews::Behind),
            ServerMessage::Event { event, .. } => Some(AgentNews::Event(event)),
        }
    }

    /// Returns the prompt of a message that is answered.
    fn answered(&mut self, id: &str) -> Option<String> {
        let id: u64 = id.parse().ok()?;
        let at = self.prompts.iter().position(|(sent, _)| *sent == id)?;
        self.prompts.remove(at).map(|(_, prompt)| prompt)
    }
}

impl From<Viewed> for AgentNews {
    fn from(viewed: Viewed) -> Self {
        match viewed {
            Viewed::Event(event) => Self::Event(event),
            Viewed::Behind { .. } => Self::Behind,
        }
    }
}
