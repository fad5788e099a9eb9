//! Cache warm-up: lets one sibling write the shared beginning of requests to the prompt cache.
//!
//! What a request writes can be read once its reply has begun. Siblings that all call at once would
//! each write the same bytes, and each pay for it: so the first calls alone, and the others follow
//! when its reply begins. If its call fails, the next one leads.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

/// Time for which a provider's cache keeps an entry after its last use, at least.
const KEPT: Duration = Duration::from_secs(300);

/// State of the bytes that siblings share.
#[derive(Debug, Default)]
pub(crate) struct CacheWarmup(Mutex<PrefixRoom>);

/// What an agent does before its first call.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// Call at once. With a lead, the others wait for this call.
    Go(Option<WarmupLead>),
    /// Wait for the sibling that leads.
    Wait(WarmupWaiters),
}

impl CacheWarmup {
    /// Enters an agent that is about to make its first call.
    pub(crate) fn enter(self: &Arc<Self>, now: Duration) -> Ticket {
        let mut room = self.room();
        if room
            .used
            .is_some_and(|used| now.saturating_sub(used) < KEPT)
        {
            return Ticket::Go(None);
        }
        if !room.led {
            room.led = true;
            return Ticket::Go(Some(WarmupLead(Some(Arc::clone(self)))));
        }
        let (tell, told) = oneshot::channel();
        let number = room.arrivals;
        room.arrivals += 1;
        room.queue.insert(number, tell);
        Ticket::Wait(WarmupWaiters {
            warmup: Arc::clone(self),
            number,
            told,
        })
    }

    /// Notes that a reply has begun: the shared bytes can be read, and all waiters continue. `sent`
    /// is when the call was made, which is when the cache was used.
    pub(crate) fn begun(&self, sent: Duration) {
        let mut room = self.room();
        room.used = room.used.max(Some(sent));
        let waited = std::mem::take(&mut room.queue);
        drop(room);
        for tell in waited.into_values() {
            // The error is dropped: a waiter that has gone needs nothing.
            let _ = tell.send(None);
        }
    }

    /// Returns true if the shared bytes can be read from the cache.
    pub(crate) fn is_warm(&self, now: Duration) -> bool {
        let used = self.room().used;
        used.is_some_and(|used| now.saturating_sub(used) < KEPT)
    }

    fn room(&self) -> MutexGuard<'_, PrefixRoom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the lead to the next waiter.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let mut room = self.room();
            let next = room.queue.pop_first();
            room.led = next.is_some();
            // Unlocked before anything is sent: woken waiters lock it again when they are dropped.
            drop(room);
            let Some((_, tell)) = next else { return };
            match tell.send(Some(WarmupLead(Some(Arc::clone(self))))) {
                // The waiter has gone. Its lead is taken apart: dropped whole, it would call this
                // again.
                Err(Some(mut lead)) => drop(lead.0.take()),
                Err(None) | Ok(()) => return,
            }
        }
    }
}

impl Ticket {
    /// Waits until the agent may call. With a lead, the others wait for its call.
    pub(crate) async fn passed(self) -> Option<WarmupLead> {
        match self {
            Self::Go(lead) => lead,
            Self::Wait(waiting) => waiting.await,
        }
    }
}

/// The lead: siblings wait for the agent that holds it until [`CacheWarmup::begun`]. Dropped before
/// that, it passes to the next waiter.
#[must_use]
#[derive(Debug)]
pub(crate) struct WarmupLead(Option<Arc<CacheWarmup>>);

impl Drop for WarmupLead {
    fn drop(&mut self) {
        if let Some(warmup) = self.0.take() {
            warmup.pass_on();
        }
    }
}

/// Waits until the shared bytes can be read, or until it is its turn to lead. Dropped, it leaves
/// the queue.
#[must_use]
#[derive(Debug)]
pub(crate) struct WarmupWaiters {
    warmup: Arc<CacheWarmup>,
    number: u64,
    /// A lead that was sent and not received is dropped with this, and so passes on.
    told: oneshot::Receiver<Option<WarmupLead>>,
}

impl Future for WarmupWaiters {
    type Output = Option<WarmupLead>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WarmupLead>> {
        // The sender is dropped only with the queue, which this future keeps alive; if it were,
        // there would be nobody to wait for.
        Pin::new(&mut self.told)
            .poll(cx)
            .map(|told| told.ok().flatten())
    }
}

impl Drop for WarmupWaiters {
    fn drop(&mut self) {
        self.warmup.room().queue.remove(&self.number);
    }
}

/// The shared state.
#[derive(Debug, Default)]
struct PrefixRoom {
    /// When the last request was sent whose reply has begun.
    used: Option<Duration>,
    /// True while an agent leads. Nobody waits while it is false.
    led: bool,
    arrivals: u64,
    /// Waiters by order of arrival.
    queue: BTreeMap<u64, oneshot::Sender<Option<WarmupLead>>>,
}
