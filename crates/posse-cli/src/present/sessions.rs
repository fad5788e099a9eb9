//! Sessions as lists and programs see them.

use posse_port::store::AgentRecord;
use posse_protocol::{AgentId, Cost};
use serde_json::{Value, json};

use crate::output::time::moment;
use crate::output::transcript::first_line;

/// Returns what a session is doing, in a word.
pub(crate) fn state(session: &AgentRecord) -> &'static str {
    match (session.holder.is_some(), session.state) {
        (true, _) => "open",
        // Its process has died under it.
        (false, state) if state.is_open() => "broken",
        (false, state) => state.as_str(),
    }
}

/// Returns what it has cost; none if the price of any of it is not known.
pub(crate) fn cost(session: &AgentRecord) -> Option<Cost> {
    session.charges.iter().map(|charge| charge.cost).sum()
}

/// Returns a session for programs; also the head of `show --json`.
pub(crate) fn object(session: &AgentRecord) -> Value {
    json!({
        "session_id": session.agent, "cwd": session.cwd.to_string_lossy(), "model": session.model,
        "permission_mode": session.mode, "state": state(session), "held": session.holder.is_some(),
        "created_at": moment(session.created_ms), "used_at": moment(session.used_ms),
        "entries": session.entries, "cost_usd": cost(session).map(Cost::usd),
        "first_prompt": session.first_prompt.as_deref().and_then(first_line),
    })
}

/// As much of an id as tells it from any other: the millisecond, and some chance.
pub(crate) fn short(id: AgentId) -> String {
    let id = id.to_string();
    id.get(..18).unwrap_or(&id).to_owned()
}

/// Returns ids as short as tells them apart.
pub(crate) fn shown_ids(ids: impl Iterator<Item = AgentId>) -> Vec<String> {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    let mut distinct_ids = ids.clone();
    distinct_ids.sort_unstable();
    distinct_ids.dedup();
    // The same agent may stand in several rows, and no width would tell it from itself.
    let width = distinct(&distinct_ids);
    ids.into_iter()
        .map(|id| id.get(..width).unwrap_or(&id).to_owned())
        .collect()
}

/// The least of an id that is shown: the time in milliseconds.
pub(crate) const SHORTEST: usize = 13;

/// Returns how much of the ids tells them apart.
pub(crate) fn distinct(ids: &[String]) -> usize {
    let different = |width: &usize| {
        let mut heads: Vec<&str> = ids
            .iter()
            .map(|id| id.get(..*width).unwrap_or(id))
            .collect();
        heads.sort_unstable();
        heads.windows(2).all(|pair| pair[0] != pair[1])
    };
    (SHORTEST..36).find(different).unwrap_or(36)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::ID;
    use super::*;

    #[test]
    fn ids_are_as_long_as_they_must_be() {
        let other = ID.replace("-7000-", "-7100-");
        assert_eq!(distinct(&[ID.into()]), 13);
        assert_eq!(distinct(&[ID.into(), other]), 16);
    }
}
