//! The processes of a call: found by their group, by the marker in their environment and by
//! descent, and ended. Nothing that a call starts outlives it, not even what left its group or its
//! session.
//!
//! Out of reach is only who left the group, emptied its environment and lost its parent, all three.

use std::os::fd::OwnedFd;
use std::time::Duration;

use posse_port::clock::Clock;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;

use crate::process_table::{CALL_MARK, Process, ProcessTable, ScanRequest};

/// How long a process that is asked to end may take.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long one that was killed may take, and how often is looked again for what was forked
/// meanwhile.
const KILL_WAIT: Duration = Duration::from_millis(100);
const KILL_ROUNDS: usize = 5;

/// Whose turn it is to look.
static TURN: Mutex<()> = Mutex::const_new(());

/// All processes of one call.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The mark in the environment, as it stands there.
    mark: Vec<u8>,
    /// The group of the shell, while that is not reaped: then no stranger can have its number.
    group: Option<i32>,
}

impl Family {
    /// What carries this marker.
    pub(crate) fn marked(marker: &str) -> Self {
        Self {
            mark: format!("{CALL_MARK}={marker}").into_bytes(),
            group: None,
        }
    }

    /// And what is in this group.
    pub(crate) fn with_group(self, group: Pid) -> Self {
        Self {
            group: Some(group.as_raw_nonzero().get()),
            ..self
        }
    }

    /// Returns those that live.
    pub(crate) async fn living(&self) -> Vec<WatchedProcess> {
        let asked = ScanRequest::now();
        // Who waits for its turn takes no thread, and finds that another has looked for it.
        let _turn = TURN.lock().await;
        let made = match ProcessTable::made_since(asked) {
            Some(table) => Ok(table),
            None => tokio::task::spawn_blocking(move || ProcessTable::since(asked)).await,
        };
        let Ok(table) = made else { return Vec::new() };
        self.among(&table)
            .into_iter()
            .filter_map(WatchedProcess::watch)
            .collect()
    }

    /// Ends them all, asking first; how many there were.
    pub(crate) async fn end(&self, clock: &dyn Clock) -> usize {
        let living = self.living().await;
        let count = living.len();
        if count == 0 {
            return 0;
        }
        signal(&living, Signal::TERM);
        within(clock, PATIENCE, gone(living)).await;
        for _ in 0..KILL_ROUNDS {
            let left = self.living().await;
            if left.is_empty() {
                break;
            }
            signal(&left, Signal::KILL);
            within(clock, KILL_WAIT, gone(left)).await;
        }
        count
    }

    /// Kills them all at once, and looks again for what was forked meanwhile. Does not wait for
    /// their ends.
    pub(crate) fn kill(&self) {
        for _ in 0..KILL_ROUNDS {
            let found = self.among(&ProcessTable::since(ScanRequest::now()));
            if found.is_empty() {
                return;
            }
            for handle in found {
                // Who is gone already needs no signal.
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
    }

    fn among(&self, table: &ProcessTable) -> Vec<OwnedFd> {
        // A shell that has just been started leads no group yet and carries no mark.
        let grouped =
            |process: &Process| [process.group, process.pid].map(Some).contains(&self.group);
        table.family(|process| grouped(process) || process.carries(&self.mark))
    }
}

/// A process that is watched for its end.
pub(crate) struct WatchedProcess(AsyncFd<OwnedFd>);

impl WatchedProcess {
    /// Watches the process behind a handle.
    #[expect(
        deprecated,
        reason = "unsound for what lends out strange descriptors, which an OwnedFd does not; its heir is unsafe"
    )]
    pub(crate) fn watch(handle: OwnedFd) -> Option<Self> {
        AsyncFd::with_interest(handle, Interest::READABLE)
            .ok()
            .map(Self)
    }

    /// Ends when it has.
    pub(crate) async fn gone(&self) {
        // A handle becomes readable when its process ends.
        let _ = self.0.readable().await;
    }
}

/// Ends when all of them have.
pub(crate) async fn gone(members: Vec<WatchedProcess>) {
    for member in members {
        member.gone().await;
    }
}

/// Waits for `work`, but not for longer than this.
pub(crate) async fn within<T>(
    clock: &dyn Clock,
    most: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = clock.sleep(most) => None,
    }
}

fn signal(members: &[WatchedProcess], signal: Signal) {
    for member in members {
        // Who is gone already needs no signal.
        let _ = pidfd_send_signal(member.0.get_ref(), signal);
    }
}
