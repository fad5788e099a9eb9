//! Run slots limit how many agents call the model at once. The others wait in a fair queue.
//!
//! Waiting agents are served in turns by parent, so that an agent that starts a thousand does not
//! hold up one that starts a single one. An agent that gave its permit back while it waited for a
//! child or a person goes before all of them: what has begun is finished first.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::mem::replace;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use posse_protocol::AgentId;
use tokio::sync::oneshot;

/// The run slots of a session. Cheap to clone; all clones share the slots.
#[derive(Clone, Debug)]
pub(crate) struct RunSlots(Arc<Mutex<QueueRoom>>);

/// Permission to run. Dropping it admits the next waiter.
#[must_use]
#[derive(Debug)]
pub(crate) struct RunPermit(RunSlots);

/// Priority of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Asks for the first time in this run.
    New,
    /// Had a permit, waited for a child or a person, and continues.
    Resuming,
}

impl RunSlots {
    /// Returns `limit` slots, at least one.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(QueueRoom {
            free: limit.max(1),
            ..QueueRoom::default()
        })))
    }

    /// Waits for a permit. `whose` is the parent of the agent that asks: children of one agent
    /// share a queue.
    pub(crate) fn take(&self, whose: AgentId, coming: Priority) -> SlotWaiters {
        let mut room = self.room();
        let state = if room.take() {
            SlotState::Given(RunPermit(self.clone()))
        } else {
            let (tell, told) = oneshot::channel();
            let line = SlotLine { whose, coming };
            SlotState::Queued {
                line,
                number: room.enter(line, tell),
                told,
            }
        };
        SlotWaiters {
            slots: self.clone(),
            state,
        }
    }

    /// Returns a permit, if a slot is free.
    pub(crate) fn try_take(&self) -> Option<RunPermit> {
        self.room().take().then(|| RunPermit(self.clone()))
    }

    fn room(&self) -> MutexGuard<'_, QueueRoom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a slot to the next waiter, or frees it.
    fn give(&self) {
        loop {
            let Some(next) = self.room().next_or_free() else {
                return;
            };
            // A waiter that is dropped at this moment does not take the slot: the one after it
            // does.
            if next.send(()).is_ok() {
                return;
            }
        }
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// Waits for a permit. Its turn counts from when it was asked for. Dropped, it leaves the queue.
#[must_use]
#[derive(Debug)]
pub(crate) struct SlotWaiters {
    slots: RunSlots,
    state: SlotState,
}

/// Progress of a waiter.
#[derive(Debug)]
enum SlotState {
    /// A slot was free at once.
    Given(RunPermit),
    /// It waits in a queue, or was chosen and not polled since.
    Queued {
        line: SlotLine,
        number: u64,
        told: oneshot::Receiver<()>,
    },
    /// The permit was handed out.
    Over,
}

impl Future for SlotWaiters {
    type Output = RunPermit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<RunPermit> {
        match replace(&mut self.state, SlotState::Over) {
            SlotState::Given(place) => Poll::Ready(place),
            SlotState::Queued {
                line,
                number,
                mut told,
            } => match Pin::new(&mut told).poll(cx) {
                Poll::Ready(Ok(())) => Poll::Ready(RunPermit(self.slots.clone())),
                // The sender is dropped only with the queue, which this future keeps alive.
                Poll::Ready(Err(_)) | Poll::Pending => {
                    self.state = SlotState::Queued { line, number, told };
                    Poll::Pending
                }
            },
            SlotState::Over => Poll::Pending,
        }
    }
}

impl Drop for SlotWaiters {
    fn drop(&mut self) {
        let SlotState::Queued { line, number, told } = &mut self.state else {
            return;
        };
        let queued = self.slots.room().leave(*line, *number);
        // A waiter that is not in the queue was chosen. Once the channel is closed nobody can send
        // to it; if somebody already has, the slot goes to the next waiter.
        told.close();
        if !queued && told.try_recv().is_ok() {
            self.slots.give();
        }
    }
}

/// The queue in which an agent waits.
#[derive(Clone, Copy, Debug)]
struct SlotLine {
    whose: AgentId,
    coming: Priority,
}

type SlotQueue = BTreeMap<u64, oneshot::Sender<()>>;

/// Waiters by order of arrival. A slot is free only while nobody waits.
#[derive(Debug, Default)]
struct QueueRoom {
    free: usize,
    arrivals: u64,
    /// Agents that continue; served before all others.
    back: SlotQueue,
    /// Children of each agent, in the order of their turns; no queue is empty.
    anew: VecDeque<(AgentId, SlotQueue)>,
}

impl QueueRoom {
    /// Takes a free slot. Returns false if there is none.
    fn take(&mut self) -> bool {
        let free = self.free > 0;
        self.free -= usize::from(free);
        free
    }

    /// Adds a waiter and returns its number.
    fn enter(&mut self, line: SlotLine, tell: oneshot::Sender<()>) -> u64 {
        self.arrivals += 1;
        let number = self.arrivals;
        match (line.coming, self.siblings(line.whose)) {
            (Priority::Resuming, _) => _ = self.back.insert(number, tell),
            (Priority::New, Some(at)) => _ = self.anew[at].1.insert(number, tell),
            (Priority::New, None) => self
                .anew
                .push_back((line.whose, SlotQueue::from([(number, tell)]))),
        }
        number
    }

    /// Takes the next waiter out of its queue; if there is none, frees a slot.
    fn next_or_free(&mut self) -> Option<oneshot::Sender<()>> {
        if let Some((_, next)) = self.back.pop_first() {
            return Some(next);
        }
        while let Some((whose, mut queue)) = self.anew.pop_front() {
            let next = queue.pop_first();
            if !queue.is_empty() {
                // To the end: every other parent's children have a turn first.
                self.anew.push_back((whose, queue));
            }
            if let Some((_, next)) = next {
                return Some(next);
            }
        }
        self.free += 1;
        None
    }

    /// Removes a waiter. Returns true if it was still waiting.
    fn leave(&mut self, line: SlotLine, number: u64) -> bool {
        if line.coming == Priority::Resuming {
            return self.back.remove(&number).is_some();
        }
        let Some(at) = self.siblings(line.whose) else {
            return false;
        };
        let queue = &mut self.anew[at].1;
        let waited = queue.remove(&number).is_some();
        if queue.is_empty() {
            self.anew.remove(at);
        }
        waited
    }

    /// Returns the position of the queue for an agent's children.
    fn siblings(&self, whose: AgentId) -> Option<usize> {
        self.anew.iter().position(|(other, _)| *other == whose)
    }
}
