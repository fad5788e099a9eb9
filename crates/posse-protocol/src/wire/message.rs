//! What a line says: messages of clients and of servers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::command::{WireCommand, addressed};
use super::envelope::{
    Versioned, WireClientCommand, WireClientControl, WireClientMessage, WireServerControl,
    WireServerMessage,
};
use super::error::{RefusedLine, WireError};
use super::event::{WireEvent, WireEventKind};
use super::line::{Lines, encode};
use super::tagged::{Tagged, read};
use super::version::{VERSION, Version};
use super::watch::ClientWatch;
use crate::{Command, Event, WatchTarget};

/// A message from a client: a front end, or any program.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientMessage {
    /// The first message.
    Hello {
        /// The name and version of the program.
        program: String,
    },
    /// A command for an agent.
    Command {
        /// The id of the answer. Without one, the command is not answered.
        id: Option<String>,
        /// The command.
        command: Command,
    },
    /// Begin or end to watch.
    Watch(ClientWatch),
}

/// A message from a server: a process that holds agents.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerMessage {
    /// The first message.
    Hello {
        /// The name and version of the program.
        program: String,
    },
    /// A command was handed to its agent.
    Accepted {
        /// The command's id.
        id: String,
    },
    /// A line was not understood, or its command was refused.
    Refused {
        /// The command's id, if it had one.
        id: Option<String>,
        /// Why, in words.
        error: String,
    },
    /// The client did not read in time and has lost events.
    Behind {
        /// The number of lost events.
        lost: u64,
    },
    /// Something happened to an agent.
    Event {
        /// When it was sent, in milliseconds of Unix time.
        at_ms: i64,
        /// What happened.
        event: Event,
    },
}

impl From<RefusedLine> for ServerMessage {
    fn from(line: RefusedLine) -> Self {
        Self::Refused {
            id: line.id,
            error: line.error.to_string(),
        }
    }
}

impl ClientMessage {
    /// Writes the message as a line.
    pub fn encode(self) -> Result<String, WireError> {
        let control = |control| WireClientMessage::Control(Versioned::new(control));
        encode(&match self {
            Self::Hello { program } => control(WireClientControl::Hello { program }),
            Self::Command { id, command } => {
                let (to, command) = addressed(command)?;
                let command = WireClientCommand { id, to, command };
                WireClientMessage::Command(Versioned::new(command))
            }
            Self::Watch(ClientWatch { id, target, detail }) => control(match target {
                WatchTarget::Agent(agent) => WireClientControl::Watch { id, agent, detail },
                WatchTarget::Session(session) => WireClientControl::WatchSession {
                    id,
                    session,
                    detail,
                },
            }),
        })
    }

    /// Reads a line. Each line that cannot be handled can be answered.
    pub fn decode(line: &str) -> Result<Self, RefusedLine> {
        Self::read(line).map_err(|error| RefusedLine {
            id: id_of(line),
            error,
        })
    }

    fn read(line: &str) -> Result<Self, WireError> {
        let head = Head::read(line)?;
        if WireClientControl::knows(&head.kind) {
            let (id, target, detail) = match read(head.text)? {
                WireClientControl::Hello { program } => return Ok(Self::Hello { program }),
                WireClientControl::Watch { id, agent, detail } => {
                    (id, WatchTarget::Agent(agent), detail)
                }
                WireClientControl::WatchSession {
                    id,
                    session,
                    detail,
                } => (id, WatchTarget::Session(session), detail),
            };
            Ok(Self::Watch(ClientWatch { id, target, detail }))
        } else if WireCommand::knows(&head.kind) {
            let message: WireClientCommand = read(head.text)?;
            let command = Command::from(message.command);
            let command = match message.to {
                Some(agent) => Command::To {
                    agent,
                    command: Box::new(command),
                },
                None => command,
            };
            Ok(Self::Command {
                id: message.id,
                command,
            })
        } else {
            Err(WireError::Unknown(head.kind))
        }
    }
}

impl ServerMessage {
    /// Writes the message as a line.
    pub fn encode(self) -> Result<String, WireError> {
        let control = |control| WireServerMessage::Control(Versioned::new(control));
        encode(&match self {
            Self::Hello { program } => control(WireServerControl::Hello { program }),
            Self::Accepted { id } => control(WireServerControl::Accepted { id }),
            Self::Refused { id, error } => control(WireServerControl::Refused { id, error }),
            Self::Behind { lost } => control(WireServerControl::Behind { lost }),
            Self::Event { at_ms, event } => {
                let event = Versioned::new(WireEvent::new(event, at_ms));
                WireServerMessage::Event(Box::new(event))
            }
        })
    }

    /// Reads a line. [`WireError::Unknown`] is no fault: the server is newer, and the line can be skipped.
    pub fn decode(line: &str) -> Result<Self, WireError> {
        let head = Head::read(line)?;
        let message = if WireServerControl::knows(&head.kind) {
            read(head.text).map(|control| match control {
                WireServerControl::Hello { program } => Self::Hello { program },
                WireServerControl::Accepted { id } => Self::Accepted { id },
                WireServerControl::Refused { id, error } => Self::Refused { id, error },
                WireServerControl::Behind { lost } => Self::Behind { lost },
            })
        } else if WireEventKind::knows(&head.kind) {
            read(head.text).map(|event: WireEvent| Self::Event {
                at_ms: event.at_ms,
                event: event.into(),
            })
        } else {
            return Err(WireError::Unknown(head.kind));
        };
        message.map_err(|error| match head.version > VERSION {
            // A word inside of it that was added since.
            true => WireError::Unknown(head.kind),
            false => error.into(),
        })
    }
}

/// Reads the messages of a server from bytes as they arrive, and skips those that it does not know.
#[derive(Debug, Default)]
pub struct ServerReader {
    lines: Lines,
    skipped: u64,
}

impl ServerReader {
    /// Takes more bytes. Returns the messages that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<ServerMessage, WireError>> {
        let mut messages = Vec::new();
        for line in self.lines.push(bytes) {
            match line.and_then(|line| ServerMessage::decode(&line)) {
                Err(WireError::Unknown(_)) => self.skipped += 1,
                message => messages.push(message),
            }
        }
        messages
    }

    /// Returns the number of messages that were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// What is read of a line before the rest.
struct Head<'a> {
    version: Version,
    kind: String,
    text: &'a RawValue,
}

impl<'a> Head<'a> {
    fn read(line: &'a str) -> Result<Self, WireError> {
        #[derive(Deserialize)]
        struct OfVersion {
            version: Version,
        }
        #[derive(Deserialize)]
        struct OfType {
            r#type: String,
        }
        let text: &RawValue = serde_json::from_str(line)?;
        // Alone at first: everything else may be different in another version.
        let OfVersion { version } = read(text)?;
        if version.major != VERSION.major {
            return Err(WireError::Version(version));
        }
        let OfType { r#type: kind } = read(text)?;
        Ok(Self {
            version,
            kind,
            text,
        })
    }
}

/// Returns the id of a line, whatever else is in it.
fn id_of(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct OfId {
        id: Option<String>,
    }
    serde_json::from_str::<OfId>(line).ok()?.id
}
