//! News for agents of this house: who lives here is nudged, who does not is brought back; and what hosts that
//! have died held is taken up.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use posse_protocol::AgentId;
use tokio_util::sync::CancellationToken;

use crate::live::registry::House;
use crate::live::wakeup::About;
use posse_port::store::Wake;

/// Waits for news until the house is gone.
pub(crate) async fn dispatch(house: Weak<House>, ended: CancellationToken) {
    let Some(store) = house.upgrade().map(|house| Arc::clone(&house.ports.store)) else {
        return;
    };
    loop {
        let woken = tokio::select! {
            () = ended.cancelled() => return,
            woken = store.woken() => woken,
        };
        // A store that fails is noticed by whoever commits next.
        let (Ok(wakes), Some(house)) = (woken, house.upgrade()) else {
            return;
        };
        for wake in wakes {
            match wake {
                Wake::Mail(agent) => house.mail_for(agent),
                Wake::Tasks(list) => {
                    let there = Arc::clone(&house);
                    // A store that fails is noticed by whoever commits next.
                    house
                        .supervisor
                        .start_errand(async move { drop(there.tasks_for(list).await) });
                }
                Wake::Died(_) => {
                    let there = Arc::clone(&house);
                    house
                        .supervisor
                        .start_errand(async move { there.take_over().await });
                }
                Wake::Fenced => house.fenced.store(true, Ordering::Release),
            }
        }
    }
}

impl House {
    /// Mail waits for an agent.
    pub(crate) fn mail_for(self: &Arc<Self>, agent: AgentId) {
        if !self.nudge(agent, About::Mail) {
            let house = Arc::clone(self);
            self.supervisor
                .start_errand(async move { house.revive(agent).await });
        }
    }
}
