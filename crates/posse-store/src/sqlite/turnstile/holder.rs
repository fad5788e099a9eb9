//! Finds the process that keeps all others from writing, as far as the system tells.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// Returns a message for people: which process blocks the others, and what to do about it.
pub(super) fn blame(next: &File, writer: &File) -> String {
    // Whoever is next only waits. If that is this process, it is not to blame.
    let waits = holder(next).filter(|pid| *pid != std::process::id());
    let holders: Vec<u32> = holder(writer).into_iter().chain(waits).collect();
    // If one of the two is stopped, it is the cause; the other only waits for it.
    match (
        holders.iter().find(|pid| is_stopped(**pid)),
        holders.first(),
    ) {
        (Some(pid), _) => format!(
            "posse process {pid} has stopped in the middle of writing; continue it (fg) or end it (kill {pid})"
        ),
        (None, Some(pid)) => {
            format!(
                "posse process {pid} has been writing for too long; wait for it or end it (kill {pid})"
            )
        }
        (None, None) => "another posse process has been writing for too long; try again".into(),
    }
}

/// Returns the process that has locked a file.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| locker(line, &inode))
}

/// Returns the process in a line like `7: FLOCK  ADVISORY  WRITE 4711 08:01:123 0 EOF`. Lines of
/// waiting processes have an arrow before the word.
fn locker(line: &str, inode: &str) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [_, "FLOCK", _, "WRITE", pid, place, ..] if place.rsplit(':').next() == Some(inode) => {
            // 0 is a process in another namespace, which this one cannot see.
            pid.parse().ok().filter(|pid| *pid != 0)
        }
        _ => None,
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // From the end: the process name before it may contain anything, including brackets.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_who_has_the_lock_is_named() {
        for (line, wanted) in [
            ("7: FLOCK  ADVISORY  WRITE 4711 08:01:123 0 EOF", Some(4711)),
            ("7: -> FLOCK  ADVISORY  WRITE 4712 08:01:123 0 EOF", None),
            ("7: POSIX  ADVISORY  WRITE 4711 08:01:123 0 EOF", None),
            ("7: FLOCK  ADVISORY  WRITE 4711 08:01:1123 0 EOF", None),
            ("7: FLOCK  ADVISORY  WRITE 0 08:01:123 0 EOF", None),
            ("", None),
        ] {
            assert_eq!(locker(line, "123"), wanted, "{line}");
        }
    }
}
