//! A server: what is known of it, and the task that keeps it connected.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_port::servers::{ServerEntry, ServerFacts, ServerFailure, ServerPlace, ServerState};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

use super::connection::{Connection, LiveConnection, ServedLists};
use super::restarts::{MOST_RESTARTS, Restarts, pause};
use super::slots::CallSlots;
use super::target::{ServerMeans, ServerTarget};

/// How many callers are remembered.
const MOST_CALLERS: usize = 4096;
/// How long after its failure a server is tried again for somebody new.
const REVIVE: Duration = Duration::from_secs(60);

/// What is known of a server.
#[derive(Clone)]
struct Known {
    phase: Phase,
    /// What it was when it was last there.
    last: Option<Arc<ServerFacts>>,
}

/// How far a server is.
#[derive(Clone)]
enum Phase {
    /// It is being connected.
    Pending,
    /// It is there.
    Up(Arc<Connection>),
    /// It was there, and is connected again for the next call.
    Down { is_wanted: bool },
    /// It cannot be connected.
    Failed {
        why: Arc<str>,
        needs_sign_in: bool,
        since: Duration,
        is_wanted: bool,
    },
    /// It is not connected any more.
    Ended,
}

/// A server, for its task and its calls.
pub(super) struct KeptServer {
    pub(super) target: ServerTarget,
    pub(super) slots: CallSlots,
    known: watch::Sender<Known>,
    /// With which connection each caller has called last.
    callers: Mutex<HashMap<u64, u64>>,
}

impl KeptServer {
    pub(super) fn new(
        entry: &Arc<ServerEntry>,
        place: &ServerPlace,
        means: &Arc<ServerMeans>,
    ) -> Self {
        Self {
            target: ServerTarget {
                entry: Arc::clone(entry),
                place: place.clone(),
                means: Arc::clone(means),
                log: Arc::default(),
                takers: Arc::default(),
            },
            slots: CallSlots::new(super::MOST_CALLS),
            known: watch::Sender::new(Known {
                phase: Phase::Pending,
                last: None,
            }),
            callers: Mutex::default(),
        }
    }

    /// Learns what it has. What is known stays the same if that does.
    fn learn(&self, lists: ServedLists) {
        self.known.send_if_modified(|known| {
            let Some(last) = &mut known.last else {
                return false;
            };
            let fresh = ServerFacts {
                tools: lists.tools,
                prompts: lists.prompts.unwrap_or_else(|| last.prompts.clone()),
                ..(**last).clone()
            };
            let is_different = fresh != **last;
            if is_different {
                *last = Arc::new(fresh);
            }
            is_different
        });
    }

    /// Returns how long a tool's answers may be.
    pub(super) fn longest(&self, tool: &str) -> Option<usize> {
        let known = self.known.borrow();
        let tools = known.last.as_ref().map(|facts| facts.tools.iter());
        let tool = tools.into_iter().flatten().find(|it| it.name == tool);
        tool.and_then(|tool| tool.longest)
    }

    /// Returns true if the server was started anew since this caller's last call.
    pub(super) fn is_anew(&self, caller: &str, connection: u64) -> bool {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= MOST_CALLERS {
            callers.clear();
        }
        let before = callers.insert(xxh3_64(caller.as_bytes()), connection);
        before.is_some_and(|before| before != connection)
    }

    /// Waits for a connection, and has one made if there is none.
    pub(super) async fn connected(&self) -> Result<Arc<Connection>, ServerFailure> {
        let mut known = self.known.subscribe();
        let mut has_asked = false;
        loop {
            match &known.borrow_and_update().phase {
                Phase::Up(connection) => return Ok(Arc::clone(connection)),
                Phase::Failed { why, .. } if has_asked => {
                    return Err(ServerFailure::NotCalled(why.to_string()));
                }
                Phase::Ended => return Err(ServerFailure::NotCalled("it was ended".into())),
                Phase::Pending | Phase::Down { .. } | Phase::Failed { .. } => {}
            }
            has_asked |= self.want();
            if known.changed().await.is_err() {
                return Err(ServerFailure::NotCalled("it was ended".into()));
            }
        }
    }

    /// Asks for a connection. Returns true if one is being made for somebody who has asked.
    fn want(&self) -> bool {
        let mut is_asked = false;
        self.known.send_if_modified(|known| match &mut known.phase {
            Phase::Down { is_wanted } | Phase::Failed { is_wanted, .. } => {
                is_asked = true;
                !std::mem::replace(is_wanted, true)
            }
            Phase::Pending | Phase::Up(_) | Phase::Ended => false,
        });
        is_asked
    }

    /// Tries again for somebody new, if it has failed some time ago.
    pub(super) fn revive(&self) {
        let now = self.target.place.clock.now();
        let is_due = match &self.known.borrow().phase {
            Phase::Failed { since, .. } => now >= *since + REVIVE,
            _ => false,
        };
        if is_due {
            self.want();
        }
    }

