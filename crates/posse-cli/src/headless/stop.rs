//! Ctrl-Z: the process stops, but never while it writes, because other processes would have to
//! wait.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::assemble::store::OpenStore;

/// Stops the process whenever it is told to, and continues when it is resumed.
pub(crate) async fn when_told(store: OpenStore) -> io::Result<Infallible> {
    // On a server a stopped process blocks nobody.
    let Some(store) = store.file else {
        return std::future::pending().await;
    };
    let mut told = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    loop {
        if told.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        let store = Arc::clone(&store);
        // The pause waits for the current batch, which must not block the runtime's only thread.
        let stopped = tokio::task::spawn_blocking(move || {
            let _still = store.still();
            // SIGTSTP has a handler now, so that only SIGSTOP stops the process.
            kill_process(getpid(), Signal::STOP)
        });
        stopped.await.map_err(io::Error::other)??;
    }
}
