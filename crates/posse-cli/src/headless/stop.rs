//! Ctrl-Z: the process stops, but never while it writes, because other processes would have to
//! wait.

use std::convert::Infallible;
use std::io;

use posse_tui::terminal::TerminalInput;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::assemble::store::OpenStore;

/// Stops the process whenever it is told to, and continues when it is resumed.
pub(crate) async fn when_told(store: OpenStore) -> io::Result<Infallible> {
    // On a server a stopped process blocks nobody.
    if store.file.is_none() {
        return std::future::pending().await;
    }
    let mut told = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    loop {
        if told.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        now(&store).await?;
    }
}

/// Stops the process, until it is resumed.
pub(crate) async fn now(store: &OpenStore) -> io::Result<()> {
    TerminalInput::stop();
    let file = store.file.clone();
    // The pause waits for the current batch, which must not block the runtime's only thread.
    let stopped = tokio::task::spawn_blocking(move || {
        let _still = file.as_ref().map(|file| file.still());
        // SIGTSTP may have a handler, so that only SIGSTOP stops the process.
        kill_process(getpid(), Signal::STOP)
    });
    Ok(stopped.await.map_err(io::Error::other)??)
}
