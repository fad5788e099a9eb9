//! One account and model: calls that wait for it, and permits of those that were sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use posse_port::clock::Clock;
use posse_port::model::{ApiError, CallWait, ModelError, RateLimits};
use posse_protocol::Usage;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::limits::AccountLimits;
use super::queue::Ticket;
use super::throttle::{Ask, Head, Throttle, Turn};
use crate::response::from_status;
use crate::retry::{RetryPolicy, StopFacts, is_refused_here};

/// An account and model.
pub(crate) struct Account {
    clock: Arc<dyn Clock>,
    room: Mutex<Room>,
    /// Tells the keeper that the time to look again has changed.
    changed: Notify,
}

/// The shared state.
struct Room {
    throttle: Throttle,
    waiters: HashMap<Ticket, oneshot::Sender<Permit>>,
    /// When the keeper looks again.
    alarm: Option<Duration>,
    /// True while a task keeps the timer for all that wait.
    is_kept: bool,
    /// The latest fault of the account, for calls that give up waiting.
    fault: Option<AccountFault>,
}

impl Account {
    pub(super) fn new(
        clock: &Arc<dyn Clock>,
        policy: RetryPolicy,
        limits: &AccountLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::clone(clock),
            room: Mutex::new(Room {
                throttle: Throttle::new(policy, limits),
                waiters: HashMap::new(),
                alarm: None,
                is_kept: false,
                fault: None,
            }),
            changed: Notify::new(),
        })
    }

    /// Lines up a call. Dropped, what is returned leaves the queue.
    pub(crate) fn ask(self: &Arc<Self>, ask: Ask<'_>) -> Waiter {
        let (tell, told) = oneshot::channel();
        let ticket = {
            let mut room = self.room();
            let ticket = room.throttle.ask(self.clock.now(), ask);
            room.waiters.insert(ticket, tell);
            ticket
        };
        self.turn();
        Waiter {
            account: Arc::clone(self),
            ticket,
            told,
        }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends whatever may be sent now, and has it looked at again in time.
    fn turn(self: &Arc<Self>) {
        let (_, is_new) = self.look();
        if !is_new {
            return;
        }
        self.changed.notify_one();
        let mut room = self.room();
        // Without a runtime everything has ended.
        if let Ok(runtime) = Handle::try_current()
            && room.alarm.is_some()
            && !std::mem::replace(&mut room.is_kept, true)
        {
            drop(room);
            // A task of its own: an agent whose call waits may be busy with something else, and
            // then polls nothing.
            let keeper = Keeper {
                account: Arc::clone(self),
                is_over: false,
            };
            runtime.spawn(keeper.keep_time());
        }
    }

    /// Sends whatever may be sent now. Returns when to look again, and true if that has changed.
    fn look(self: &Arc<Self>) -> (Option<Duration>, bool) {
        let mut room = self.room();
        let Turn {
            admitted,
            refused,
            next,
        } = room.throttle.poll(self.clock.now());
        let is_new = std::mem::replace(&mut room.alarm, next) != next;
        let told = admitted
            .into_iter()
            .map(|ticket| (ticket, room.waiters.remove(&ticket)));
        let told: Vec<_> = told.collect();
        let given_up: Vec<_> = refused
            .into_iter()
            .map(|ticket| room.waiters.remove(&ticket))
            .collect();
        // Unlocked before anybody is told: a permit whose receiver has gone is given back at once.
        drop(room);
        for (ticket, tell) in told {
            let permit = Permit {
                account: Arc::clone(self),
                ticket: Some(ticket),
            };
            if let Some(tell) = tell {
                drop(tell.send(permit));
            }
        }
        // Those who give up see that nobody will tell them any more.
        drop(given_up);
        (next, is_new)
    }
}

/// The task that keeps the timer of an account while somebody waits for a time.
struct Keeper {
    account: Arc<Account>,
    is_over: bool,
}

impl Keeper {
    async fn keep_time(mut self) {
        while !self.is_over {
            let account = &self.account;
            let Some(at) = account.look().0 else {
                self.end();
                continue;
            };
            let wait = at.saturating_sub(account.clock.now());
            tokio::select! {
                () = account.clock.sleep(wait) => {}
                () = account.changed.notified() => {}
            }
        }
    }

    /// Ends, unless somebody has come since it looked.
    fn end(&mut self) {
        let mut room = self.account.room();
        self.is_over = room.alarm.is_none();
        room.is_kept = !self.is_over;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Its runtime has ended. Calls of another one need a keeper of theirs.
        if !self.is_over {
            self.account.room().is_kept = false;
        }
    }
}

/// A call in the queue.
#[must_use]
pub(crate) struct Waiter {
    account: Arc<Account>,
    ticket: Ticket,
    /// A permit that was sent and not received is dropped with this, and so given back.
    told: oneshot::Receiver<Permit>,
}

impl Waiter {
    /// Returns the permit, if it is there already.
    pub(crate) fn at_once(&mut self) -> Option<Permit> {
        self.told.try_recv().ok()
    }

