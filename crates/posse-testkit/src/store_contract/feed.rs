//! Promises about the feed: numbers without a gap, in the order of commits, for any reader.

use std::collections::BTreeMap;

use posse_port::store::{Address, FeedRow, Operation, Step, Store, Topics};
use posse_protocol::{AgentId, EntryKind, RealmId};
use uuid::Uuid;

use super::{Open, agent, birth, create, entry, fate, order, other_realm, realm, send, step};

/// Returns the whole feed of a realm. Fails if it is not numbered from 1 to its head.
pub async fn whole(store: &dyn Store, realm: RealmId) -> Vec<FeedRow> {
    let page = store.feed(realm, 0, usize::MAX).await.unwrap();
    let numbers: Vec<u64> = page.rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=page.head).collect::<Vec<_>>());
    page.rows
}

fn told(row: &FeedRow) -> (Option<AgentId>, Topics, u64, u64) {
    (row.agent, row.topics, row.seq, row.count)
}

/// Every commit has its row, and nothing else has.
pub async fn commits_are_numbered(open: Open<'_>) {
    let store = open();
    assert_eq!(whole(&*store, realm()).await, []);
    store.commit(birth(1)).await.unwrap();
    store.commit(birth(2)).await.unwrap();
    let mut works = step(1, 1);
    works.entries = vec![
        entry(0, EntryKind::Prompt, "hello"),
        entry(1, EntryKind::Reply, "hi"),
    ];
    works.operations = vec![
        Operation {
            call: None,
            op: send(Address::Agent(agent(2)), "a word"),
        },
        Operation {
            call: None,
            op: send(Address::Agent(agent(2)), "a word"),
        },
    ];
    store.commit(works.clone()).await.unwrap();
    assert_eq!(fate(&store.commit(works).await), "ok", "the same again");
    let mut late = step(1, 1);
    late.entries = vec![entry(7, EntryKind::Prompt, "hello")];
    assert_eq!(fate(&store.commit(late).await), "bad step");
    order(&*store, vec![create("", "do it", &[])]).await;
    let epoch = store.take(agent(1)).await.unwrap().epoch;
    store.release(agent(1), epoch).await.unwrap();
    store.release(agent(1), epoch).await.unwrap();

    let rows = whole(&*store, realm()).await;
    let [one, two] = [1, 2].map(|number| Some(agent(number)));
    let wanted = [
        (one, Topics::BIRTH, 0, 0),
        (two, Topics::BIRTH, 0, 0),
        (one, Topics::ENTRIES, 0, 2),
        (two, Topics::MAIL, 1, 1),
        (two, Topics::MAIL, 2, 1),
        (None, Topics::TASKS, 0, 0),
        (one, Topics::HOLDER, 0, 0),
        (one, Topics::HOLDER, 0, 0),
    ];
    assert_eq!(rows.iter().map(told).collect::<Vec<_>>(), wanted);
    assert!(rows.is_sorted_by_key(|row| row.at_ms));

    // Any part of it, from any host, also after a restart. A host that leaves gives up what it has.
    drop(store);
    let store = open();
    let page = store.feed(realm(), 3, 2).await.unwrap();
    assert_eq!((page.head, page.has_gap(3)), (9, false));
    assert_eq!(page.rows, rows[3..5]);
    let last = store.feed(realm(), 8, 2).await.unwrap().rows;
    assert_eq!(
        last.iter().map(told).collect::<Vec<_>>(),
        [(two, Topics::HOLDER, 0, 0)]
    );
    assert_eq!(store.feed(realm(), 9, 2).await.unwrap().rows, []);
    let nowhere: RealmId = Uuid::from_u128(7).into();
    assert_eq!(store.feed(nowhere, 0, 9).await.unwrap().head, 0);
}

/// A reader that waits is told of every commit, by whichever host; one that waits for what is there
/// already does not wait.
pub async fn readers_are_told(open: Open<'_>) {
    let (writer, reader) = (open(), open());
    writer.commit(birth(1)).await.unwrap();
    assert_eq!(reader.follow_feed(realm(), 0, 0).await.unwrap().head, 1);
    for number in 1..20 {
        tokio::select! {
            biased;
            page = reader.follow_feed(realm(), number, 9) => panic!("{page:?}"),
            () = std::future::ready(()) => {}
        }
        let waiting = tokio::join!(
            reader.follow_feed(realm(), number, 9),
            writer.follow_feed(realm(), number, 9),
            writer.commit(step(1, 1)),
        );
        for page in [waiting.0.unwrap(), waiting.1.unwrap()] {
            assert_eq!(page.head, number + 1);
            assert!(matches!(&page.rows[..], [row] if row.number == number + 1));
        }
        waiting.2.unwrap();
    }
    // What happens elsewhere wakes nobody here.
    let other = other_realm();
    let mut elsewhere = birth(2);
    elsewhere.realm = other;
    let quiet = async {
        writer.commit(elsewhere).await.unwrap();
        assert_eq!(reader.follow_feed(other, 0, 0).await.unwrap().head, 1);
    };
    tokio::select! {
        biased;
        page = reader.follow_feed(realm(), 20, 9) => panic!("{page:?}"),
        () = quiet => {}
    }
}

/// Whoever writes at once, each commit has one number, and each agent's are in its own order.
pub async fn numbers_are_dense_whoever_writes(open: Open<'_>) {
    const STEPS: u64 = 40;
    let hosts: Vec<_> = (1..=3).map(|number| (number, open())).collect();
    let write = async |number: u64, store: &dyn Store| {
        store.commit(birth(number)).await.unwrap();
        for seq in 0..STEPS {
            let step = Step {
                entries: vec![entry(seq, EntryKind::Prompt, "word")],
                ..step(number, 1)
            };
            store.commit(step).await.unwrap();
        }
    };
    let read = async {
        let (store, mut read) = (open(), Vec::<FeedRow>::new());
        while read.len() as u64 <= STEPS * 3 + 2 {
            let after = read.len() as u64;
            let page = store.follow_feed(realm(), after, 7).await.unwrap();
            assert!(!page.has_gap(after));
            read.extend(page.rows);
        }
        read
    };
    let [first, second, third] = &hosts[..] else {
        panic!("three")
    };
    let (_, _, _, rows) = tokio::join!(
        write(first.0, &*first.1),
        write(second.0, &*second.1),
        write(third.0, &*third.1),
        read,
    );
    assert!(rows.iter().map(|row| row.number).eq(1..=rows.len() as u64));
    let mut seqs: BTreeMap<Option<AgentId>, Vec<u64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.topics == Topics::ENTRIES) {
        seqs.entry(row.agent).or_default().push(row.seq);
    }
    assert_eq!(seqs.len(), 3);
    assert!(seqs.into_values().all(|seqs| seqs.into_iter().eq(0..STEPS)));
}
