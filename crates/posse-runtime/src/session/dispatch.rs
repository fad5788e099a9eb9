//! Delivers the store's wake-ups: agents that live here are woken, others are revived, and what
//! dead hosts held is taken up.
//!
//! A wake-up is only a hint: the mail itself is durable, and the store's sweep finds what a lost
//! wake-up should have told.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use posse_port::store::Wake;
use posse_protocol::AgentId;
use tokio_util::sync::CancellationToken;

use crate::live::roster;
use crate::live::wakeup::WakeReason;
use crate::session::factory::Factory;
use crate::session::revive;

/// Starts the dispatcher, once per factory.
pub(crate) fn start(factory: &Arc<Factory>) {
    factory.dispatching.get_or_init(|| {
        let ended = factory.supervisor.branch();
        let dispatcher = dispatch(Arc::downgrade(factory), ended.clone());
        factory.supervisor.start_errand(dispatcher);
        // Kept in the factory: the dispatcher ends when the factory is dropped.
        ended.drop_guard()
    });
}

/// Waits for wake-ups until the factory is gone.
async fn dispatch(factory: Weak<Factory>, ended: CancellationToken) {
    let Some(store) = factory
        .upgrade()
        .map(|factory| Arc::clone(&factory.ports.store))
    else {
        return;
    };
    // The factory is held weakly while waiting; otherwise its own task would keep it alive for
    // ever.
    loop {
        let woken = tokio::select! {
            () = ended.cancelled() => return,
            woken = store.woken() => woken,
        };
        // The error is dropped: the next commit meets the same failure and reports it.
        let (Ok(wakes), Some(factory)) = (woken, factory.upgrade()) else {
            return;
        };
        for wake in wakes {
            match wake {
                Wake::Mail(agent) => mail_for(&factory, agent),
                Wake::Tasks(list) => {
                    let there = Arc::clone(&factory);
                    // On a task of its own, because the next wake-up must not wait for these
                    // queries. The error is dropped: the next commit reports it.
                    factory.supervisor.start_errand(async move {
                        drop(roster::tasks_for(&there.registry, &*there.ports.store, list).await)
                    });
                }
                Wake::Died(_) => {
                    let there = Arc::clone(&factory);
                    factory
                        .supervisor
                        .start_errand(async move { revive::take_over(&there).await });
                }
                // Only a flag: the store refuses every write of a fenced process by itself.
                Wake::Fenced => factory.fenced.store(true, Ordering::Release),
            }
        }
    }
}

/// Wakes an agent for which mail waits, or revives it if it does not live here.
pub(crate) fn mail_for(factory: &Arc<Factory>, agent: AgentId) {
    if !factory.registry.wake(agent, WakeReason::Mail) {
        let there = Arc::clone(factory);
        factory
            .supervisor
            .start_errand(async move { revive::revive(&there, agent).await });
    }
}
