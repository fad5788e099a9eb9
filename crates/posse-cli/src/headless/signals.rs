//! Signals that ask a front end to stop.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask to stop.
pub(crate) struct Signals {
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
        Ok(Self {
            interrupts,
            terminations,
            hangups,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
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

/// Waits for `last`, but not beyond the next signal, which asks to leave at once. A hang-up does
/// not count: it is sent more than once, and nobody is impatient.
pub(crate) async fn unless_signalled<T>(last: impl Future<Output = T>) -> io::Result<()> {
    let mut signals = Signals::new()?;
    signals.hangups = None;
    tokio::select! {
        _ = last => {}
        () = signals.next() => {}
    }
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
