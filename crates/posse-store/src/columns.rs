//! How enums and hashes are encoded in columns, the same for both engines.
//!
//! The numbers are part of the file format: they are never changed or reused.

use posse_port::store::AgentState;
use posse_protocol::{EntryKind, Purpose, RunStatus, TaskStatus};
use uuid::Uuid;

/// Returns the number that stands for a kind of entry.
pub(crate) fn kind(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::Prompt => 1,
        EntryKind::Reply => 2,
        EntryKind::Results => 3,
        EntryKind::Compaction => 4,
    }
}

/// Returns the kind of entry a number stands for, if any.
pub(crate) fn kind_from(number: i64) -> Option<EntryKind> {
    [
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Compaction,
    ]
    .into_iter()
    .find(|it| kind(*it) == number)
}

/// Returns the number that stands for the purpose of a charge.
pub(crate) fn purpose(purpose: Purpose) -> i64 {
    match purpose {
        Purpose::Work => 0,
        Purpose::Compaction => 1,
        Purpose::Question => 2,
        Purpose::Progress => 3,
        Purpose::Memory => 4,
    }
}

/// Returns the number that stands for an agent's state.
pub(crate) fn state(state: AgentState) -> i64 {
    match state {
        AgentState::Idle => 0,
        AgentState::Running => 1,
        AgentState::Paused => 2,
        AgentState::Created => 3,
        AgentState::Waiting => 4,
        AgentState::Completed => 5,
        AgentState::Partial => 6,
        AgentState::Failed => 7,
        AgentState::Killed => 8,
    }
}

/// Returns the agent's state a number stands for, if any.
pub(crate) fn state_from(number: i64) -> Option<AgentState> {
    AgentState::ALL.into_iter().find(|it| state(*it) == number)
}

/// Returns the number that stands for a task's status. Settled ones are the highest: the queries
/// and indices of open tasks compare with `<`.
pub(crate) fn status(status: TaskStatus) -> i64 {
    match status {
        TaskStatus::Pending => 0,
        TaskStatus::InProgress => 1,
        TaskStatus::Completed => 2,
        TaskStatus::Deleted => 3,
    }
}

/// Returns the number that stands for the status of a background run.
pub(crate) fn run(status: RunStatus) -> i64 {
    match status {
        RunStatus::Running => 0,
        RunStatus::Completed => 1,
        RunStatus::Partial => 2,
        RunStatus::Failed => 3,
        RunStatus::Killed => 4,
        RunStatus::Paused => 5,
    }
}

/// The hash by which shared content is stored once.
pub(crate) type Hash = [u8; 16];

/// Returns the hash of bytes and their cache mark.
pub(crate) fn content_name(bytes: &[u8], mark_at: Option<usize>) -> Hash {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    // The mark is hashed too: the same bytes with another mark are another content.
    hasher.update(&mark_at.map_or(u64::MAX, |at| at as u64).to_le_bytes());
    hasher.update(bytes);
    hasher.digest128().to_be_bytes()
}

/// Returns the lowest and the highest id that begin with `prefix`, or `None` if no id can: the
/// prefix must be hexadecimal digits, with an id's hyphens in their places or with none.
pub(crate) fn ids_with(prefix: &str) -> Option<(Uuid, Uuid)> {
    let prefix = prefix.to_ascii_lowercase();
    let digits = prefix.replace('-', "");
    if digits.len() > 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let first = Uuid::parse_str(&format!("{digits:0<32}")).ok()?;
    let last = Uuid::parse_str(&format!("{digits:f<32}")).ok()?;
    let fits = prefix.len() == digits.len() || first.to_string().starts_with(&prefix);
    fits.then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::ids_with;

    #[test]
    fn a_prefix_is_a_range_of_ids() {
        let range = |prefix: &str| ids_with(prefix).map(|(a, b)| format!("{a} {b}"));
        let all = "00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff";
        assert_eq!(range("").unwrap(), all);
        let some = "0199a000-0000-0000-0000-000000000000 0199afff-ffff-ffff-ffff-ffffffffffff";
        assert_eq!(range("0199A").unwrap(), some);
        assert_eq!(range("0199a000-0").unwrap(), range("0199a0000").unwrap());
        assert_eq!(range("0199-a"), None);
        assert_eq!(range("today"), None);
        assert_eq!(range(&"0".repeat(33)), None);
    }
}
