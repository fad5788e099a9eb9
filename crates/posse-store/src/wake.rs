//! Notifications for a host, kept until it asks.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use posse_port::store::Wake;
use tokio::sync::Notify;

/// Collects wakes in a set: what is reported twice before anyone listens is delivered once.
#[derive(Default)]
pub(crate) struct Waker {
    untold: Mutex<BTreeSet<Wake>>,
    more: Notify,
}

impl Waker {
    /// Adds wakes.
    pub(crate) fn wake(&self, wakes: impl IntoIterator<Item = Wake>) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.extend(wakes);
        if !untold.is_empty() {
            self.more.notify_one();
        }
    }

    /// Waits for wakes and takes them. They are taken and returned in the same poll, so that a
    /// call that is dropped has taken nothing.
    pub(crate) async fn woken(&self) -> Vec<Wake> {
        loop {
            let told =
                std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
            if !told.is_empty() {
                return told.into_iter().collect();
            }
            self.more.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll};

    use super::*;

    #[test]
    fn a_call_that_is_dropped_loses_nothing() {
        let waker = Waker::default();
        let mut context = Context::from_waker(std::task::Waker::noop());
        {
            let mut dropped = pin!(waker.woken());
            assert!(dropped.as_mut().poll(&mut context).is_pending());
            waker.wake([Wake::Fenced]);
            waker.wake([Wake::Fenced]);
        }
        assert_eq!(
            pin!(waker.woken()).poll(&mut context),
            Poll::Ready(vec![Wake::Fenced])
        );
        // The permit of the second call is left over; it must not pass for news.
        assert!(pin!(waker.woken()).poll(&mut context).is_pending());
    }
}
