//! Promises about light rows: they show what agents are, and the feed tells which have changed.

use std::collections::BTreeMap;

use posse_port::store::{
    Address, AgentFilter, AgentRecord, AgentRow, AgentState, Page, RowFilter, StateChange, Step,
    Store,
};
use posse_protocol::{AgentId, PermissionMode};

use super::Open;
use super::pages::paged;
use super::words::{act, agent, birth, child, create, order, other_realm, realm, send, step};

/// Returns the row of an agent for which so many messages wait.
pub fn row_of(record: &AgentRecord, waiting: u64) -> AgentRow {
    let origin = record.origin.as_deref();
    AgentRow {
        agent: record.agent,
        parent: origin.map(|origin| origin.parent),
        path: record.path.clone(),
        name: origin.and_then(|origin| origin.name.clone()),
        agent_type: origin.map_or_else(String::new, |origin| origin.agent_type.clone()),
        description: origin.map_or_else(String::new, |origin| origin.description.clone()),
        model: record.model.clone(),
        mode: record.mode,
        cwd: record.cwd.clone(),
        state: record.state,
        waiting,
        holder: record.holder.clone(),
        created_ms: record.created_ms,
        used_ms: record.used_ms,
    }
}

/// A list of all agents that reads only what has changed.
struct Board {
    number: u64,
    rows: BTreeMap<AgentId, AgentRow>,
}

impl Board {
    async fn new(store: &dyn Store) -> Self {
        let first = RowFilter::Page(Page::first(1));
        let number = store.rows(realm(), first).await.unwrap().number;
        let read = async |page| {
            store
                .rows(realm(), RowFilter::Page(page))
                .await
                .unwrap()
                .rows
        };
        let rows = paged(false, read, |row| row.key(realm())).await;
        Self {
            number,
            rows: rows.into_iter().map(|row| (row.agent, row)).collect(),
        }
    }

    /// Reads what has changed, and returns whose rows that were. Fails if the list is then another
    /// one than that of a reader who reads all of it.
    async fn update(&mut self, store: &dyn Store) -> Vec<AgentId> {
        let feed = store.feed(realm(), self.number, 100).await.unwrap();
        assert!(!feed.has_gap(self.number));
        let changed = feed.agents();
        let filter = RowFilter::Agents(changed.clone());
        let found = store.rows(realm(), filter).await.unwrap();
        assert_eq!(found.number, feed.head);
        self.number = feed.head;
        self.rows
            .extend(found.rows.into_iter().map(|row| (row.agent, row)));

        let all = store.rows(realm(), RowFilter::Page(Page::all()));
        let all = all.await.unwrap().rows;
        let mut rows: Vec<_> = self.rows.values().cloned().collect();
        rows.sort_by_key(|row| row.key(realm()));
        assert_eq!(rows, all);
        changed
    }
}

/// Rows show what the records of agents do, and are kept by reading those that the feed names.
pub async fn rows_are_kept_by_the_feed(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    store.commit(child(2, 1, "ann")).await.unwrap();
    store.commit(child(3, 1, "")).await.unwrap();
    let elsewhere = Step {
        realm: other_realm(),
        ..birth(0x11)
    };
    store.commit(elsewhere).await.unwrap();
    let mut board = Board::new(&*store).await;
    assert_eq!(board.rows.len(), 3);
    assert_eq!(board.update(&*store).await, [], "nothing has changed");

    act(&*store, 1, send(Address::Agent(agent(3)), "a word"))
        .await
        .unwrap();
    assert_eq!(board.update(&*store).await, [agent(1), agent(3)]);
    assert_eq!(board.rows[&agent(3)].waiting, 1);

    let mut works = step(2, 1);
    works.state = Some(StateChange::To(AgentState::Running));
    works.mode = Some(PermissionMode::Plan);
    works.at_ms = 77;
    store.commit(works).await.unwrap();
    assert_eq!(board.update(&*store).await, [agent(2)]);
    let ann = &board.rows[&agent(2)];
    assert_eq!(
        (ann.state, ann.mode, ann.used_ms),
        (AgentState::Running, PermissionMode::Plan, 77)
    );

    store.commit(child(4, 2, "")).await.unwrap();
    assert_eq!(board.update(&*store).await, [agent(4)], "a new one");
    order(&*store, vec![create("", "do it", &[])]).await;
    assert_eq!(board.update(&*store).await, [], "about no agent");
    let holder = |board: &Board| board.rows[&agent(3)].holder.is_some();
    assert!(holder(&board));
    let epoch = store.take(agent(3)).await.unwrap().epoch;
    store.release(agent(3), epoch).await.unwrap();
    assert_eq!(board.update(&*store).await, [agent(3)]);
    assert!(!holder(&board));

    let here = AgentFilter {
        realm: Some(realm()),
        ..AgentFilter::default()
    };
    for record in store.agents(here, Page::all()).await.unwrap() {
        let waiting = u64::from(record.agent == agent(3));
        assert_eq!(board.rows[&record.agent], row_of(&record, waiting));
    }
    let some = [4, 0x11, 1, 0x44, 2].map(agent);
    let found = store.rows(realm(), RowFilter::Agents(some.into())).await;
    let found: Vec<_> = found.unwrap().rows.iter().map(|row| row.agent).collect();
    assert_eq!(found, [4, 1, 2].map(agent), "as asked, and only from here");
}
