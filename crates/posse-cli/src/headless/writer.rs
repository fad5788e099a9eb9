//! Writes output on a separate thread, so that a reader that does not read blocks nothing else.

use std::collections::VecDeque;
use std::io;
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use super::output_item::OutputItem;
use super::screen::Screen;

/// Number of items that may wait for the thread.
const WAITING: usize = 64;
/// Number of items that are kept while something else is on the terminal.
const HELD: usize = 200;

/// Items that a writer hands to a caller within the process, until this is dropped.
pub(crate) struct HandedItems {
    items: mpsc::Receiver<OutputItem>,
    /// Tells the writer that nobody reads any more.
    _reads: oneshot::Sender<io::Result<()>>,
}

impl HandedItems {
    /// Returns the next item; `None` once the writer has finished.
    pub(crate) async fn next(&mut self) -> Option<OutputItem> {
        self.items.recv().await
    }
}

/// Writes items in order, without making anyone wait.
pub(crate) struct OutputWriter {
    /// Items for which the channel has no space yet.
    pending: VecDeque<OutputItem>,
    /// Something else is on the terminal; the number of items that were left out since then.
    held: Option<usize>,
    to_thread: Option<mpsc::Sender<OutputItem>>,
    /// Number of questions that are on the terminal.
    asked: watch::Receiver<u64>,
    /// How the thread ended; an error means that nobody reads any more.
    ended: oneshot::Receiver<io::Result<()>>,
}

impl OutputWriter {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (to_thread, mut items) = mpsc::channel::<OutputItem>(WAITING);
        let (tell, ended) = oneshot::channel();
        let (count, asked) = watch::channel(0);
        thread::Builder::new()
            .name("posse-speaker".into())
            .spawn(move || {
                let mut screen = Screen::default();
                let written = loop {
                    match items.blocking_recv() {
                        None => break Ok(()),
                        Some(item) => {
                            let is_question = matches!(item, OutputItem::Ask(_));
                            if let Err(error) = screen.write(item) {
                                break Err(error);
                            }
                            // What is followed by more need not be drawn.
                            if is_question || items.is_empty() {
                                screen.draw();
                            }
                            if is_question {
                                count.send_modify(|count| *count += 1);
                            }
                        }
                    }
                };
                // What is no longer updated would show a wrong state.
                screen.clear();
                // Nobody may be waiting any more.
                let _ = tell.send(written);
            })?;
        Ok(Self {
            pending: VecDeque::new(),
            held: None,
            to_thread: Some(to_thread),
            asked,
            ended,
        })
    }

    /// Returns a writer that hands its items to a caller instead of writing them.
    pub(crate) fn to_caller() -> (Self, HandedItems) {
        let (to_caller, items) = mpsc::channel(WAITING);
        let (reads, ended) = oneshot::channel();
        let writer = Self {
            pending: VecDeque::new(),
            held: None,
            to_thread: Some(to_caller),
            asked: watch::channel(0).1,
            ended,
        };
        let handed = HandedItems {
            items,
            _reads: reads,
        };
        (writer, handed)
    }

    /// Returns the number of questions that are on the terminal, as it changes.
    pub(crate) fn asked(&self) -> watch::Receiver<u64> {
        self.asked.clone()
    }

    /// Returns true if everything has been passed on, so that more may come.
    pub(crate) fn is_ready(&self) -> bool {
        self.pending.is_empty() || self.held.is_some()
    }

    /// Keeps the newest items back from now on: something else is on the terminal.
    pub(crate) fn hold(&mut self) {
        self.held = Some(0);
    }

    /// Writes what was kept back, and what comes from now on.
    pub(crate) fn release(&mut self) {
        if let Some(1..) = self.held.take() {
            let note = "… the lines before these are left out; `posse attach --plain` shows the whole \
                        transcript";
            self.pending.push_front(OutputItem::Note(note.into()));
        }
        self.say(Vec::new());
    }

    /// Queues items.
    pub(crate) fn say(&mut self, items: Vec<OutputItem>) {
        if let Some(left_out) = &mut self.held {
            items
                .into_iter()
                .for_each(|item| keep(&mut self.pending, item));
            let excess = self.pending.len().saturating_sub(HELD);
            self.pending.drain(..excess);
            *left_out += excess;
            return;
        }
        self.pending.extend(items);
        while let (Some(next), Some(to_thread)) = (self.pending.pop_front(), &self.to_thread) {
            if let Err(mpsc::error::TrySendError::Full(next)) = to_thread.try_send(next) {
                self.pending.push_front(next);
                return;
            }
        }
    }

    /// Passes items on as space becomes available, and returns when all are passed on. An error
    /// means that nobody reads.
    pub(crate) async fn work(&mut self) -> io::Result<()> {
        loop {
            let is_ready = self.is_ready();
            let room = async {
                match (&self.to_thread, is_ready) {
                    (Some(to_thread), false) => to_thread.reserve().await.is_ok(),
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut self.ended => {
                    let error = ended.ok().and_then(Result::err);
                    return Err(error.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()));
                }
                true = room => self.say(Vec::new()),
            }
            if self.is_ready() {
                return Ok(());
            }
        }
    }

    /// Writes the rest and ends.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        while let (Some(next), Some(to_thread)) = (self.pending.pop_front(), &self.to_thread) {
            if to_thread.send(next).await.is_err() {
                // The thread has ended early, and `ended` says why.
                break;
            }
        }
        // Closes the channel, which ends the thread once it has written everything.
        self.to_thread = None;
        self.ended.await.unwrap_or(Ok(()))
    }
}

/// Adds an item to those that are kept back. Only the last state of what changes in place matters.
fn keep(kept: &mut VecDeque<OutputItem>, item: OutputItem) {
    match (item, kept.back_mut()) {
        (
            OutputItem::Reply { lines, open },
            Some(OutputItem::Reply {
                lines: before,
                open: last,
            }),
        ) => {
            before.push_str(&lines);
            *last = open;
        }
        (item @ OutputItem::Panel(_), _) => {
            kept.retain(|item| !matches!(item, OutputItem::Panel(_)));
            kept.push_back(item);
        }
        // It is drawn again soon.
        (OutputItem::LiveLine(_), _) => {}
        (item, _) => kept.push_back(item),
    }
}
