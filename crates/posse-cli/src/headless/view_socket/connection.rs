//! One viewer at the socket.

use std::io;

use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::wire::line::Lines;
use posse_protocol::wire::{ClientMessage, ClientWatch, RefusedLine, ServerMessage};
use posse_runtime::live::subscription::Subscription;
use posse_runtime::live::viewers::Viewed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::output::program;

/// Longest line that a viewer may send.
const LONGEST: usize = 64 << 10;
/// About how much is written at once, in bytes.
const WRITTEN: usize = 64 << 10;

/// Serves a viewer until it leaves.
pub(super) async fn serve(mut stream: UnixStream, subscription: Subscription) -> io::Result<()> {
    let clock = SystemClock::default();
    let (mut lines, mut bytes) = (Lines::up_to(LONGEST), vec![0; 4096]);
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
                        Ok(message) => answer(message, &subscription),
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
fn answer(message: ClientMessage, subscription: &Subscription) -> Option<ServerMessage> {
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
        ClientMessage::Command { id, .. } => Some(ServerMessage::Refused {
            id,
            error: "this socket only shows: use `posse mail send` or `posse team`".into(),
        }),
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
