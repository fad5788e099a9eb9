//! What a process has spent and holds.

use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;

use crate::Failed;

/// A running process.
#[derive(Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// Returns its processor time so far, that of threads that have ended included.
    pub(crate) fn cpu(self) -> Result<Duration, Failed> {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(self.0.cast_signed()))?;
        Ok(clock.now()?.into())
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

    /// Returns how often its threads have been given a processor.
    pub(crate) fn switches(self) -> Result<u64, Failed> {
        let mut switches = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.0))? {
            let status = std::fs::read_to_string(thread?.path().join("status"))?;
            switches += count(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            switches += count(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
        }
        Ok(switches)
    }

    /// Returns the number of its threads.
    pub(crate) fn threads(self) -> Result<usize, Failed> {
        Ok(std::fs::read_dir(format!("/proc/{}/task", self.0))?.count())
    }
}

/// Returns the number after a name in a file of `/proc`.
fn count(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
