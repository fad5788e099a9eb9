//! Signals that ask a front end to stop: of the process, or of a caller within it.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// The signals that ask to stop.
pub(crate) enum Signals {
    /// Those of the process.
    Process(ProcessSignals),
    /// One for each message. When nobody can send any more, there are none.
    Caller(mpsc::Receiver<()>),
}

/// The signals that a process gets from outside.
pub(crate) struct ProcessSignals {
    interrupts: Signal,
    terminations: Signal,
    /// The terminal is closed. `None` if that does not matter (any more).
    hangups: Option<Signal>,
}

impl Signals {
    /// Starts listening to the signals.
    pub(crate) fn new() -> io::Result<Self> {
        // A process that was started with nohup shall stay. Read before any handler is installed,
        // because that would replace what the process has inherited.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangups = if ignores_hangup(&status) {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        };
        let (interrupts, terminations) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        Ok(Self::Process(ProcessSignals {
            interrupts,
            terminations,
            hangups,
        }))
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        match self {
            Self::Process(signals) => signals.next().await,
            Self::Caller(stops) => match stops.recv().await {
                Some(()) => {}
                None => std::future::pending().await,
            },
        }
    }

    /// Waits for `last`, but not beyond the next signal, which asks to leave at once. A hang-up does
    /// not count: it is sent more than once, and nobody is impatient.
    pub(crate) async fn unless_next<T>(&mut self, last: impl Future<Output = T>) {
        if let Self::Process(signals) = self {
            signals.hangups = None;
        }
        tokio::select! {
            _ = last => {}
            () = self.next() => {}
        }
    }
}

impl ProcessSignals {
    async fn next(&mut self) {
        let hung_up = tokio::select! {
            _ = self.interrupts.recv() => false,
            _ = self.terminations.recv() => false,
            () = received(&mut self.hangups) => true,
        };
        if hung_up {
            // The shell and the kernel both send it, which is not a second request.
            self.hangups = None;
        }
    }
}

/// Waits for `last`, but not beyond the next signal of the process.
pub(crate) async fn unless_signalled<T>(last: impl Future<Output = T>) -> io::Result<()> {
    Signals::new()?.unless_next(last).await;
    Ok(())
}

/// Returns true if the process was started with SIGHUP, which is number 1, ignored.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_noticed() {
        assert!(ignores_hangup(
            "Name:\tposse\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"
        ));
        assert!(!ignores_hangup(
            "SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"
        ));
        assert!(!ignores_hangup(""));
    }
}
