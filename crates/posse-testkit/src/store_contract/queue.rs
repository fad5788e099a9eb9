//! Promises about concurrent calls, and about calls that nobody awaits.

use posse_port::store::{Epoch, Step};
use posse_protocol::EntryKind;

use super::{Open, agent, birth, entry, fate, step};

/// A dropped store first finishes what is queued.
pub async fn dropping_the_store_finishes_what_is_queued(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    for seq in 0..300 {
        let entries = vec![entry(seq, EntryKind::Prompt, "queued")];
        // Not awaited.
        drop(store.commit(Step {
            entries,
            ..step(1, 1)
        }));
    }
    drop(store);
    assert_eq!(open().read(agent(1)).await.unwrap().entries.len(), 300);
}

/// Hosts write concurrently, and each of their agents keeps its order.
pub async fn hosts_take_turns(open: Open<'_>) {
    let stores: Vec<_> = (0..4).map(|_| open()).collect();
    let mut commits = Vec::new();
    for (number, store) in (1..).zip(&stores) {
        commits.push(store.commit(birth(number)));
        for seq in 0..50 {
            let entries = vec![entry(seq, EntryKind::Prompt, "mine")];
            commits.push(store.commit(Step {
                entries,
                ..step(number, 1)
            }));
        }
    }
    for commit in commits {
        assert_eq!(fate(&commit.await), "ok");
    }
    for number in 1..=4 {
        assert_eq!(
            stores[0].read(agent(number)).await.unwrap().entries.len(),
            50
        );
    }
}

/// A dropped take holds nothing.
pub async fn a_take_that_nobody_waits_for_holds_nothing(open: Open<'_>) {
    let (first, second) = (open(), open());
    first.commit(birth(1)).await.unwrap();
    first.release(agent(1), Epoch(1)).await.unwrap();
    // Queued when called, and dropped before it is answered or after that.
    for is_answered in [false, true] {
        let taking = first.take(agent(1));
        while is_answered && first.read(agent(1)).await.unwrap().record.holder.is_none() {
            tokio::task::yield_now().await;
        }
        drop(taking);
        let epoch = loop {
            match second.take(agent(1)).await {
                Ok(taken) => break taken.epoch,
                held => assert_eq!(fate(&held), "held"),
            }
        };
        if !is_answered {
            second.release(agent(1), epoch).await.unwrap();
        }
    }
    assert!(first.read(agent(1)).await.unwrap().record.holder.is_some());
    assert_eq!(fate(&first.take(agent(1)).await), "held");
}
