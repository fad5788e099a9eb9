//! Readers that wait for the feeds of realms.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_port::store::{FeedPage, FeedRow};
use posse_protocol::RealmId;
use tokio::sync::watch;

/// The realms that readers of this process wait for.
#[derive(Default)]
pub(crate) struct FeedWatch(Mutex<BTreeMap<RealmId, FeedReaders>>);

/// The readers of a realm.
struct FeedReaders {
    /// The lowest number that one of them has and that was not queried yet.
    oldest: u64,
    tail: watch::Sender<FeedTail>,
}

/// What is known of a realm: its last number, and perhaps the rows that lead to it.
#[derive(Clone, Default)]
pub(crate) struct FeedTail {
    head: u64,
    /// The rows are all those after this number.
    from: u64,
    rows: Arc<[FeedRow]>,
}

/// A reader's interest in a realm, until it is dropped.
pub(crate) struct FeedSubscription {
    feeds: Arc<FeedWatch>,
    realm: RealmId,
    tail: watch::Receiver<FeedTail>,
}

impl FeedWatch {
    /// Registers a reader that has everything up to `after`. It hears of every number that is
    /// published from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, realm: RealmId, after: u64) -> FeedSubscription {
        let mut realms = self.realms();
        let readers = realms.entry(realm).or_insert_with(|| FeedReaders {
            oldest: after,
            tail: watch::Sender::default(),
        });
        readers.oldest = readers.oldest.min(after);
        FeedSubscription {
            feeds: Arc::clone(self),
            realm,
            tail: readers.tail.subscribe(),
        }
    }

    /// Tells readers the last number of a realm. A number that is older than the known one changes
    /// nothing.
    pub(crate) fn publish(&self, realm: RealmId, head: u64) {
        self.publish_tail(realm, FeedTail::new(head, head, Vec::new()));
    }

    /// Tells readers the last number of a realm, and the rows that lead to it.
    pub(crate) fn publish_tail(&self, realm: RealmId, tail: FeedTail) {
        if let Some(readers) = self.realms().get_mut(&realm) {
            readers.oldest = tail.head;
            readers.tail.send_if_modified(|known| {
                let is_news = tail.head > known.head;
                if is_news {
                    *known = tail;
                }
                is_news
            });
        }
    }

    /// Returns the realms that somebody waits for, each with the number after which rows are news.
    pub(crate) fn wanted(&self) -> Vec<(RealmId, u64)> {
        let realms = self.realms();
        let wanted = realms.iter().map(|(realm, of)| (*realm, of.oldest));
        wanted.collect()
    }

    fn realms(&self) -> MutexGuard<'_, BTreeMap<RealmId, FeedReaders>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedTail {
    /// The last number, and all rows after `from`.
    pub(crate) fn new(head: u64, from: u64, rows: Vec<FeedRow>) -> Self {
        Self {
            head,
            from,
            rows: rows.into(),
        }
    }

    /// Returns the rows after a number, `None` if not all of them are known.
    pub(crate) fn page(&self, after: u64, limit: usize) -> Option<FeedPage> {
        let rows = self.rows.iter().filter(|row| row.number > after);
        (self.from <= after).then(|| FeedPage {
            head: self.head,
            rows: rows.take(limit).copied().collect(),
        })
    }
}

impl FeedSubscription {
    /// Waits for a number above `after`, and returns what is known then.
    pub(crate) async fn beyond(&mut self, after: u64) -> FeedTail {
        let tail = self.tail.wait_for(|tail| tail.head > after).await;
        // Its sender is in the map as long as this subscription is alive.
        tail.map_or_else(|_| FeedTail::default(), |tail| tail.clone())
    }
}

impl Drop for FeedSubscription {
    fn drop(&mut self) {
        let mut realms = self.feeds.realms();
        // This one is still counted.
        if realms
            .get(&self.realm)
            .is_some_and(|readers| readers.tail.receiver_count() <= 1)
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

    use posse_port::store::Topics;
    use uuid::Uuid;

    use super::*;

    fn row(number: u64) -> FeedRow {
        FeedRow {
            number,
            agent: None,
            at_ms: 0,
            topics: Topics::HOLDER,
            seq: 0,
            count: 0,
        }
    }

    #[test]
    fn readers_hear_of_their_realm_until_they_go() {
        let feeds = Arc::<FeedWatch>::default();
        let [here, there]: [RealmId; 2] = [1, 2].map(|number| Uuid::from_u128(number).into());
        let mut context = Context::from_waker(Waker::noop());
        let (mut first, mut second) = (feeds.subscribe(here, 3), feeds.subscribe(here, 4));
        assert_eq!(feeds.wanted(), [(here, 3)]);
        {
            let mut waits = pin!(first.beyond(3));
            assert!(waits.as_mut().poll(&mut context).is_pending());
            feeds.publish(there, 9);
            feeds.publish(here, 3);
            assert!(waits.as_mut().poll(&mut context).is_pending());
            feeds.publish(here, 5);
            feeds.publish(here, 4);
            let Poll::Ready(tail) = waits.poll(&mut context) else {
                panic!("it was told");
            };
            assert_eq!((tail.head, tail.page(3, 9)), (5, None));
        }
        drop(first);
        assert!(pin!(second.beyond(4)).poll(&mut context).is_ready());
        assert_eq!(feeds.wanted(), [(here, 4)]);
        drop(second);
        assert!(feeds.wanted().is_empty());
    }

    #[test]
    fn rows_are_known_only_where_none_is_missing() {
        let tail = FeedTail::new(7, 4, [5, 6, 7].map(row).into());
        let page = |after, limit| tail.page(after, limit).map(|page| page.rows);
        assert_eq!(page(4, 9), Some([5, 6, 7].map(row).into()));
        assert_eq!(page(5, 1), Some(vec![row(6)]));
        assert_eq!(page(3, 9), None);
    }
}
