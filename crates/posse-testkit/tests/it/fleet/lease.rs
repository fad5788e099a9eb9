//! What many steps and many messages cost others: rows that are rewritten in place, and leases
//! that are renewed in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::store::{Address, Order, Step, Store, StoreError};
use posse_store::{Postgres, Timing};
use posse_testkit::postgres::{Database, Options, Server};
use posse_testkit::store_contract::{agent, birth, realm, send, step};
use tokio::task::JoinSet;

/// Number of agents.
const AGENTS: u64 = 64;

async fn born(store: &Postgres) {
    for number in 1..=AGENTS {
        store.commit(birth(number)).await.unwrap();
    }
}

/// The rows that lists of sessions are made from change with every step, but not their indexes.
#[tokio::test]
async fn sessions_are_rewritten_in_place() {
    let database = Database::new().unwrap();
    let store = Postgres::open(database.url()).unwrap();
    born(&store).await;
    for at_ms in 11..41 {
        for number in 1..=AGENTS {
            let step = step(number, 1);
            store.commit(Step { at_ms, ..step }).await.unwrap();
        }
    }
    // Its connections tell what they did at the latest when they end.
    drop(store);
    let sql = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'root'";
    let (mut updates, mut in_place) = (0, 0);
    let began = Instant::now();
    while updates < 30 * AGENTS {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{updates} updates"
        );
        let told = database.sql(sql).unwrap();
        let (all, hot) = told.trim().split_once('|').unwrap();
        (updates, in_place) = (all.parse().unwrap(), hot.parse().unwrap());
    }
    assert!(in_place * 100 >= updates * 95, "{in_place} of {updates}");
}

/// Hosts that tell and hear thousands of messages a second are not taken for dead.
#[tokio::test]
async fn busy_hosts_renew_their_leases() {
    let lease = Duration::from_secs(2);
    let server = Server::start(Options::default()).unwrap();
    let timing = Timing {
        lease,
        sweep: lease / 4,
        ..Timing::default()
    };
    let open = || Arc::new(Postgres::open_with(&server.url(), timing).unwrap());
    let (hears, tells, other) = (open(), open(), open());
    born(&hears).await;
    tells.commit(birth(AGENTS + 1)).await.unwrap();
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for number in 1..=AGENTS {
        let tells = Arc::clone(&tells);
        senders.spawn(async move {
            let mut sent = 0;
            while began.elapsed() < 2 * lease {
                let news = || send(Address::Agent(agent(number)), "news");
                let order = Order {
                    realm: realm(),
                    ops: vec![news(), news(), news(), news()],
                    at_ms: 10,
                };
                let results = tells.operate(order).await.unwrap();
                sent += results.iter().filter(|result| result.is_ok()).count();
            }
            sent
        });
    }
    let sent: usize = senders.join_all().await.into_iter().sum();
    assert!(sent > 4_000, "{sent} messages");
    for number in 1..=AGENTS + 1 {
        let taken = other.take(agent(number)).await.map(drop);
        assert!(matches!(taken, Err(StoreError::Held { .. })), "{taken:?}");
        let host = if number > AGENTS { &tells } else { &hears };
        host.commit(step(number, 1)).await.unwrap();
    }
}
