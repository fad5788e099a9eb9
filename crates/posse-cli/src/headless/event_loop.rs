//! The loop between an agent and the outside: events go out, lines and signals come in, until all is
//! done. What is to be done about each of them [`Controller`] decides.

use std::io;

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_protocol::{Event, EventKind};
use posse_runtime::live::handle::AgentHandle;
use tokio::sync::{mpsc, oneshot};

use super::controller::{Controller, Interruption, RunResult};
use super::input::stdin::StdinLine;
use super::output_item::OutputItem;
use super::sending::{Sending, sent};
use super::signals::Signals;
use super::team_watch::{Refresh, SOON, TeamWatch};
use super::writer::OutputWriter;

/// A wait for background runs, by its number.
type NumberedWait = (u64, BoxFuture<'static, ()>);

/// What comes from elsewhere than the agent.
pub(crate) struct LoopInputs {
    pub(crate) lines: Option<mpsc::Receiver<StdinLine>>,
    /// Comes if somebody should look at worktrees.
    pub(crate) swept: oneshot::Receiver<String>,
    /// Looks at how the team gets on, if there is one.
    pub(crate) watch: Option<TeamWatch>,
}

/// Goes on until the agent has done what it was told, or a signal says that it is enough. An error
/// means that nobody reads our output any more.
pub(crate) async fn run(
    mut controller: Controller,
    handle: AgentHandle,
    events: &mut mpsc::Receiver<Event>,
    outside: LoopInputs,
    clock: &dyn Clock,
) -> io::Result<RunResult> {
    let LoopInputs {
        mut lines,
        swept,
        mut watch,
    } = outside;
    let mut tick = watch.as_ref().map(|_| clock.sleep(SOON));
    let mut signals = Signals::new()?;
    let mut writer = OutputWriter::start()?;
    let mut handle = Some(handle);
    let mut sending: Option<Sending> = None;
    let mut wait: Option<NumberedWait> = None;
    let mut swept = Some(swept);
    writer.say(controller.greet());
    while !controller.must_leave() {
        if sending.is_none()
            && let Some(handle) = &handle
            && let Some(command) = controller.next_command()
        {
            sending = Some(Sending::new(handle, command));
        }
        if sending.is_none() && controller.is_done() {
            // When nobody can tell it anything any more the agent ends, and its events with it.
            handle = None;
        }
        wait = controller
            .waits()
            .map(|(number, patience)| match wait.take() {
                Some(wait) if wait.0 == number => wait,
                _ => (number, clock.sleep(patience)),
            });
        // A reader that does not read holds the agent up, until somebody wants it to stop.
        let hears = writer.is_ready() || controller.is_interrupted();
        tokio::select! {
            // What waited is handed on: events are heard again.
            handed_on = writer.work() => handed_on?,
            () = signals.next() => writer.say(controller.signal()),
            () = over(&mut wait), if wait.is_some() => {
                wait = None;
                writer.say(controller.waited());
            }
            note = told(&mut swept), if swept.is_some() => {
                swept = None;
                writer.say(note.map_or_else(Vec::new, |note| controller.note(note)));
            }
            () = sent(&mut sending), if sending.is_some() => sending = None,
            () = ticked(&mut tick), if tick.is_some() => {
                tick = Some(clock.sleep(SOON));
                writer.say(looked(&mut watch, &mut controller, clock, Refresh::IfChanged).await);
            }
            event = events.recv(), if hears => match event {
                Some(event) => {
                    watch.iter_mut().for_each(TeamWatch::touch);
                    // The last word comes after all that led to it.
                    if matches!(event.kind, EventKind::Ended(_)) {
                        writer.say(looked(&mut watch, &mut controller, clock, Refresh::Always).await);
                    }
                    writer.say(controller.event(event));
                }
                None => {
                    writer.say(controller.gone());
                    break;
                }
            },
            line = next(&mut lines), if hears && controller.takes_lines() => writer.say(controller.line(line)),
        }
    }
    let mut ending = controller.end();
    if !ending.leaves_at_once() {
        tokio::select! {
            written = writer.finish() => written?,
            () = signals.next() => ending.interruption = Interruption::Twice,
        }
    }
    Ok(ending)
}

/// Returns what there is to tell, if there is anything.
async fn told(swept: &mut Option<oneshot::Receiver<String>>) -> Option<String> {
    match swept {
        Some(swept) => swept.await.ok(),
        None => None,
    }
}

/// Returns what is to be written of the team as it stands.
async fn looked(
    watch: &mut Option<TeamWatch>,
    controller: &mut Controller,
    clock: &dyn Clock,
    refresh: Refresh,
) -> Vec<OutputItem> {
    let Some(watch) = watch else {
        return Vec::new();
    };
    watch
        .look(refresh)
        .await
        .map_or_else(Vec::new, |seen| controller.seen(seen, clock.now()))
}

async fn ticked(tick: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(tick) = tick {
        tick.await;
    }
}

async fn over(wait: &mut Option<NumberedWait>) {
    if let Some((_, wait)) = wait {
        wait.await;
    }
}

async fn next(lines: &mut Option<mpsc::Receiver<StdinLine>>) -> Option<StdinLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => None,
    }
}
