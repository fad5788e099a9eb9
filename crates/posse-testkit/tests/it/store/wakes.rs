//! Waking on a file: bells, sweeps, and turns that do not come.

use std::fs::{self, File};
use std::time::Duration;

use posse_port::store::{Store, StoreError, Wake};
use posse_protocol::{AgentId, ListId};
use posse_store::{Sqlite, Timing};
use posse_testkit::place::Place;
use posse_testkit::store_contract::{agent, birth, fate, realm, step, wake};
use uuid::Uuid;

use super::Directory;

/// No sweep comes while a test runs: what is heard is heard by the bell.
pub(super) const NO_SWEEP: Timing = Timing {
    lease: Duration::from_secs(36_000),
    sweep: Duration::from_secs(3600),
    patience: Duration::from_secs(10),
    feed_age: Duration::from_secs(259_200),
    deaf: false,
};

/// Only sweeps.
pub(super) const DEAF: Timing = Timing {
    sweep: Duration::from_millis(20),
    deaf: true,
    ..NO_SWEEP
};

impl Directory {
    pub(super) fn place(&self) -> Place {
        Place::File(self.database())
    }

    pub(super) fn open_with(&self, timing: Timing) -> Sqlite {
        Sqlite::open_with(&self.database(), timing).unwrap()
    }

    /// The host that holds an agent.
    pub(super) fn holder(&self, agent: AgentId) -> Uuid {
        let sql = "SELECT host FROM agent WHERE id = ?1";
        let connection = rusqlite::Connection::open(self.database()).unwrap();
        let id = connection
            .query_row(sql, [agent.uuid().as_bytes()], |row| row.get(0))
            .unwrap();
        Uuid::from_bytes(id)
    }

    fn bell(&self, host: Uuid) -> std::path::PathBuf {
        self.0.join(format!("home/hosts/{host}.bell"))
    }

    fn ring(&self, host: Uuid) {
        fs::write(self.bell(host), "\n").unwrap();
    }

    /// Mail for an agent, as another process would put it there.
    fn post(&self, to: AgentId, host: Uuid) {
        let hex = |id: Uuid| id.simple().to_string();
        self.tamper(&format!(
            "INSERT INTO inbox (realm, agent, last, waiting, bytes, host)
             VALUES (x'{}', x'{}', 1, 1, 5, x'{}') ON CONFLICT DO UPDATE SET waiting = 1",
            hex(realm().uuid()),
            hex(to.uuid()),
            hex(host)
        ));
    }

    /// A change of a list, as another process would make it.
    fn change(&self, realm: Uuid, team: &str, changed: u64) {
        self.tamper(&format!(
            "INSERT INTO list (realm, team, last, changed) VALUES (x'{}', '{team}', 1, {changed})",
            realm.simple()
        ));
    }
}

#[tokio::test]
async fn a_ring_makes_a_host_look() {
    let directory = Directory::new();
    let store = directory.open_with(NO_SWEEP);
    store.commit(birth(1)).await.unwrap();
    let me = directory.holder(agent(1));
    directory.post(agent(1), me);
    directory.ring(me);
    wake::told(&store, &Wake::Mail(agent(1))).await;

    directory.change(Uuid::now_v7(), "", 1);
    directory.change(realm().uuid(), "a-team", 2);
    directory.ring(me);
    let list = |team: Option<&str>| ListId {
        realm: realm(),
        team: team.map(|name| name.parse().unwrap()),
    };
    let mut heard = Vec::new();
    while heard.last() != Some(&Wake::Tasks(list(Some("a-team")))) {
        heard.extend(store.woken().await.unwrap());
    }
    let foreign = heard
        .iter()
        .any(|wake| matches!(wake, Wake::Tasks(list) if list.realm != realm()));
    assert!(!foreign, "a realm in which it holds nobody: {heard:?}");
}

#[tokio::test]
async fn a_bell_that_vanished_is_hung_again() {
    let directory = Directory::new();
    let store = directory.open_with(NO_SWEEP);
    store.commit(birth(1)).await.unwrap();
    let me = directory.holder(agent(1));
    // The first look is over when it has told something.
    directory.post(agent(1), me);
    directory.ring(me);
    wake::told(&store, &Wake::Mail(agent(1))).await;
    // Held open, as those hold it who ring.
    let _ringer = File::open(directory.bell(me)).unwrap();
    fs::remove_file(directory.bell(me)).unwrap();
    while !directory.bell(me).exists() {
        tokio::task::yield_now().await;
    }
    directory.ring(me);
    wake::told(&store, &Wake::Mail(agent(1))).await;
}

