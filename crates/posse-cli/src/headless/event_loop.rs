//! The loop between an agent and the outside: events go out, lines and signals come in.
//! [`Controller`] decides what to do about each of them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_protocol::{Event, EventKind};
use posse_runtime::live::handle::AgentHandle;
use posse_tui::terminal::TerminalInput;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::controller::{Controller, Interruption, RunResult};
use super::controller::{live_line, terminal};
use super::input::stdin::{StdinLine, StdinLines};
use super::keyboard::Keyboard;
use super::output_item::{OutputItem, line};
use super::render::live_line::PULSE;
use super::rule_keeper::RuleKeeper;
use super::sending::{Sending, sent};
use super::session_spending::SessionSpending;
use super::signals::Signals;
use super::team_watch::{Refresh, SOON, TeamWatch};
use super::terminal::can_redraw;
use super::writer::OutputWriter;

/// A board that is shown until the person leaves it.
pub(crate) type BoardShown = Pin<Box<dyn Future<Output = anyhow::Result<()>>>>;

/// A wait for background runs, with its number.
type NumberedWait = (u64, BoxFuture<'static, ()>);

/// Inputs other than the agent's events.
pub(crate) struct LoopInputs {
    /// Lines of standard input, if it is read.
    pub(crate) lines: Option<StdinLines>,
    /// The keys of the person who answers questions.
    pub(crate) keyboard: Option<Keyboard>,
    /// Shows the team on the whole screen, until the person leaves it.
    pub(crate) board: Option<BoardShown>,
    /// Receives a line if worktrees of ended agents hold work.
    pub(crate) swept: oneshot::Receiver<String>,
    /// Watches the team's progress.
    pub(crate) watch: TeamWatch,
    /// The team's progress is shown, too.
    pub(crate) shows_team: bool,
    /// Reads what the whole session has spent.
    pub(crate) spending: Option<SessionSpending>,
    /// Keeps rules for later sessions.
    pub(crate) rules: RuleKeeper,
    /// Lines by which a program is asked about its hooks.
    pub(crate) callbacks: Option<mpsc::Receiver<Value>>,
    /// Is shown each event.
    pub(crate) watches: Box<dyn FnMut(&Event)>,
}

/// Runs until the agent has finished or a signal ends it. An error means that nobody reads the
/// output any more.
pub(crate) async fn run(
    mut controller: Controller,
    (handle, events): (AgentHandle, &mut mpsc::Receiver<Event>),
    outside: LoopInputs,
    (mut writer, signals): (OutputWriter, &mut Signals),
    clock: &dyn Clock,
) -> io::Result<RunResult> {
    let LoopInputs {
        mut lines,
        mut keyboard,
        mut board,
        swept,
        mut watch,
        shows_team,
        spending,
        mut rules,
        mut callbacks,
        mut watches,
    } = outside;
    let mut tick = shows_team.then(|| clock.sleep(SOON));
    let has_live_line = live_line::is_wanted(&controller) && can_redraw();
    let mut pulse = has_live_line.then(|| clock.sleep(Duration::ZERO));
    if board.is_some() {
        writer.hold();
    }
    let mut on_terminal = writer.asked();
    let mut handle = Some(handle);
    let mut sending: Option<Sending> = None;
    let mut wait: Option<NumberedWait> = None;
    let mut swept = Some(swept);
    // The first line says which servers are there. Who stops posse does not wait for them.
    let is_stopped = tokio::select! {
        () = controller.ready() => false,
        () = signals.next() => true,
    };
    writer.say(controller.greet());
    if is_stopped {
        writer.say(controller.signal());
    }
    while !controller.must_leave() {
        writer.say(controller.state().into_iter().collect());
        // One command at a time, so that they arrive in their order.
        if sending.is_none()
            && let Some(handle) = &handle
            && let Some(command) = controller.next_command()
        {
            sending = Some(Sending::new(handle, command));
        }
        if sending.is_none() && controller.is_done() {
            // Without a handle nobody can send anything: the agent ends, and so do its events.
            handle = None;
        }
        wait = controller
            .waits()
            .map(|(number, patience)| match wait.take() {
                // The same wait continues: a new sleep would never end while events keep coming.
                Some(wait) if wait.0 == number => wait,
                _ => (number, clock.sleep(patience)),
            });
        // What is typed before the question is on the terminal is no answer.
        let typing = terminal::typing(&controller);
        let asked = *on_terminal.borrow_and_update();
        if let Some(keyboard) = &mut keyboard {
            let typing = typing.filter(|(shown, _)| asked >= *shown);
            keyboard.read(typing.map(|(_, typing)| typing));
        }
        // A reader that does not read holds up the agent, but must not keep a person from
        // stopping it.
        let hears = writer.is_ready() || controller.is_interrupted();
        tokio::select! {
            // First of all what waits is written, so that events are read again.
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
            () = ticked(&mut pulse), if pulse.is_some() && writer.is_ready() => {
                pulse = Some(clock.sleep(PULSE));
                writer.say(live_line::pulse(&mut controller, clock.now()));
            }
            event = events.recv(), if hears => match event {
                Some(event) => {
                    watches(&event);
                    if let EventKind::Member(news) = &event.kind {
                        watch.made(&news.team);
                    }
                    // The state of the team is written before the result that it led to.
                    if matches!(event.kind, EventKind::Ended(_) | EventKind::AllIdle) {
                        let outlets = (&mut writer, &mut *signals);
                        if !settled(&mut watch, &mut controller, clock, outlets).await? {
                            writer.say(controller.give_up_on_store(event));
                            continue;
                        }
                        reckon(spending.as_ref(), &mut controller).await;
                    }
                    writer.say(controller.event(event));
                }
                None => {
                    writer.say(controller.gone());
                    break;
                }
            },
            read = next(&mut lines), if hears && controller.takes_lines() => {
                writer.say(controller.line(read));
                rules.add(controller.take_kept());
            }
            Ok(()) = on_terminal.changed(), if typing.is_some() => {}
            typed = pressed(&mut keyboard), if typing.is_some() => {
                writer.say(match typed {
                    Some(typed) => terminal::typed(&mut controller, &typed),
                    None => terminal::show_next(&mut controller),
                });
                rules.add(controller.take_kept());
            }
            Some(asked) = asked_back(&mut callbacks), if hears => writer.say(vec![line(&asked)]),
            note = rules.next(), if rules.is_busy() => writer.say(controller.note(note)),
            left = closed(&mut board), if board.is_some() => {
                board = None;
                writer.release();
                writer.say(terminal::board_closed(&mut controller, left.err()));
            }
        }
    }
    // Before anything is written to the terminal.
    drop((keyboard, board));
    TerminalInput::stop();
    writer.release();
    // Rules that a person wants to keep are written, unless that person does not want to wait.
    while rules.is_busy() && !controller.is_interrupted_twice() {
        tokio::select! {
            note = rules.next() => writer.say(controller.note(note)),
            () = signals.next() => writer.say(controller.signal()),
        }
    }
    let mut ending = controller.end();
    if ending.interruption != Interruption::Twice {
        // A reader that does not read must not keep a person from leaving.
        tokio::select! {
            written = writer.finish() => written?,
            () = signals.next() => ending.interruption = Interruption::Twice,
        }
    }
    Ok(ending)
}

/// Waits for a line about worktrees.
pub(crate) async fn told(swept: &mut Option<oneshot::Receiver<String>>) -> Option<String> {
    match swept {
        Some(swept) => swept.await.ok(),
        None => None,
    }
}

/// Returns the output about the team's current state.
async fn looked(
    watch: &mut TeamWatch,
    controller: &mut Controller,
    clock: &dyn Clock,
    refresh: Refresh,
) -> Vec<OutputItem> {
    let seen = watch.look(refresh).await;
    let mut items = seen.map_or_else(Vec::new, |seen| controller.seen(seen, clock.now()));
    items.extend(controller.store(watch.silence()));
    items
}

/// Reads the state of the team on which the result depends, and waits for a store that does not
/// answer. Returns false if it was waited for in vain.
async fn settled(
    watch: &mut TeamWatch,
    controller: &mut Controller,
    clock: &dyn Clock,
    (writer, signals): (&mut OutputWriter, &mut Signals),
) -> io::Result<bool> {
    let begun = clock.now();
    loop {
        writer.say(looked(watch, controller, clock, Refresh::Always).await);
        if watch.silence().is_none() {
            return Ok(true);
        }
        match controller.waits() {
            // A program that sends lines decides itself how long it waits.
            None => return Ok(true),
            Some((_, patience)) if clock.now().saturating_sub(begun) >= patience => {
                return Ok(false);
            }
            Some(_) => {}
        }
        tokio::select! {
            handed_on = writer.work() => handed_on?,
            () = signals.next() => {
                writer.say(controller.signal());
                return Ok(true);
            }
            () = clock.sleep(SOON) => {}
        }
    }
}

/// Reads what the whole session has spent, if this process has not counted all of it: members of a
/// team may work in other processes, and earlier ones may have died with calls in flight.
async fn reckon(spending: Option<&SessionSpending>, controller: &mut Controller) {
    let now = match spending {
        Some(spending) if spending.is_continued() || controller.has_members() => {
            spending.now().await
        }
        _ => None,
    };
    controller.spent(now);
}

/// Waits for a line about a hook; for ever if there are none.
async fn asked_back(callbacks: &mut Option<mpsc::Receiver<Value>>) -> Option<Value> {
    match callbacks {
        Some(callbacks) => callbacks.recv().await,
        None => std::future::pending().await,
    }
}

async fn closed(board: &mut Option<BoardShown>) -> anyhow::Result<()> {
    match board {
        Some(board) => board.await,
        None => Ok(()),
    }
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

async fn pressed(keyboard: &mut Option<Keyboard>) -> Option<String> {
    match keyboard {
        Some(keyboard) => keyboard.next().await,
        None => std::future::pending().await,
    }
}

/// Waits for a line; `None` at the end of the input, and if it is not read.
pub(crate) async fn next(lines: &mut Option<StdinLines>) -> Option<StdinLine> {
    match lines {
        Some(lines) => lines.next().await,
        None => None,
    }
}
