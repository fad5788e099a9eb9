//! Finds the agents that wait for a person.

use std::collections::HashMap;

use posse_port::store::{Page, QuestionFilter, QuestionRecord, Store};
use posse_protocol::{AgentId, RealmId};

/// Number of open questions that are read.
pub(crate) const LISTED: usize = 1000;

/// Returns the oldest open question of each agent that waits for a person.
pub(crate) async fn oldest_by_agent(
    store: &dyn Store,
    realm: Option<RealmId>,
) -> anyhow::Result<HashMap<AgentId, QuestionRecord>> {
    let filter = QuestionFilter {
        realm,
        open: true,
        ..QuestionFilter::default()
    };
    let mut asked = HashMap::new();
    for record in store.questions(filter, Page::first(LISTED)).await? {
        asked.entry(record.agent).or_insert(record);
    }
    Ok(asked)
}
