//! One viewer at the socket.

use std::io;

use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::wire::line::Lines;
use posse_protocol::wire::{ClientMessage, ClientWatch, RefusedLine, ServerMessage};
use posse_protocol::{Command, PermissionMode};
use posse_runtime::live::handle::TellError;
use posse_runtime::live::subscription::Subscription;
use posse_runtime::live::viewers::Viewed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::SocketHost;
use crate::definitions::slash::SlashError;
use crate::output::program;

/// About how much is written at once, in bytes.
const WRITTEN: usize = 64 << 10;

/// Serves a viewer until it leaves.
pub(super) async fn serve(mut stream: UnixStream, host: SocketHost) -> io::Result<()> {
    let clock = SystemClock::default();
    let subscription = host.runtime.watch();
    let (mut lines, mut bytes) = (Lines::default(), vec![0; 4096]);
    let hello = ServerMessage::Hello { program: program() };
    write(&mut stream, line(hello)).await?;
    loop {
        tokio::select! {
            read = stream.read(&mut bytes) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                let mut answers = String::new();
                for told in lines.push(&bytes[..read]) {
                    let told = told.map_err(|error| RefusedLine { id: None, error });
                    let told = told.and_then(|told| ClientMessage::decode(&told));
                    let answer = match told {
                        Ok(message) => answer(message, &host, &subscription),
                        Err(refused) => Some(refused.into()),
                    };
                    answers.extend(answer.map(line));
                }
                write(&mut stream, answers).await?;
            }
            viewed = subscription.next() => {
                let mut text = written(viewed, &clock);
                while text.len() < WRITTEN && let Some(more) = subscription.try_next() {
                    text.push_str(&written(more, &clock));
                }
                write(&mut stream, text).await?;
            }
        }
    }
}

/// Does what a viewer asks, and returns the answer if it wants one.
fn answer(
    message: ClientMessage,
    host: &SocketHost,
    subscription: &Subscription,
) -> Option<ServerMessage> {
    match message {
        ClientMessage::Hello { .. } => None,
        ClientMessage::Watch(ClientWatch { id, target, detail }) => {
            let is_here = subscription.watch(target, detail);
            let id = id?;
            Some(match is_here {
                true => ServerMessage::Accepted { id },
                false => ServerMessage::Refused {
                    id: Some(id),
                    error: "it does not live in this process".into(),
                },
            })
        }
        ClientMessage::Command { id, command } => match host.tell(command) {
            Ok(()) => id.map(|id| ServerMessage::Accepted { id }),
            Err(error) => Some(ServerMessage::Refused {
                id,
                error: error.to_string(),
            }),
        },
    }
}

/// Why a command is refused.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("say which agent it is for, with `to`: a process may have several sessions")]
    Whom,
    #[error("bypassPermissions must be chosen when posse starts")]
    Bypass,
    #[error("{}", .0.join("; "))]
    Files(Vec<String>),
    #[error(transparent)]
    Slash(#[from] SlashError),
    #[error(transparent)]
    Agent(#[from] TellError),
}

impl SocketHost {
    /// Hands a command to its agent.
    fn tell(&self, command: Command) -> Result<(), CommandError> {
        let (agent, command) = match command {
            Command::To { agent, command } => (agent, *command),
            command @ Command::Answer { agent, .. } => (agent, command),
            _ => return Err(CommandError::Whom),
        };
        if command == Command::SetMode(PermissionMode::BypassPermissions) {
            return Err(CommandError::Bypass);
        }
        let command = match (command, &self.slash) {
            (Command::Prompt(words), Some(slash)) => {
                let prompt = slash.read(words)?;
                if !prompt.warnings.is_empty() {
                    return Err(CommandError::Files(prompt.warnings));
                }
                prompt.command
            }
            (command, _) => command,
        };
        Ok(self.runtime.tell(agent, command)?)
    }
}

fn written(viewed: Viewed, clock: &SystemClock) -> String {
    line(match viewed {
        Viewed::Behind { lost } => ServerMessage::Behind { lost },
        Viewed::Event(event) => ServerMessage::Event {
            at_ms: clock
                .wall()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| {
                    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
                }),
            event,
        },
    })
}

/// Returns a message as a line. One that would be too long counts as lost.
fn line(message: ServerMessage) -> String {
    let behind = || ServerMessage::Behind { lost: 1 }.encode();
    message.encode().or_else(|_| behind()).unwrap_or_default()
}

async fn write(stream: &mut UnixStream, text: String) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await
}
