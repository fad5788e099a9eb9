//! Mail that comes for agents of this house: who lives here is nudged, who does not is brought back.

use std::sync::{Arc, Weak};

use posse_protocol::AgentId;
use tokio_util::sync::CancellationToken;

use super::house::House;
use super::nudge::About;
use crate::port::store::Wake;

/// Waits for news until the house is gone.
pub(super) async fn dispatch(house: Weak<House>, ended: CancellationToken) {
    let Some(store) = house.upgrade().map(|house| Arc::clone(&house.ports.store)) else { return };
    loop {
        let woken = tokio::select! {
            () = ended.cancelled() => return,
            woken = store.woken() => woken,
        };
        // A store that fails is noticed by whoever commits next.
        let (Ok(wakes), Some(house)) = (woken, house.upgrade()) else { return };
        for wake in wakes {
            if let Wake::Mail(agent) = wake {
                house.mail_for(agent);
            }
        }
    }
}

impl House {
    /// Mail waits for an agent.
    pub(crate) fn mail_for(self: &Arc<Self>, agent: AgentId) {
        if !self.nudge(agent, About::Mail) {
            let house = Arc::clone(self);
            self.supervisor.start_errand(async move { house.revive(agent).await });
        }
    }
}
