//! Readers that wait for the feeds of realms.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_protocol::RealmId;
use tokio::sync::watch;

/// The realms that readers of this process wait for, each with the last number known of it.
#[derive(Default)]
pub(crate) struct FeedWatch(Mutex<BTreeMap<RealmId, watch::Sender<u64>>>);

/// A reader's interest in a realm, until it is dropped.
pub(crate) struct FeedSubscription {
    feeds: Arc<FeedWatch>,
    realm: RealmId,
    head: watch::Receiver<u64>,
}

impl FeedWatch {
    /// Registers a reader. It hears of every number that is published from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, realm: RealmId) -> FeedSubscription {
        let head = self.realms().entry(realm).or_default().subscribe();
        FeedSubscription {
            feeds: Arc::clone(self),
            realm,
            head,
        }
    }

    /// Tells readers the last number of a realm. A number that is older than the known one changes
    /// nothing.
    pub(crate) fn publish(&self, realm: RealmId, head: u64) {
        if let Some(readers) = self.realms().get(&realm) {
            readers.send_if_modified(|known| {
                let is_news = head > *known;
                *known = head.max(*known);
                is_news
            });
        }
    }

    /// Returns the realms that somebody waits for.
    pub(crate) fn wanted(&self) -> Vec<RealmId> {
        self.realms().keys().copied().collect()
    }

    fn realms(&self) -> MutexGuard<'_, BTreeMap<RealmId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedSubscription {
    /// Waits for a number above `after`, and returns the last one that is known.
    pub(crate) async fn beyond(&mut self, after: u64) -> u64 {
        let head = self.head.wait_for(|head| *head > after).await;
        // Its sender is in the map as long as this subscription is alive.
        head.map_or(after, |head| *head)
    }
}

impl Drop for FeedSubscription {
    fn drop(&mut self) {
        let mut realms = self.feeds.realms();
        // This one is still counted.
        if realms
            .get(&self.realm)
            .is_some_and(|readers| readers.receiver_count() <= 1)
        {
            realms.remove(&self.realm);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use uuid::Uuid;

    use super::*;

    #[test]
    fn readers_hear_of_their_realm_until_they_go() {
        let feeds = Arc::<FeedWatch>::default();
        let [here, there]: [RealmId; 2] = [1, 2].map(|number| Uuid::from_u128(number).into());
        let mut context = Context::from_waker(Waker::noop());
        let (mut first, mut second) = (feeds.subscribe(here), feeds.subscribe(here));
        {
            let mut waits = pin!(first.beyond(3));
            assert!(waits.as_mut().poll(&mut context).is_pending());
            feeds.publish(there, 9);
            feeds.publish(here, 3);
            assert!(waits.as_mut().poll(&mut context).is_pending());
            feeds.publish(here, 5);
            feeds.publish(here, 4);
            assert_eq!(waits.poll(&mut context), Poll::Ready(5));
        }
        drop(first);
        assert_eq!(pin!(second.beyond(4)).poll(&mut context), Poll::Ready(5));
        assert_eq!(feeds.wanted(), [here]);
        drop(second);
        assert!(feeds.wanted().is_empty());
    }
}
