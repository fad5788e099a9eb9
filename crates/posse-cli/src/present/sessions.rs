//! Sessions in lists and for programs.

use posse_port::store::{AgentRecord, SubtreeSpending};
use posse_protocol::{AgentId, Cost};
use serde_json::{Value, json};

use super::costs::Tally;
use super::history::first_line;
use super::usage::usage;
use crate::output::time::moment;

/// Returns a session's state in one word.
pub(crate) fn state(session: &AgentRecord) -> &'static str {
    match (session.holder.is_some(), session.state) {
        (true, _) => "open",
        // Its process has died during a run.
        (false, state) if state.is_open() => "broken",
        (false, state) => state.as_str(),
    }
}

/// Returns the cost of one agent without those below it; `None` if a price is unknown.
pub(crate) fn cost(session: &AgentRecord) -> Option<Cost> {
    Tally::of(&session.charges).cost
}

/// Returns a session and what it and all agents below it have used, for programs; also the head of
/// `show --json`.
pub(crate) fn object(session: &AgentRecord, spending: &SubtreeSpending) -> Value {
    let total = Tally::of(&spending.charges);
    json!({
        "session_id": session.agent, "cwd": session.cwd.to_string_lossy(), "model": session.model,
        "permission_mode": session.mode, "state": state(session), "held": session.holder.is_some(),
        "created_at": moment(session.created_ms), "used_at": moment(session.used_ms),
        "entries": session.entries, "agents": spending.agents,
        "total_cost_usd": total.cost.map(Cost::usd), "uncertain_cost_usd": total.uncertain.map(Cost::usd),
        "usage": usage(&total.usage),
        "first_prompt": session.first_prompt.as_deref().and_then(first_line),
    })
}

/// Returns as much of an id as makes it unique: the millisecond, and some random bits.
pub(crate) fn short(id: AgentId) -> String {
    let id = id.to_string();
    id.get(..18).unwrap_or(&id).to_owned()
}

/// Returns ids shortened as far as they stay distinct.
pub(crate) fn shown_ids(ids: impl Iterator<Item = AgentId>) -> Vec<String> {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    let mut distinct_ids = ids.clone();
    distinct_ids.sort_unstable();
    distinct_ids.dedup();
    // Without duplicates: the same agent may be in several rows, and no width would distinguish
    // those.
    let width = distinct(&distinct_ids);
    ids.into_iter()
        .map(|id| id.get(..width).unwrap_or(&id).to_owned())
        .collect()
}

/// Minimum length of a shortened id: the time in milliseconds.
pub(crate) const SHORTEST: usize = 13;

/// Returns the length at which the ids are distinct.
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