// proves TE-05 (part: the poll)
#[tokio::test]
async fn what_no_bell_told_is_found_by_the_sweep() {
    let directory = Directory::new();
    let store = directory.open_with(DEAF);
    store.commit(birth(1)).await.unwrap();
    let me = directory.holder(agent(1));
    directory.post(agent(1), me);
    wake::told(&store, &Wake::Mail(agent(1))).await;
    directory.change(realm().uuid(), "", 1);
    wake::told(
        &store,
        &Wake::Tasks(ListId {
            realm: realm(),
            team: None,
        }),
    )
    .await;
    // A host that was killed, and that nobody watched.
    let dead = Uuid::now_v7();
    directory.tamper(&format!(
        "INSERT INTO host (id, version) VALUES (x'{}', 8)",
        dead.simple()
    ));
    wake::told(&store, &Wake::Died(dead.into())).await;
}

#[tokio::test]
async fn a_host_that_lost_its_row_can_hold_nothing_any_more() {
    let directory = Directory::new();
    let store = directory.open_with(NO_SWEEP);
    store.commit(birth(1)).await.unwrap();
    let me = directory.holder(agent(1));
    let taker = directory.open_with(NO_SWEEP);
    taker.commit(birth(2)).await.unwrap();
    // As if its heart had not beaten for long.
    let file = directory.0.join(format!("home/hosts/{me}"));
    fs::write(file, format!("{}\n{:020}\n", std::process::id(), 0)).unwrap();
    let strict = directory.open_with(Timing {
        lease: Duration::from_millis(1),
        ..NO_SWEEP
    });
    let epoch = strict.take(agent(1)).await.unwrap().epoch;
    assert!(epoch.0 > 1);
    wake::told(&store, &Wake::Fenced).await;
    wake::told(&taker, &Wake::Died(me.into())).await;
    assert_eq!(fate(&store.commit(step(1, 1)).await), "fenced");
    assert_eq!(fate(&store.commit(birth(3)).await), "fenced");
    assert_eq!(fate(&store.take(agent(1)).await), "fenced");
    drop(store);
    assert_eq!(
        fate(&strict.commit(step(1, epoch.0)).await),
        "ok",
        "its leaving takes nothing away"
    );
}

/// Locks what a writer of another process locks while it writes.
fn stand_in_the_door(directory: &Directory) -> File {
    let writer = directory.database().with_added_extension("writer");
    let file = File::options().write(true).open(writer).unwrap();
    file.lock().unwrap();
    file
}

#[tokio::test]
async fn writing_waits_with_patience_and_goes_on_afterwards() {
    let directory = Directory::new();
    let store = directory.open_with(Timing {
        patience: Duration::from_millis(20),
        ..NO_SWEEP
    });
    store.commit(birth(1)).await.unwrap();
    let door = stand_in_the_door(&directory);
    for _ in 0..2 {
        let refused = store.commit(step(1, 1)).await.unwrap_err();
        let StoreError::Engine { source, .. } = &refused else {
            panic!("{refused:?}")
        };
        let pid = format!("posse process {} ", std::process::id());
        assert!(source.to_string().starts_with(&pid), "{source}");
    }
    assert!(store.longest_wait() >= Duration::from_millis(20));
    door.unlock().unwrap();
    while fate(&store.commit(step(1, 1)).await) != "ok" {}
    // A turn that came when nobody wanted it any more is not kept.
    drop(stand_in_the_door(&directory));

    let door = stand_in_the_door(&directory);
    for _ in 0..2000 {
        drop(store.commit(step(1, 1)));
    }
    // It does not wait for each of what is queued.
    drop(store);
    drop(door);
    let other = directory.open_with(NO_SWEEP);
    other.take(agent(1)).await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_still_writes_nothing_and_holds_nobody_up() {
    let directory = Directory::new();
    let (store, other) = (directory.open_with(NO_SWEEP), directory.open_with(NO_SWEEP));
    store.commit(birth(1)).await.unwrap();
    let still = store.still();
    let mut held = store.commit(step(1, 1));
    other.commit(birth(2)).await.unwrap();
    tokio::select! {
        biased;
        done = &mut held => panic!("{done:?}"),
        () = std::future::ready(()) => {}
    }
    drop(still);
    assert_eq!(fate(&held.await), "ok");
}
