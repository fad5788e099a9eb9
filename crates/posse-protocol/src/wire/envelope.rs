//! What every message has: its version, and who it is for.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::command::WireCommand;
use super::event::WireEvent;
use super::tagged::read;
use super::version::{VERSION, Version};
use crate::{AgentId, Detail};

/// A message from a client.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ClientMessage")]
pub(super) enum WireClientMessage {
    Control(Versioned<WireClientControl>),
    Command(Versioned<WireClientCommand>),
}

/// A message from a server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ServerMessage")]
pub(super) enum WireServerMessage {
    Control(Versioned<WireServerControl>),
    Event(Box<Versioned<WireEvent>>),
}

/// A message with its version.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}")]
pub(super) struct Versioned<T> {
    version: Version,
    #[serde(flatten)]
    message: T,
}

impl<T> Versioned<T> {
    pub(super) fn new(message: T) -> Self {
        Self {
            version: VERSION,
            message,
        }
    }
}

tagged! {
    /// A message of a client that is not a command.
    #[schemars(rename = "ClientHello")]
    enum WireClientControl {
        /// The first message of a client.
        Hello {
            /// The name and version of the program.
            program: String,
        }
        /// Watch an agent. It tells at once what it is doing. Refused if it does not live in this
        /// process, but seen once it does.
        Watch {
            /// Any text. If it is there, the server answers with `accepted` or `refused` and the same `id`.
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<String>,
            /// The agent.
            agent: AgentId,
            /// How much to see; absent to watch it no longer.
            #[serde(skip_serializing_if = "Option::is_none")]
            detail: Option<Detail>,
        }
        /// Watch all agents of a session that live in this process, now or later.
        WatchSession {
            /// Any text. If it is there, the server answers with `accepted` or `refused` and the same `id`.
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<String>,
            /// The session: the id of its main agent.
            session: AgentId,
            /// How much to see; absent to watch it no longer.
            #[serde(skip_serializing_if = "Option::is_none")]
            detail: Option<Detail>,
        }
    }
}

/// A command for an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ClientCommand")]
pub(super) struct WireClientCommand {
    /// Any text. If it is there, the server answers with `accepted` or `refused` and the same `id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The agent that the command is for; the main agent if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<AgentId>,
    #[serde(flatten)]
    pub(super) command: WireCommand,
}

impl<'de> Deserialize<'de> for WireClientCommand {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Envelope {
            id: Option<String>,
            to: Option<AgentId>,
        }
        let text = <&RawValue>::deserialize(from)?;
        let Envelope { id, to } = read(text).map_err(serde::de::Error::custom)?;
        let command = read(text).map_err(serde::de::Error::custom)?;
        Ok(Self { id, to, command })
    }
}

tagged! {
    /// A message of a server that is not an event.
    #[schemars(rename = "ServerControl")]
    enum WireServerControl {
        /// The first message of a server.
        Hello {
            /// The name and version of the program.
            program: String,
        }
        /// A command was handed to its agent. What comes of it follows in events.
        Accepted {
            /// The `id` of the command.
            id: String,
        }
        /// A line was not understood, or its command was refused.
        Refused {
            /// The `id` of the command, if it had one.
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<String>,
            /// Why, in words.
            error: String,
        }
        /// The client did not read in time and has lost events. What they reported is in the store; the
        /// text of a reply that is arriving may begin in the middle.
        Behind {
            /// The number of lost events.
            lost: u64,
        }
    }
}
