//! News for agents of this factory: who lives here is nudged, who does not is brought back; and what hosts that
//! have died held is taken up.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use posse_port::store::Wake;
use posse_protocol::AgentId;
use tokio_util::sync::CancellationToken;

use crate::live::roster;
use crate::live::wakeup::WakeReason;
use crate::session::factory::Factory;
use crate::session::revive;

/// Begins to hear of mail, once.
pub(crate) fn start(factory: &Arc<Factory>) {
    factory.dispatching.get_or_init(|| {
        let ended = factory.supervisor.branch();
        let dispatcher = dispatch(Arc::downgrade(factory), ended.clone());
        factory.supervisor.start_errand(dispatcher);
        ended.drop_guard()
    });
}

/// Waits for news until the factory is gone.
async fn dispatch(factory: Weak<Factory>, ended: CancellationToken) {
    let Some(store) = factory
        .upgrade()
        .map(|factory| Arc::clone(&factory.ports.store))
    else {
        return;
    };
    loop {
        let woken = tokio::select! {
            () = ended.cancelled() => return,
            woken = store.woken() => woken,
        };
        // A store that fails is noticed by whoever commits next.
        let (Ok(wakes), Some(factory)) = (woken, factory.upgrade()) else {
            return;
        };
        for wake in wakes {
            match wake {
                Wake::Mail(agent) => mail_for(&factory, agent),
                Wake::Tasks(list) => {
                    let there = Arc::clone(&factory);
                    // A store that fails is noticed by whoever commits next.
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
                Wake::Fenced => factory.fenced.store(true, Ordering::Release),
            }
        }
    }
}

/// Mail waits for an agent.
pub(crate) fn mail_for(factory: &Arc<Factory>, agent: AgentId) {
    if !factory.registry.wake(agent, WakeReason::Mail) {
        let there = Arc::clone(factory);
        factory
            .supervisor
            .start_errand(async move { revive::revive(&there, agent).await });
    }
}