    async fn wanted(&self) {
        let mut known = self.known.subscribe();
        let is_wanted = |known: &Known| {
            matches!(
                known.phase,
                Phase::Down { is_wanted: true }
                    | Phase::Failed {
                        is_wanted: true,
                        ..
                    }
            )
        };
        // The sender is part of this.
        let _ = known.wait_for(is_wanted).await;
    }

    fn enter(&self, phase: Phase) {
        self.known.send_modify(|known| known.phase = phase);
    }

    fn enter_failed(&self, why: &str, needs_sign_in: bool) {
        self.enter(Phase::Failed {
            why: why.into(),
            needs_sign_in,
            since: self.target.place.clock.now(),
            is_wanted: false,
        });
    }

    fn enter_up(&self, live: &LiveConnection) {
        self.known.send_modify(|known| {
            if known.last.as_deref() != Some(&live.facts) {
                known.last = Some(Arc::new(live.facts.clone()));
            }
            known.phase = Phase::Up(Arc::clone(&live.connection));
        });
    }

    /// Connects. A server over HTTP is tried several times; that it has failed is known at once if
    /// nobody waits for it to come back.
    async fn connect(&self, number: u64, is_first: bool) -> Option<LiveConnection> {
        for failures in 0.. {
            let error = match LiveConnection::connect(&self.target, number).await {
                Ok(live) => return Some(live),
                Err(error) => error,
            };
            let is_last =
                self.target.is_program() || !error.is_passing || failures >= MOST_RESTARTS;
            if is_last || is_first {
                self.enter_failed(&error.why, error.needs_sign_in);
            }
            if is_last {
                break;
            }
            self.target.place.clock.sleep(pause(failures)).await;
        }
        None
    }

    /// Waits until it is to be connected again. `ended` is when it was lost.
    async fn pause(&self, restarts: &mut Restarts, ended: Duration) {
        let clock = &self.target.place.clock;
        loop {
            self.wanted().await;
            if !self.target.is_program() {
                self.enter(Phase::Pending);
                return;
            }
            if let Some(pause) = restarts.next(clock.now(), ended) {
                self.enter(Phase::Pending);
                if !pause.is_zero() {
                    clock.sleep(pause).await;
                }
                return;
            }
            let why = match &self.known.borrow().phase {
                Phase::Failed { why, .. } => Arc::clone(why),
                _ => "it ends again and again".into(),
            };
            self.enter_failed(&why, false);
        }
    }

    /// Keeps it connected until its life ends.
    pub(super) async fn run(self: Arc<Self>, life: CancellationToken) {
        let mut restarts = Restarts::default();
        let mut number = 0;
        let mut live = life.run_until_cancelled(self.connect(number, true)).await;
        while let Some(connected) = live {
            if let Some(mut connected) = connected {
                number += 1;
                self.enter_up(&connected);
                let lost = life
                    .run_until_cancelled(connected.serve(&self.target, |lists| self.learn(lists)))
                    .await;
                let is_wanted = lost.is_some();
                let why = lost.unwrap_or_else(|| "it was ended".into());
                if is_wanted {
                    self.enter(Phase::Down { is_wanted: false });
                } else {
                    self.enter(Phase::Ended);
                }
                connected
                    .end(why, is_wanted, &*self.target.place.clock)
                    .await;
                if !is_wanted {
                    return;
                }
            }
            let ended = self.target.place.clock.now();
            let again = async {
                self.pause(&mut restarts, ended).await;
                self.connect(number, false).await
            };
            live = life.run_until_cancelled(again).await;
        }
        self.enter(Phase::Ended);
    }

    /// Returns how far it is.
    pub(super) fn state(&self) -> ServerState {
        let Known { phase, last } = self.known.borrow().clone();
        match (phase, last) {
            (Phase::Up(_) | Phase::Pending | Phase::Down { .. }, Some(last)) => {
                ServerState::Connected(last)
            }
            (Phase::Up(_) | Phase::Pending | Phase::Down { .. }, None) => ServerState::Pending,
            (
                Phase::Failed {
                    why, needs_sign_in, ..
                },
                last,
            ) => ServerState::Failed {
                why: why.to_string(),
                needs_sign_in,
                last,
            },
            (Phase::Ended, last) => ServerState::Failed {
                why: "it was ended".into(),
                needs_sign_in: false,
                last,
            },
        }
    }

    /// Waits until the first attempt to connect has ended, and the tools are those that it has.
    pub(super) async fn settled(&self) {
        let mut known = self.known.subscribe();
        let is_settled =
            |known: &Known| known.last.is_some() || !matches!(known.phase, Phase::Pending);
        // The sender is part of this.
        let _ = known.wait_for(is_settled).await;
        let phase = known.borrow().phase.clone();
        if let Phase::Up(connection) = phase {
            tokio::select! {
                biased;
                () = connection.listener.up_to_date() => {}
                _ = connection.ended() => {}
            }
        }
    }
}
