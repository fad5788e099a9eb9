//! A host of a fleet on one PostgreSQL server, to be killed, stopped and cut off by tests.
//!
//! - `prepare URL HOSTS PLACES`: makes the agents, PLACES for each host;
//! - `work URL FILE HOST HOSTS PLACES LEASE_MS SEED`: performs random actions with its own agents,
//!   and occasionally with those of others, and writes to FILE what it began and the results. It
//!   ends when its input ends.

mod deed;
mod history;
mod place;

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::model::Encoded;
use posse_port::store::{Birth, Epoch, Step, Store as _, Wake};
use posse_protocol::{AgentId, PermissionMode, RealmId};
use posse_store::{Postgres, Timing};
use posse_testkit::fleet::{Record, agent, realm};
use tokio::task::JoinSet;

use self::history::History;
use self::place::Place;

type Failed = Box<dyn Error + Send + Sync>;

/// Maximum wait for an unavailable server, or for an own agent that another host holds.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["prepare", url, hosts, places] => prepare(url, hosts.parse()?, places.parse()?).await,
        ["work", url, file, host, hosts, places, lease, seed] => {
            let fleet = Fleet {
                host: host.parse()?,
                hosts: hosts.parse()?,
                places: places.parse()?,
            };
            let lease = Duration::from_millis(lease.parse()?);
            work(
                url,
                Arc::new(History::new(Path::new(file))?),
                fleet,
                lease,
                seed.parse()?,
            )
            .await
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

/// The index of this host, the number of hosts, and the number of agents of each.
#[derive(Clone, Copy)]
struct Fleet {
    host: u64,
    hosts: u64,
    places: u64,
}

impl Fleet {
    /// All agents of a realm.
    fn agents(self, of: RealmId) -> Vec<AgentId> {
        let places = (0..self.places).filter(|place| realm(*place) == of);
        places
            .flat_map(|place| (0..self.hosts).map(move |host| agent(host, place)))
            .collect()
    }
}

async fn prepare(url: &str, hosts: u64, places: u64) -> Result<(), Failed> {
    let store = Postgres::open(url)?;
    for (host, place) in (0..hosts).flat_map(|host| (0..places).map(move |place| (host, place))) {
        let birth = Birth {
            origin: None,
            path: format!("/{host}/{place}"),
            model: "a-model".into(),
            dialect: "test".into(),
            mode: PermissionMode::Default,
            cwd: "/work".into(),
            preamble: Encoded {
                bytes: "\"system\":\"hello\"".into(),
                mark_at: None,
            },
            segments: Vec::new(),
        };
        let blank = Step::new(realm(place), agent(host, place), Epoch(1), 10);
        store
            .commit(Step {
                birth: Some(Box::new(birth)),
                ..blank
            })
            .await?;
    }
    Ok(())
}

/// Stop conditions: the end of the input, or a message of the store.
#[derive(Default)]
struct Ending {
    all: AtomicBool,
    /// This host was declared dead.
    lost: AtomicBool,
}

impl Ending {
    fn has_come(&self) -> bool {
        self.all.load(Ordering::SeqCst) || self.lost.load(Ordering::SeqCst)
    }
}

/// Works until its input ends; continues as another host each time it was declared dead.
async fn work(
    url: &str,
    history: Arc<History>,
    fleet: Fleet,
    lease: Duration,
    mut seed: u64,
) -> Result<(), Failed> {
    let ending = Arc::new(Ending::default());
    let told = Arc::clone(&ending);
    std::thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        told.all.store(true, Ordering::SeqCst);
    })?;
    while !ending.all.load(Ordering::SeqCst) {
        ending.lost.store(false, Ordering::SeqCst);
        let timing = Timing {
            lease,
            sweep: lease / 5,
            patience: PATIENCE,
            feed_age: Duration::from_secs(259_200),
            deaf: false,
        };
        let store = Arc::new(opened(url, timing).await?);
        let mut working = JoinSet::new();
        for place in 0..fleet.places {
            seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let (store, history, ending) = (
                Arc::clone(&store),
                Arc::clone(&history),
                Arc::clone(&ending),
            );
            let place = Place {
                fleet,
                place,
                store,
                history,
                ending,
                seed,
            };
            working.spawn(place.work());
        }
        let mut listening = JoinSet::new();
        listening.spawn(listen(
            Arc::clone(&store),
            Arc::clone(&history),
            Arc::clone(&ending),
        ));
        while let Some(worked) = working.join_next().await {
            worked??;
        }
        listening.shutdown().await;
        drop(store);
    }
    Ok(())
}

/// Opens the store, retrying while the server is unavailable.
async fn opened(url: &str, timing: Timing) -> Result<Postgres, Failed> {
    let (begun, clock) = (Instant::now(), SystemClock::default());
    loop {
        match Postgres::open_with(url, timing) {
            Err(_) if begun.elapsed() < PATIENCE => clock.sleep(Duration::from_millis(100)).await,
            opened => return Ok(opened?),
        }
    }
}

/// Listens for the message that this host was declared dead.
async fn listen(
    store: Arc<Postgres>,
    history: Arc<History>,
    ending: Arc<Ending>,
) -> Result<(), Failed> {
    loop {
        if store.woken().await?.contains(&Wake::Fenced) {
            history.write(&Record::Fenced)?;
            ending.lost.store(true, Ordering::SeqCst);
        }
    }
}
