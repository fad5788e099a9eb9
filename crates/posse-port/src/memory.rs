//! The machine's memory as a port: agents are not started where there is none left.

/// How much memory there is.
pub trait Ram: Send + Sync {
    /// Bytes that can be had without swapping; none if nobody knows.
    fn available(&self) -> Option<u64>;
}

/// What the kernel says.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemMemory;

impl Ram for SystemMemory {
    fn available(&self) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024)
    }
}
