//! What was sent before a connection broke, and is done by the server only much later.

use std::net::Shutdown;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{Address, Epoch, MailFilter, Page, Store};
use posse_store::Postgres;
use posse_testkit::postgres::{Options, Server};
use posse_testkit::store_contract::{acts, agent, birth, realm, send};

use super::wire::Wire;

/// Processes of the server that serve posse.
fn serving(server: &Server) -> Vec<String> {
    let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'posse' ORDER BY pid";
    server
        .sql(sql)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn signal(pids: &[String], signal: Signal) {
    for pid in pids {
        kill(Pid::from_raw(pid.parse().unwrap()), signal).unwrap();
    }
}

/// A host whose first try of something waits in a server's process that is stopped.
struct Late {
    server: Server,
    wire: Wire,
    store: Postgres,
    clock: SystemClock,
}

impl Late {
    async fn new() -> Self {
        let server = Server::start(Options::default()).unwrap();
        let wire = Wire::to(server.port());
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", wire.port());
        let store = Postgres::open(&url).unwrap();
        for number in 1..=2 {
            store.commit(birth(number)).await.unwrap();
        }
        Self {
            server,
            wire,
            store,
            clock: SystemClock::default(),
        }
    }

    /// Does something whose first try comes to the server, but is not done there before `then`.
    async fn tried_late(
        &self,
        known_by: &str,
        first: impl Future<Output = ()>,
        then: impl Future<Output = ()>,
    ) {
        let stopped = serving(&self.server);
        signal(&stopped, Signal::SIGSTOP);
        let cut = async {
            while !self.wire.has_carried(known_by) {
                self.clock.sleep(Duration::from_millis(5)).await;
            }
            self.wire.cut()
        };
        let ((), ends) = tokio::join!(first, cut);
        then.await;
        signal(&stopped, Signal::SIGCONT);
        for end in &ends {
            // It reads to the end of what it has got.
            end.shutdown(Shutdown::Write).unwrap();
        }
        while serving(&self.server)
            .iter()
            .any(|pid| stopped.contains(pid))
        {
            self.clock.sleep(Duration::from_millis(5)).await;
        }
    }

    async fn words(&self) -> Vec<String> {
        let mail = self
            .store
            .mail(realm(), agent(2), MailFilter::default(), Page::first(9))
            .await
            .unwrap();
        mail.into_iter().map(|mail| mail.body).collect()
    }
}

#[tokio::test]
async fn a_step_that_comes_late_is_not_done_again() {
    let late = Late::new().await;
    let says = async |epoch, word: &str| {
        let step = acts(1, epoch, vec![send(Address::Agent(agent(2)), word)]);
        late.store.commit(step).await.unwrap();
    };
    late.tried_late("first word", says(1, "first word"), says(1, "second word"))
        .await;
    assert_eq!(late.words().await, ["first word", "second word"]);
    assert_eq!(late.store.take(agent(1)).await.unwrap().epoch, Epoch(2));
    late.tried_late("third word", says(2, "third word"), says(2, "fourth word"))
        .await;
    assert_eq!(
        late.words().await,
        ["first word", "second word", "third word", "fourth word"]
    );
    says(2, "fifth word").await;
    assert_eq!(late.words().await.len(), 5);
}

#[tokio::test]
async fn a_take_that_comes_late_takes_nothing() {
    let late = Late::new().await;
    late.store.release(agent(1), Epoch(1)).await.unwrap();
    let take = async { drop(late.store.take(agent(1)).await.unwrap()) };
    let release = async {
        let epoch = late.server.sql(
            "SELECT epoch FROM posse.pulse WHERE host IS NOT NULL AND own = 0 ORDER BY epoch DESC LIMIT 1",
        );
        late.store
            .release(agent(1), Epoch(epoch.unwrap().parse().unwrap()))
            .await
            .unwrap();
    };
    late.tried_late("\"do\":\"take\"", take, release).await;
    assert!(
        late.store
            .read(agent(1))
            .await
            .unwrap()
            .record
            .holder
            .is_none(),
        "nobody knows that it is held"
    );
}
