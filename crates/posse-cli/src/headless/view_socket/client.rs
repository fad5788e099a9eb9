//! The process that runs an agent, at the other end of its socket.

use std::io;
use std::path::Path;

use posse_port::store::AgentRecord;
use posse_protocol::wire::{ClientMessage, ClientWatch, ServerMessage, ServerReader, WireError};
use posse_protocol::{Activity, AgentId, Detail, EventKind, WatchTarget};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::place;
use crate::output::program;

/// The id of what is asked here.
const ASKED: &str = "attach";

/// A watched agent.
pub(crate) struct LiveAgent {
    agent: AgentId,
    stream: UnixStream,
    reader: ServerReader,
    /// What came with the answer.
    first: Vec<ServerMessage>,
    /// Lines that are not sent yet.
    unsent: Vec<u8>,
}

/// Why an agent cannot be watched at the process that runs it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotWatched(String);

/// What is told of it.
pub(crate) enum Told {
    /// A message about it.
    Message(ServerMessage),
    /// It does not run there any more.
    End,
}

impl Told {
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::End)
    }
}

impl LiveAgent {
    /// Watches an agent at the process that runs it; else returns why it cannot.
    pub(crate) async fn find(
        directory: Option<&Path>,
        agent: &AgentRecord,
    ) -> Result<Self, NotWatched> {
        let Some(holder) = &agent.holder else {
            return Err(NotWatched("no process runs it".into()));
        };
        let (Some(directory), Some(pid)) = (directory, agent.pid_here()) else {
            let why = format!("{holder} runs it, not a process of this machine");
            return Err(NotWatched(why));
        };
        let mut why = "it has no socket".to_owned();
        for stream in place::connect(directory, pid).await {
            match Self::watch(stream, agent.agent).await {
                Ok(live) => return Ok(live),
                Err(NotWatched(refused)) => why = refused,
            }
        }
        let why = format!("{holder} runs it and cannot be watched: {why}");
        Err(NotWatched(why))
    }

    async fn watch(mut stream: UnixStream, agent: AgentId) -> Result<Self, NotWatched> {
        let told = |error: io::Error| NotWatched(error.to_string());
        let hello = ClientMessage::Hello { program: program() };
        let watch = ClientMessage::Watch(ClientWatch {
            id: Some(ASKED.into()),
            target: WatchTarget::Agent(agent),
            detail: Some(Detail::All),
        });
        let mut lines = String::new();
        for message in [hello, watch] {
            lines.push_str(
                &message
                    .encode()
                    .map_err(|error| NotWatched(error.to_string()))?,
            );
        }
        // A process that refuses may have closed already; its words are still to be read.
        let written = stream.write_all(lines.as_bytes()).await;
        let mut live = Self {
            agent,
            stream,
            reader: ServerReader::default(),
            first: Vec::new(),
            unsent: Vec::new(),
        };
        let (mut is_accepted, mut first) = (false, Vec::new());
        while !is_accepted {
            let Some(messages) = live.read().await.map_err(told)? else {
                let hung_up = NotWatched("it has hung up".into());
                return Err(written.err().map_or(hung_up, told));
            };
            for message in messages {
                match message {
                    ServerMessage::Refused { error, .. } => return Err(NotWatched(error)),
                    ServerMessage::Accepted { .. } => is_accepted = true,
                    ServerMessage::Hello { .. } => {}
                    more => first.push(more),
                }
            }
        }
        live.first = first;
        Ok(live)
    }

    /// Waits for what comes next.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Vec<Told>> {
        let Some(messages) = self.read().await? else {
            return Ok(vec![Told::End]);
        };
        let mut told = Vec::new();
        for message in messages {
            let is_gone = matches!(&message, ServerMessage::Event { event, .. }
                if event.agent == self.agent && event.kind == EventKind::State(Activity::Gone));
            told.push(Told::Message(message));
            if is_gone {
                told.push(Told::End);
            }
        }
        Ok(told)
    }

    /// Sends a message, while what has come is waited for.
    pub(crate) fn send(&mut self, message: ClientMessage) -> Result<(), WireError> {
        self.unsent.extend(message.encode()?.into_bytes());
        Ok(())
    }

    /// Waits until the message with this ID is answered.
    pub(crate) async fn answer(&mut self, wanted: &str) -> anyhow::Result<()> {
        while let Some(messages) = self.read().await? {
            for message in messages {
                match message {
                    ServerMessage::Accepted { id } if id == wanted => return Ok(()),
                    ServerMessage::Refused { id, error } if id.as_deref() == Some(wanted) => {
                        anyhow::bail!(error);
                    }
                    _ => {}
                }
            }
        }
        anyhow::bail!("its process has ended")
    }

    /// Waits for messages; none at the end. Dropping the future loses nothing.
    pub(crate) async fn read(&mut self) -> io::Result<Option<Vec<ServerMessage>>> {
        if !self.first.is_empty() {
            return Ok(Some(std::mem::take(&mut self.first)));
        }
        let mut bytes = vec![0; 64 << 10];
        let (mut from, mut to) = self.stream.split();
        let read = loop {
            tokio::select! {
                read = from.read(&mut bytes) => break read?,
                written = to.write(&self.unsent), if !self.unsent.is_empty() => {
                    self.unsent.drain(..written?);
                }
            }
        };
        if read == 0 {
            return Ok(None);
        }
        let messages = self.reader.push(&bytes[..read]).into_iter();
        let messages: Result<Vec<_>, _> = messages.collect();
        messages.map(Some).map_err(io::Error::other)
    }
}
