//! What a process has spent and holds.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;

use crate::Failed;

/// A running process.
#[derive(Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// Returns its processor time so far, that of threads that have ended included.
    pub(crate) fn cpu(self) -> Result<Duration, Failed> {
        let clock = ClockId::pid_cpu_clock_id(self.pid())?;
        Ok(clock.now()?.into())
    }

    /// Stops it until it is resumed.
    pub(crate) fn stop(self) -> Result<(), Failed> {
        Ok(kill(self.pid(), Signal::SIGSTOP)?)
    }

    /// Lets it continue.
    pub(crate) fn resume(self) -> Result<(), Failed> {
        Ok(kill(self.pid(), Signal::SIGCONT)?)
    }

    fn pid(self) -> Pid {
        Pid::from_raw(self.0.cast_signed())
    }

    /// Returns its memory in megabytes, with that of the processes that it has started.
    pub(crate) fn resident_mb(self) -> Result<f64, Failed> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let kilobytes = count(&status, "VmRSS:").ok_or("the kernel does not say")?;
        let mut megabytes = kilobytes as f64 / 1e3;
        for child in self.children()? {
            megabytes += child.resident_mb()?;
        }
        Ok(megabytes)
    }

    /// Returns the processes that it has started and that have not ended.
    pub(crate) fn children(self) -> Result<Vec<Self>, Failed> {
        let mut children = Vec::new();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.0))? {
            let started = std::fs::read_to_string(thread?.path().join("children"))?;
            for id in started.split_whitespace() {
                children.push(Self(id.parse()?));
            }
        }
        Ok(children)
    }

    /// Returns how often each of its threads has left a processor.
    pub(crate) fn switches(self) -> Result<Switches, Failed> {
        let mut switches = HashMap::new();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.0))? {
            let thread = thread?;
            // A thread may end before it is read.
            let Ok(status) = std::fs::read_to_string(thread.path().join("status")) else {
                continue;
            };
            let names = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
            let counts = names.map(|name| count(&status, name).unwrap_or(0));
            switches.insert(thread.file_name(), counts.iter().sum());
        }
        Ok(Switches(switches))
    }

    /// Returns the number of its threads.
    pub(crate) fn threads(self) -> Result<usize, Failed> {
        Ok(std::fs::read_dir(format!("/proc/{}/task", self.0))?.count())
    }
}

/// How often each thread of a process has left a processor.
pub(crate) struct Switches(HashMap<OsString, u64>);

impl Switches {
    /// Returns how often they have done so since `before`. Threads that have ended are left out.
    pub(crate) fn since(&self, before: &Self) -> u64 {
        let counts = self.0.iter().map(|(thread, count)| {
            let earlier = before.0.get(thread).copied().unwrap_or(0);
            // The number of a thread that has ended may be that of a new one.
            count.checked_sub(earlier).unwrap_or(*count)
        });
        counts.sum()
    }
}

/// Returns the number after a name in a file of `/proc`.
fn count(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_takes_nothing_from_the_others() {
        let switches = |threads: &[(&str, u64)]| {
            let named = threads.iter().map(|(id, count)| (id.into(), *count));
            Switches(named.collect())
        };
        let before = switches(&[("1", 100), ("2", 5000), ("3", 40)]);
        let after = switches(&[("1", 103), ("3", 2), ("4", 7)]);
        assert_eq!(after.since(&before), 3 + 2 + 7);
    }
}
