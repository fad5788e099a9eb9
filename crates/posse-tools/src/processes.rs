//! The processes of a call: found by their group, by the marker in their environment and by descent, and
//! ended. Nothing that a call starts outlives it, not even what left its group or its session.
//!
//! Out of reach is only who left the group, emptied its environment and lost its parent, all three.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use posse_runtime::port::clock::Clock;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The variable that marks what a call starts.
pub(crate) const MARK: &str = "POSSE_CALL";

/// How long a process that is asked to end may take.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long one that was killed may take, and how often is looked again for what was forked meanwhile.
const KILL_WAIT: Duration = Duration::from_millis(100);
const KILL_ROUNDS: usize = 5;

/// All processes of one call.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The marker in the environment, as it stands there.
    entry: Vec<u8>,
    /// The group of the shell, while that is not reaped: then no stranger can have its number.
    group: Option<i32>,
}

impl Family {
    /// What carries this marker.
    pub(crate) fn marked(marker: &str) -> Self {
        Self { entry: format!("{MARK}={marker}").into_bytes(), group: None }
    }

    /// And what is in this group.
    pub(crate) fn with_group(self, group: Pid) -> Self {
        Self { group: Some(group.as_raw_nonzero().get()), ..self }
    }

    /// Those that live.
    pub(crate) async fn living(&self) -> Vec<Member> {
        let family = self.clone();
        let found = tokio::task::spawn_blocking(move || family.scan()).await;
        found.unwrap_or_default().into_iter().filter_map(Member::watch).collect()
    }

    /// Ends them all, asking first; how many there were.
    pub(crate) async fn end(&self, clock: &dyn Clock) -> usize {
        let living = self.living().await;
        let count = living.len();
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

    /// Kills them all at once, without waiting.
    pub(crate) fn kill(&self) {
        for handle in self.scan() {
            // Who is gone already needs no signal.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }

    fn scan(&self) -> Vec<OwnedFd> {
        let own = std::process::id().cast_signed();
        let all: Vec<Process> = pids().filter(|pid| *pid != own).filter_map(Process::read).collect();
        let belongs =
            |process: &&Process| Some(process.group) == self.group || self.carries_mark(process.pid);
        let mut ours: HashSet<i32> = all.iter().filter(belongs).map(|process| process.pid).collect();
        loop {
            let before = ours.len();
            let children = all.iter().filter(|process| ours.contains(&process.parent));
            let children: Vec<i32> = children.map(|process| process.pid).collect();
            ours.extend(children);
            if ours.len() == before {
                break;
            }
        }
        all.iter().filter(|process| ours.contains(&process.pid)).filter_map(Process::handle).collect()
    }

    fn carries_mark(&self, pid: i32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == self.entry)
    }
}

/// A process that is watched for its end.
pub(crate) struct Member(AsyncFd<OwnedFd>);

impl Member {
    /// Watches the process behind a handle.
    #[expect(
        deprecated,
        reason = "unsound for what lends out strange descriptors, which an OwnedFd does not; its heir is unsafe"
    )]
    pub(crate) fn watch(handle: OwnedFd) -> Option<Self> {
        AsyncFd::with_interest(handle, Interest::READABLE).ok().map(Self)
    }

    /// Ends when it has.
    pub(crate) async fn gone(&self) {
        // A handle becomes readable when its process ends.
        let _ = self.0.readable().await;
    }
}

/// Ends when all of them have.
pub(crate) async fn gone(members: Vec<Member>) {
    for member in members {
        member.gone().await;
    }
}

/// Waits for `work`, but not for longer than this.
pub(crate) async fn within<T>(clock: &dyn Clock, most: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = clock.sleep(most) => None,
    }
}

fn signal(members: &[Member], signal: Signal) {
    for member in members {
        // Who is gone already needs no signal.
        let _ = pidfd_send_signal(member.0.get_ref(), signal);
    }
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A line of `/proc/PID/stat`.
#[derive(Debug, PartialEq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    ended: bool,
    /// Tells it from a later one of the same number.
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: i32, stat: &str) -> Option<Self> {
        // The name, in parentheses, may itself have some.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            ended: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// A handle of it, if it lives. Looked at again once the handle is held: then it is the same process.
    fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        let now = Self::read(self.pid)?;
        (now.started == self.started && !now.ended).then_some(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "7 (a) R 1 (b) S 3 4 5 0 -1 1 2 3 4 5 6 7 8 9 20 0 1 0 12345 9";
        let process = Process { pid: 7, parent: 3, group: 4, ended: false, started: 12345 };
        assert_eq!(Process::parse(7, stat), Some(process));
        assert_eq!(Process::parse(7, "7 (a"), None);
    }
}
