//! How enums and hashes are encoded in columns, the same for both engines.
//!
//! The numbers are part of the file format: they are never changed or reused.

use posse_port::store::{AgentFilter, AgentState, Charge, Page, QuestionState};
use posse_protocol::{Cost, EntryKind, Purpose, ReplyFacts, RunStatus, TaskStatus, Usage};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Returns the number that stands for a kind of entry.
pub(crate) fn kind(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::Prompt => 1,
        EntryKind::Reply => 2,
        EntryKind::Results => 3,
        EntryKind::Compaction => 4,
        EntryKind::Model => 5,
    }
}

/// Returns the kind of entry a number stands for, if any.
pub(crate) fn kind_from(number: i64) -> Option<EntryKind> {
    [
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Compaction,
        EntryKind::Model,
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
        Purpose::InFlight => 5,
        Purpose::Hook => 6,
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

/// Begins what is stored beside an entry if that has a reservation.
const RESERVED: &str = "{\"reserved\":";

/// A reservation as it is stored beside an entry.
#[derive(Serialize, Deserialize)]
struct Reserved {
    model: String,
    usage: Usage,
    cost: Option<u64>,
}

/// Returns what is stored beside an entry: facts about a reply, and what its step reserved.
pub(crate) fn facts(
    reply: Option<&ReplyFacts>,
    reserved: Option<&Charge>,
) -> serde_json::Result<Option<String>> {
    let reply = reply.map(serde_json::to_string).transpose()?;
    let Some(charge) = reserved else {
        return Ok(reply);
    };
    let reserved = serde_json::to_string(&Reserved {
        model: charge.model.clone(),
        usage: charge.usage,
        cost: charge.cost.map(|cost| cost.pico_usd()),
    })?;
    // Both are fields of one object.
    let rest = match &reply {
        Some(reply) => reply.replacen('{', ",", 1),
        None => "}".to_owned(),
    };
    Ok(Some(format!("{RESERVED}{reserved}{rest}")))
}

/// Returns the facts about a reply that are stored beside an entry.
pub(crate) fn reply_in(facts: &str) -> serde_json::Result<Option<ReplyFacts>> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<serde::de::IgnoredAny>,
    }
    let only_reserved =
        facts.starts_with(RESERVED) && serde_json::from_str::<Named>(facts)?.id.is_none();
    if only_reserved {
        return Ok(None);
    }
    serde_json::from_str(facts).map(Some)
}

/// Returns the reservation that is stored beside an entry.
pub(crate) fn reserved_in(facts: &str) -> Option<Box<Charge>> {
    #[derive(Deserialize)]
    struct Facts {
        reserved: Reserved,
    }
    let Facts { reserved } = facts
        .starts_with(RESERVED)
        .then(|| serde_json::from_str(facts).ok())??;
    Some(Box::new(Charge {
        model: reserved.model,
        usage: reserved.usage,
        cost: reserved.cost.map(Cost::from_pico_usd),
        purpose: Purpose::InFlight,
        missed: 0,
    }))
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

/// Returns the lowest and the highest id that a filter selects, or `None` if it selects none. The
/// inner `None` stands for every id.
pub(crate) fn ids_of(filter: &AgentFilter) -> Option<Option<(Uuid, Uuid)>> {
    let ids = match &filter.id_prefix {
        Some(prefix) => Some(ids_with(prefix)?),
        None => None,
    };
    let Some(id) = filter.id.map(|id| id.uuid()) else {
        return Some(ids);
    };
    let is_in = ids.is_none_or(|(first, last)| first <= id && id <= last);
    is_in.then_some(Some((id, id)))
}

/// Returns how a page of a list with rising keys compares with the row before it, and its order.
pub(crate) fn rising<K>(page: &Page<K>) -> (&'static str, &'static str) {
    match page.backwards {
        false => (">", "ASC"),
        true => ("<", "DESC"),
    }
}

/// Returns the same for a list with falling keys.
pub(crate) fn falling<K>(page: &Page<K>) -> (&'static str, &'static str) {
    match page.backwards {
        false => ("<", "DESC"),
        true => (">", "ASC"),
    }
}

/// Returns the number that a page of numbered rows begins beyond. Numbers begin with 1.
pub(crate) fn edge(page: &Page<u64>) -> i64 {
    match page.from {
        Some(from) => i64::try_from(from).unwrap_or(i64::MAX),
        None if page.backwards => i64::MAX,
        None => 0,
    }
}

/// Returns the column for the state of a question.
pub(crate) fn question(state: QuestionState) -> i64 {
    match state {
        QuestionState::Open => 0,
        QuestionState::Answered => 1,
        QuestionState::Done => 2,
        QuestionState::Withdrawn => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_stands_beside_the_facts_about_a_reply() {
        let reply = ReplyFacts {
            id: "msg_{1".into(),
            model: "m".into(),
            stop: None,
            usage: Usage::default(),
            missed: None,
        };
        let reserved = Charge {
            model: "m".into(),
            usage: Usage {
                input: 7,
                ..Usage::default()
            },
            cost: None,
            purpose: Purpose::InFlight,
            missed: 0,
        };
        for reply in [None, Some(&reply)] {
            for reserved in [None, Some(&reserved)] {
                let facts = facts(reply, reserved).unwrap().unwrap_or("null".into());
                let read = serde_json::from_str::<Option<()>>(&facts);
                let stored = read.is_err().then_some(facts);
                let read = stored.as_deref().and_then(|facts| reply_in(facts).unwrap());
                assert_eq!(read.as_ref(), reply);
                let read = stored.as_deref().and_then(reserved_in);
                assert_eq!(read.as_deref(), reserved);
            }
        }
    }

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
