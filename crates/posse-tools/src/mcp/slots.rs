//! How many calls of a server are made at once, and whose turn is next.
//!
//! Those who wait have turns by branch of the tree of agents, at each branching: an agent with a
//! thousand sub-agents that all call does not hold up one that calls alone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How many levels of the tree have turns of their own.
const LEVELS: usize = 16;

/// Places for the calls of a server.
#[derive(Clone, Debug)]
pub(super) struct CallSlots(Arc<Mutex<CallQueue>>);

/// A place. Dropping it gives it to the next.
#[must_use]
#[derive(Debug)]
pub(super) struct CallSlot(CallSlots);

#[derive(Debug)]
struct CallQueue {
    free: usize,
    arrivals: u64,
    waiting: CallBranch,
}

/// Those who wait in a part of the tree. None of its branches is empty.
#[derive(Debug, Default)]
struct CallBranch {
    here: BTreeMap<u64, oneshot::Sender<()>>,
    below: VecDeque<(Box<str>, CallBranch)>,
}

impl CallSlots {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(CallQueue {
            free: limit,
            arrivals: 0,
            waiting: CallBranch::default(),
        })))
    }

    /// Waits for a place. `path` names the agents from the main agent down.
    pub(super) async fn take(&self, path: &str) -> CallSlot {
        let (number, chosen) = {
            let mut queue = self.queue();
            if queue.free > 0 {
                queue.free -= 1;
                return CallSlot(self.clone());
            }
            queue.arrivals += 1;
            let number = queue.arrivals;
            let (choose, chosen) = oneshot::channel();
            queue.waiting.enter(&branches(path), number, choose);
            (number, chosen)
        };
        let mut waiter = CallWaiter {
            slots: self,
            path,
            number,
            chosen: Some(chosen),
        };
        if let Some(chosen) = &mut waiter.chosen {
            // The sender is dropped only with the queue, which this keeps.
            let _ = chosen.await;
        }
        waiter.chosen = None;
        CallSlot(self.clone())
    }

    fn queue(&self) -> MutexGuard<'_, CallQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place to the next who waits, or frees it.
    fn give(&self) {
        loop {
            let mut queue = self.queue();
            let Some(next) = queue.waiting.next() else {
                queue.free += 1;
                return;
            };
            drop(queue);
            // One who has left meanwhile does not take it.
            if next.send(()).is_ok() {
                return;
            }
        }
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// One who waits. Dropped, it leaves the queue.
struct CallWaiter<'a> {
    slots: &'a CallSlots,
    path: &'a str,
    number: u64,
    chosen: Option<oneshot::Receiver<()>>,
}

impl Drop for CallWaiter<'_> {
    fn drop(&mut self) {
        let Some(mut chosen) = self.chosen.take() else {
            return;
        };
        let mut queue = self.slots.queue();
        let waited = queue.waiting.leave(&branches(self.path), self.number);
        drop(queue);
        // It was chosen and did not come to that: the next one's turn.
        chosen.close();
        if !waited && chosen.try_recv().is_ok() {
            self.slots.give();
        }
    }
}

/// Returns the branches that lead to an agent. It is a branch itself, beside those of its sub-agents.
fn branches(path: &str) -> Vec<&str> {
    path.splitn(LEVELS, '/').chain([""]).collect()
}

impl CallBranch {
    fn enter(&mut self, path: &[&str], number: u64, choose: oneshot::Sender<()>) {
        let Some((name, path)) = path.split_first() else {
            self.here.insert(number, choose);
            return;
        };
        let at = self.position(name).unwrap_or_else(|| {
            self.below.push_back(((*name).into(), Self::default()));
            self.below.len() - 1
        });
        self.below[at].1.enter(path, number, choose);
    }

    /// Takes out whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<()>> {
        if let Some((_, next)) = self.here.pop_first() {
            return Some(next);
        }
        let (name, mut branch) = self.below.pop_front()?;
        let next = branch.next();
        if !branch.is_empty() {
            // To the end: every other branch has a turn first.
            self.below.push_back((name, branch));
        }
        next
    }

    /// Takes one out who does not wait any more. Returns true if it was still there.
    fn leave(&mut self, path: &[&str], number: u64) -> bool {
        let Some((name, path)) = path.split_first() else {
            return self.here.remove(&number).is_some();
        };
        let Some(at) = self.position(name) else {
            return false;
        };
        let branch = &mut self.below[at].1;
        let waited = branch.leave(path, number);
        if branch.is_empty() {
            self.below.remove(at);
        }
        waited
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.below.iter().position(|(other, _)| **other == *name)
    }

    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.below.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = CallSlot>>>;

    /// Enters the queue.
    async fn wait(slots: &CallSlots, path: &'static str) -> Waiting {
        let slots = slots.clone();
        let mut waiting: Waiting = Box::pin(async move { slots.take(path).await });
        poll_fn(|cx| {
            assert!(waiting.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        waiting
    }

    /// Returns in which order they are served, by their index.
    async fn served(slots: &CallSlots, held: CallSlot, mut waiting: Vec<Waiting>) -> Vec<usize> {
        let mut left: Vec<usize> = (0..waiting.len()).collect();
        let mut order = Vec::new();
        let mut held = Some(held);
        while !left.is_empty() {
            drop(held.take());
            let found = poll_fn(|cx| {
                let ready = left.iter().enumerate().find_map(|(at, &index)| {
                    match waiting[index].as_mut().poll(cx) {
                        Poll::Ready(slot) => Some((at, slot)),
                        Poll::Pending => None,
                    }
                });
                Poll::Ready(ready)
            });
            let (at, slot) = found.await.unwrap();
            order.push(left.remove(at));
            held = Some(slot);
        }
        drop(held);
        assert_eq!(slots.queue().free, 1);
        order
    }

    // proves MC-02 (part: fair)
    #[tokio::test]
    async fn each_branch_has_its_turn() {
        let slots = CallSlots::new(1);
        let held = slots.take("main").await;
        let mut waiting = Vec::new();
        for path in [
            "main/a/x", "main/a/x", "main/a/x", "main/a/y", "main/b", "main", "main/a",
        ] {
            waiting.push(wait(&slots, path).await);
        }
        let order = served(&slots, held, waiting).await;
        assert_eq!(order, [0, 4, 5, 3, 6, 1, 2]);
    }

    #[tokio::test]
    async fn who_leaves_takes_no_place() {
        let slots = CallSlots::new(1);
        let held = slots.take("main").await;
        let gone = wait(&slots, "main/a").await;
        let chosen = wait(&slots, "main/b").await;
        let last = wait(&slots, "main/c").await;
        drop(gone);
        drop(held);
        // It was chosen, and is dropped before it knows.
        drop(chosen);
        drop(last.await);
        assert_eq!(slots.queue().free, 1);
        assert!(slots.queue().waiting.is_empty());
    }
}
