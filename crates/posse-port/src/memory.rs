//! The machine's memory as a port: no agents are started when it runs out.

/// Reports available memory.
pub trait Ram: Send + Sync {
    /// Returns the bytes available without swapping; `None` if unknown.
    fn available(&self) -> Option<u64>;
}

/// Available memory as reported by the kernel.
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
