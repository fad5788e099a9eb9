//! Warmth: whether the bytes that siblings' requests begin with can be read from the provider's cache.
//!
//! What a request writes can be read once its reply has begun. Siblings that all ask at once would each
//! write the same bytes, and each pay for it: so the first goes alone, and the others follow when its reply
//! begins. If that comes to nothing, the next one leads; nobody waits for one who has gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

/// So long after its last use a cache keeps what it was given, at least.
const KEPT: Duration = Duration::from_secs(300);

/// What is known of the bytes that some siblings share.
#[derive(Debug, Default)]
pub struct CacheWarmup(Mutex<PrefixRoom>);

/// What one who makes its first call is to do.
#[derive(Debug)]
pub enum Ticket {
    /// Call at once; with a lead, the others wait for what comes of it.
    Go(Option<WarmupLead>),
    /// Wait for the one who leads.
    Wait(WarmupWaiters),
}

impl CacheWarmup {
    /// Somebody is about to make its first call.
    pub fn enter(self: &Arc<Self>, now: Duration) -> Ticket {
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

    /// A reply of one of them has begun: what they share can be read, and whoever waits goes on. `sent` is
    /// when it was asked for, which is when the cache was used.
    pub fn begun(&self, sent: Duration) {
        let mut room = self.room();
        room.used = room.used.max(Some(sent));
        let waited = std::mem::take(&mut room.queue);
        drop(room);
        for tell in waited.into_values() {
            // Whoever leaves at this very moment need not know.
            let _ = tell.send(None);
        }
    }

    fn room(&self) -> MutexGuard<'_, PrefixRoom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody leads any more: the next one does. Whoever leaves at this very moment does not.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let mut room = self.room();
            let next = room.queue.pop_first();
            room.led = next.is_some();
            drop(room);
            let Some((_, tell)) = next else { return };
            match tell.send(Some(WarmupLead(Some(Arc::clone(self))))) {
                Err(Some(mut lead)) => drop(lead.0.take()),
                Err(None) | Ok(()) => return,
            }
        }
    }
}

impl Ticket {
    /// Ends when it may call; with a lead, the others wait for what comes of it.
    pub async fn passed(self) -> Option<WarmupLead> {
        match self {
            Self::Go(lead) => lead,
            Self::Wait(waiting) => waiting.await,
        }
    }
}

/// The lead: the others wait for whoever has it, until [`CacheWarmup::begun`]. Dropped before that, it is the
/// next one's.
#[must_use]
#[derive(Debug)]
pub struct WarmupLead(Option<Arc<CacheWarmup>>);

impl Drop for WarmupLead {
    fn drop(&mut self) {
        if let Some(warmup) = self.0.take() {
            warmup.pass_on();
        }
    }
}

/// Waits until what is shared can be read, or until it is its turn to lead. Dropped, it leaves no trace.
#[must_use]
#[derive(Debug)]
pub struct WarmupWaiters {
    warmup: Arc<CacheWarmup>,
    number: u64,
    /// A lead that was sent and not heard of is dropped with this, and so the next one's.
    told: oneshot::Receiver<Option<WarmupLead>>,
}

impl Future for WarmupWaiters {
    type Output = Option<WarmupLead>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WarmupLead>> {
        // A queue that somebody waits in is never dropped; if it were, there would be nobody to wait for.
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

#[derive(Debug, Default)]
struct PrefixRoom {
    /// When it was last asked for what has begun to be answered.
    used: Option<Duration>,
    /// Whether somebody leads. Nobody waits while nobody does.
    led: bool,
    arrivals: u64,
    /// Who waits, by the number of their arrival.
    queue: BTreeMap<u64, oneshot::Sender<Option<WarmupLead>>>,
}
