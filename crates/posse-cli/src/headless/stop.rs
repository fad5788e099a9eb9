//! Ctrl-Z: the process stops, but never while it writes. Other processes would have to wait for it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::assemble::store::OpenStore;

/// Stops the process each time it is told to, and goes on when it is continued.
pub(crate) async fn when_told(store: OpenStore) -> io::Result<Infallible> {
    // A server has no turns to write that somebody could keep from others.
    let Some(store) = store.file else {
        return std::future::pending().await;
    };
    let mut told = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    loop {
        if told.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        let store = Arc::clone(&store);
        let stopped = tokio::task::spawn_blocking(move || {
            let _still = store.still();
            kill_process(getpid(), Signal::STOP)
        });
        stopped.await.map_err(io::Error::other)??;
    }
}
