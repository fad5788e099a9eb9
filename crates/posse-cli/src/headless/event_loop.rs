//! The loop between an agent and the outside: events go out, lines and signals come in, until all is
//! done. What is to be done about each of them [`Exchange`] decides.

use std::future::Future;
use std::io;
use std::pin::Pin;

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_protocol::{Event, EventKind};
use posse_runtime::live::handle::AgentHandle;
use tokio::sync::{mpsc, oneshot};

use super::controller::{Ending, Exchange};
use super::input::stdin::Line;
use super::output_item::Said;
use super::signals::Signals;
use super::team_watch::{SOON, Watch, Worth};
use super::writer::Speaker;

/// A command on its way. The agent may wait until we have read its events, so we never wait for it alone.
type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A wait for background runs, by its number.
type Wait = (u64, Pin<Box<dyn Future<Output = ()> + Send>>);

/// What comes from elsewhere than the agent.
pub(crate) struct Outside {
    pub(crate) lines: Option<mpsc::Receiver<Line>>,
    /// Comes if somebody should look at worktrees.
    pub(crate) swept: oneshot::Receiver<String>,
    /// Looks at how the team gets on, if there is one.
    pub(crate) watch: Option<Watch>,
}

/// Goes on until the agent has done what it was told, or a signal says that it is enough. An error
/// means that nobody reads our output any more.
pub(crate) async fn drive(
    mut exchange: Exchange,
    handle: AgentHandle,
    events: &mut mpsc::Receiver<Event>,
    outside: Outside,
    clock: &dyn Clock,
) -> io::Result<Ending> {
    let Outside {
        mut lines,
        swept,
        mut watch,
    } = outside;
    let mut tick = watch.as_ref().map(|_| clock.sleep(SOON));
    let mut signals = Signals::new()?;
    let mut speaker = Speaker::start()?;
    let mut handle = Some(handle);
    let mut sending: Option<Sending> = None;
    let mut wait: Option<Wait> = None;
    let mut swept = Some(swept);
    speaker.say(exchange.greet());
    while !exchange.must_leave() {
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
        wait = exchange
            .waits()
            .map(|(number, patience)| match wait.take() {
                Some(wait) if wait.0 == number => wait,
                _ => (number, clock.sleep(patience)),
            });
        // A reader that does not read holds the agent up, until somebody wants it to stop.
        let hears = speaker.is_ready() || exchange.is_interrupted();
        tokio::select! {
            // What waited is handed on: events are heard again.
            handed_on = speaker.work() => handed_on?,
            () = signals.next() => speaker.say(exchange.signal()),
            () = over(&mut wait), if wait.is_some() => {
                wait = None;
                speaker.say(exchange.waited());
            }
            note = told(&mut swept), if swept.is_some() => {
                swept = None;
                speaker.say(note.map_or_else(Vec::new, |note| exchange.note(note)));
            }
            () = sent(&mut sending), if sending.is_some() => sending = None,
            () = ticked(&mut tick), if tick.is_some() => {
                tick = Some(clock.sleep(SOON));
                speaker.say(looked(&mut watch, &mut exchange, clock, Worth::Perhaps).await);
            }
            event = events.recv(), if hears => match event {
                Some(event) => {
                    watch.iter_mut().for_each(Watch::touch);
                    // The last word comes after all that led to it.
                    if matches!(event.kind, EventKind::Ended(_)) {
                        speaker.say(looked(&mut watch, &mut exchange, clock, Worth::Certainly).await);
                    }
                    speaker.say(exchange.event(event));
                }
                None => {
                    speaker.say(exchange.gone());
                    break;
                }
            },
            line = next(&mut lines), if hears && exchange.takes_lines() => speaker.say(exchange.line(line)),
        }
    }
    let mut ending = exchange.end();
    if !ending.at_once {
        tokio::select! {
            written = speaker.finish() => written?,
            () = signals.next() => (ending.interrupted, ending.at_once) = (true, true),
        }
    }
    Ok(ending)
}

async fn sent(sending: &mut Option<Sending>) {
    if let Some(sending) = sending {
        sending.await;
    }
}

/// What there is to tell, if there is anything.
async fn told(swept: &mut Option<oneshot::Receiver<String>>) -> Option<String> {
    match swept {
        Some(swept) => swept.await.ok(),
        None => None,
    }
}

/// What is to be written of the team as it stands.
async fn looked(
    watch: &mut Option<Watch>,
    exchange: &mut Exchange,
    clock: &dyn Clock,
    worth: Worth,
) -> Vec<Said> {
    let Some(watch) = watch else {
        return Vec::new();
    };
    watch
        .look(worth)
        .await
        .map_or_else(Vec::new, |seen| exchange.seen(seen, clock.now()))
}

async fn ticked(tick: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(tick) = tick {
        tick.await;
    }
}

async fn over(wait: &mut Option<Wait>) {
    if let Some((_, wait)) = wait {
        wait.await;
    }
}

async fn next(lines: &mut Option<mpsc::Receiver<Line>>) -> Option<Line> {
    match lines {
        Some(lines) => lines.recv().await,
        None => None,
    }
}
