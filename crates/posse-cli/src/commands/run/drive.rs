//! The loop between an agent and the outside: events go out, lines and signals come in, until all is
//! done. What is to be done about each of them [`Exchange`] decides.

use std::future::Future;
use std::io;
use std::pin::Pin;

use posse_protocol::Event;
use posse_runtime::AgentHandle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::exchange::{Ending, Exchange};
use super::face::Said;
use super::stdin::Line;
use crate::output::{print, say, say_to_person};

/// A command on its way. The agent may wait until we have read its events, so we never wait for it alone.
type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Goes on until the agent has done what it was told, or a signal says that it is enough. An error
/// means that nobody reads our output any more.
pub(super) async fn drive(
    mut exchange: Exchange,
    handle: AgentHandle,
    events: &mut mpsc::Receiver<Event>,
    mut lines: Option<mpsc::Receiver<Line>>,
) -> io::Result<Ending> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let mut handle = Some(handle);
    let mut sending: Option<Sending> = None;
    write(exchange.greet())?;
    loop {
        if sending.is_none()
            && let Some(handle) = &handle
            && let Some(command) = exchange.next_command()
        {
            let handle = handle.clone();
            // An agent that is gone closes its events, and there we notice.
            sending = Some(Box::pin(async move {
                let _ = handle.send(command).await;
            }));
        }
        if sending.is_none() && exchange.is_done() {
            // When nobody can tell it anything any more the agent ends, and its events with it.
            handle = None;
        }
        tokio::select! {
            () = either(&mut interrupts, &mut terminations) => {
                exchange.signal();
                say_to_person("stopping; once more to leave at once");
            }
            () = sent(&mut sending), if sending.is_some() => sending = None,
            event = events.recv() => match event {
                Some(event) => write(exchange.event(event.kind))?,
                None => return Ok(exchange.gone()),
            },
            line = next(&mut lines), if exchange.takes_lines() => write(exchange.line(line))?,
        }
        if exchange.must_leave() {
            return Ok(exchange.end());
        }
    }
}

/// Waits for `last`, but no longer than until the next signal: whoever sends one wants to leave.
pub(super) async fn unless_signalled<T>(last: impl Future<Output = T>) -> io::Result<()> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = last => {}
        () = either(&mut interrupts, &mut terminations) => {}
    }
    Ok(())
}

/// Writes in order; an error means that nobody reads.
fn write(said: Vec<Said>) -> io::Result<()> {
    for said in said {
        match said {
            Said::Out(text) => print(text.as_bytes())?,
            Said::Note(note) => say(&format!("\x1b[2m{note}\x1b[0m")),
        }
    }
    Ok(())
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

async fn sent(sending: &mut Option<Sending>) {
    if let Some(sending) = sending {
        sending.await;
    }
}

async fn next(lines: &mut Option<mpsc::Receiver<Line>>) -> Option<Line> {
    match lines {
        Some(lines) => lines.recv().await,
        None => None,
    }
}