    /// Returns what it waits for, and for how long if that is known.
    pub(crate) fn reason(&self) -> (CallWait, Option<Duration>) {
        let now = self.account.clock.now();
        let room = self.account.room();
        room.throttle.reason(now, room.alarm)
    }

    /// Waits until the call may be sent. An error if the wait is too long.
    pub(crate) async fn passed(mut self) -> Result<Permit, ModelError> {
        let account = Arc::clone(&self.account);
        let told = (&mut self.told).await;
        told.map_err(|_| account.given_up())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut room = self.account.room();
        if room.waiters.remove(&self.ticket).is_none() {
            // It was admitted, or refused.
            return;
        }
        room.throttle.leave(self.ticket);
        drop(room);
        // Those behind it may be smaller.
        self.account.turn();
    }
}

/// Permission to send one request. Dropped, the request is over.
#[must_use]
pub(crate) struct Permit {
    account: Arc<Account>,
    /// Set until the request is over.
    ticket: Option<Ticket>,
}

impl Permit {
    /// Tells what the head of the response says.
    pub(crate) fn head(
        &self,
        status: StatusCode,
        limits: &RateLimits,
        retry_after: Option<Duration>,
    ) {
        let Some(ticket) = self.ticket else { return };
        let now = self.account.clock.now();
        let head = Head {
            status: status.as_u16(),
            limits,
            retry_after,
        };
        let mut room = self.account.room();
        if room.throttle.head(now, ticket, &head) {
            // Until its body is read; some may give up before.
            room.fault = Some(AccountFault::of_head(status, now, retry_after));
        }
        drop(room);
        self.account.turn();
    }

    /// Ends a request that was answered in full.
    pub(crate) fn replied(mut self, usage: &Usage) {
        if let Some(ticket) = self.ticket.take() {
            let now = self.account.clock.now();
            self.account.room().throttle.done(now, ticket, usage);
            self.account.turn();
        }
    }

    /// Ends a request that has failed. Returns the stop that it has met, if the account is to
    /// blame.
    pub(crate) fn failed(mut self, error: &ModelError, usage: &Usage) -> Option<StopFacts> {
        if let ModelError::Cancelled = error {
            // It says nothing of the account: what the head has told stays.
            return None;
        }
        let ticket = self.ticket.take()?;
        let now = self.account.clock.now();
        let mut room = self.account.room();
        if let ModelError::Connect { .. } | ModelError::Cut { .. } = error {
            // Takes effect only if there was no head.
            room.throttle
                .unreachable(now, ticket, is_refused_here(error));
        }
        let stop = room.throttle.failed(now, ticket, usage, error.retryable());
        if let Some(stop) = &stop {
            room.fault = AccountFault::of(error, now + stop.wait);
        }
        drop(room);
        self.account.turn();
        stop
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.account.room().throttle.leave(ticket);
            self.account.turn();
        }
    }
}

/// What a call that gives up waiting is told, though it has not failed itself.
struct AccountFault {
    kind: FaultCause,
    /// Nothing is sent before.
    until: Duration,
}

enum FaultCause {
    Api(Box<ApiError>),
    Connect { endpoint: String, why: String },
    Cut { why: Option<String> },
}

impl AccountFault {
    fn of(error: &ModelError, until: Duration) -> Option<Self> {
        let kind = match error {
            ModelError::Api(error) => FaultCause::Api(error.clone()),
            ModelError::Connect { endpoint, source } => FaultCause::Connect {
                endpoint: endpoint.clone(),
                why: posse_port::in_a_line(source.as_ref()),
            },
            ModelError::Cut { source, .. } => FaultCause::Cut {
                why: source
                    .as_ref()
                    .map(|source| posse_port::in_a_line(source.as_ref())),
            },
            ModelError::Cancelled | ModelError::Stalled { .. } | ModelError::Garbled { .. } => {
                return None;
            }
        };
        Some(Self { kind, until })
    }

    /// Returns what the head of a response tells.
    fn of_head(status: StatusCode, now: Duration, retry_after: Option<Duration>) -> Self {
        let error = ApiError {
            kind: from_status(status),
            status: status.as_u16(),
            message: "the provider has given no reason yet".into(),
            request_id: None,
            retry_after,
            should_retry: None,
        };
        Self {
            kind: FaultCause::Api(Box::new(error)),
            until: now + retry_after.unwrap_or_default(),
        }
    }

    fn error(&self, now: Duration) -> ModelError {
        match &self.kind {
            FaultCause::Api(error) => {
                let mut error = error.clone();
                let left = self.until.saturating_sub(now);
                error.retry_after = error.retry_after.map(|_| left);
                ModelError::Api(error)
            }
            FaultCause::Connect { endpoint, why } => ModelError::Connect {
                endpoint: endpoint.clone(),
                source: why.clone().into(),
            },
            FaultCause::Cut { why } => ModelError::Cut {
                received: 0,
                source: why.clone().map(Into::into),
            },
        }
    }
}

impl Account {
    /// Returns why nobody should wait for the account.
    fn given_up(&self) -> ModelError {
        let now = self.clock.now();
        match &self.room().fault {
            Some(fault) => fault.error(now),
            None => ModelError::Cut {
                received: 0,
                source: None,
            },
        }
    }
}
