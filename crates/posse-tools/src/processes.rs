//! The processes of a call: found by their group, by the mark in their environment and by
//! descent, and ended. Nothing that a call starts outlives it, even if it left its group or its
//! session.
//!
//! Out of reach is only a process that left the group, cleared its environment and lost its
//! parent.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::Clock;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;

use crate::process_table::{CALL_MARK, Process, ProcessTable, ScanRequest, younger_than};

/// How long what a program leaves behind may take to end by itself, `>(tee log)` for one.
pub(crate) const AFTERMATH: Duration = Duration::from_millis(100);
/// How long a process may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long a killed process may take to end.
const KILL_WAIT: Duration = Duration::from_millis(100);
/// How often the family is looked for again, since members may fork while others are killed.
const KILL_ROUNDS: usize = 5;

/// Lets one task scan at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// All processes of one call.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The mark in the environment, as `NAME=value`.
    mark: Vec<u8>,
    /// The group of the shell. Only used until the shell is reaped: afterwards the number could
    /// belong to a stranger.
    group: Option<i32>,
}

impl Family {
    /// Returns the family of the processes that carry this marker.
    pub(crate) fn marked(marker: &str) -> Self {
        Self {
            mark: format!("{CALL_MARK}={marker}").into_bytes(),
            group: None,
        }
    }

    /// Adds the processes in this group.
    pub(crate) fn with_group(self, group: Pid) -> Self {
        Self {
            group: Some(group.as_raw_nonzero().get()),
            ..self
        }
    }

    /// Returns the members that are alive.
    pub(crate) async fn living(&self) -> Vec<WatchedProcess> {
        let table = scan().await;
        table.map_or_else(Vec::new, |table| self.watched(&table))
    }

    /// Returns true if a look at the youngest processes shows that no member is alive, now that the
    /// first one has ended. The family must be so young that no number was given twice since.
    pub(crate) fn is_gone(&self) -> bool {
        let Some(younger) = self.group.and_then(younger_than) else {
            return false;
        };
        // Whatever descends from a member is a member's child or has lost its parent, and then
        // it has the group or the mark.
        !younger.iter().any(|process| self.has(process))
    }

    /// Lets members end by themselves, for a moment. Returns true if there certainly were none.
    pub(crate) async fn settle(&self, clock: &dyn Clock) -> bool {
        let Some(table) = scan().await else {
            return false;
        };
        let living = self.watched(&table);
        if living.is_empty() {
            return table.is_whole();
        }
        within(clock, AFTERMATH, gone(living)).await;
        false
    }

    /// Ends all members, with SIGTERM first. Returns how many there were.
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

    /// Kills all members, and looks again for what they forked meanwhile. Does not wait for them
    /// to end.
    pub(crate) fn kill(&self) {
        for _ in 0..KILL_ROUNDS {
            let found = self.among(&ProcessTable::since(ScanRequest::now()));
            if found.is_empty() {
                return;
            }
            for handle in found {
                // Fails only for a process that has already ended.
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
    }

    fn watched(&self, table: &ProcessTable) -> Vec<WatchedProcess> {
        let handles = self.among(table).into_iter();
        handles.filter_map(WatchedProcess::watch).collect()
    }

    /// Returns true if a process is a member by itself.
    fn has(&self, process: &Process) -> bool {
        // A shell that was just started does not lead its group yet and carries no mark, so its
        // process id is compared, too.
        [process.group, process.pid].map(Some).contains(&self.group) || process.carries(&self.mark)
    }

    /// Returns handles of the members in a scan.
    fn among(&self, table: &ProcessTable) -> Vec<OwnedFd> {
        table.family(|process| self.has(process))
    }
}

/// Returns a scan that begins now.
async fn scan() -> Option<Arc<ProcessTable>> {
    let asked = ScanRequest::now();
    // Waiting here instead of in `since` occupies no thread, and the scan made meanwhile is
    // often new enough.
    let _turn = TURN.lock().await;
    match ProcessTable::made_since(asked) {
        Some(table) => Some(table),
        None => {
            let made = tokio::task::spawn_blocking(move || ProcessTable::since(asked));
            made.await.ok()
        }
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

    /// Waits until the process has ended.
    pub(crate) async fn gone(&self) {
        // A handle becomes readable when its process ends.
        let _ = self.0.readable().await;
    }
}

/// Waits until all of them have ended.
pub(crate) async fn gone(members: Vec<WatchedProcess>) {
    for member in members {
        member.gone().await;
    }
}

/// Waits for `work`, at most this long. Returns none if it was not done by then.
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

/// Sends a signal to all of them.
fn signal(members: &[WatchedProcess], signal: Signal) {
    for member in members {
        // Fails only for a process that has already ended.
        let _ = pidfd_send_signal(member.0.get_ref(), signal);
    }
}
