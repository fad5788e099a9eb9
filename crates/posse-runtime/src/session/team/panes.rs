//! A teammate between two processes: it is born here, and its pane takes it from the store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use posse_port::panes::{NewPane, Panes};
use posse_port::store::Epoch;
use posse_protocol::{AgentId, Event, EventKind};

use crate::live::lookup;
use crate::live::session::Session;
use crate::session::factory::Factory;
use crate::session::revive;
use crate::supervise::AliveGuard;

/// How long the process in a pane has to take its member, and how often it is looked whether it has.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(250);

/// Opens a pane for a teammate that was born here. `place` keeps others in this process from bringing it back
/// meanwhile, since mail waits for it. If no pane opens, or nobody in it takes the member, it lives here.
pub(crate) async fn give_pane(
    factory: &Arc<Factory>,
    (pane, panes): (NewPane, &dyn Panes),
    session: &Session,
    place: Option<AliveGuard>,
) {
    let (agent, title) = (pane.member, pane.title.clone());
    // Whoever fences it now has it already.
    let _ = factory.ports.store.release(agent, Epoch(1)).await;
    if let Err(why) = panes.open(pane).await {
        let what = format!("{title} has no pane and runs in this process: {why}");
        // A front end that does not read holds up whoever starts somebody, as elsewhere.
        let _ = session
            .events
            .send(Event {
                agent,
                kind: EventKind::Warning(what),
            })
            .await;
        drop(place);
        revive::take_over(factory).await;
        return;
    }
    let (there, stop) = (Arc::downgrade(factory), factory.supervisor.branch());
    factory.supervisor.start_errand(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = expect(there, agent, place) => {}
        }
    });
}

/// Waits until another process has the member; if none comes, it is taken up here.
async fn expect(factory: Weak<Factory>, agent: AgentId, place: Option<AliveGuard>) {
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        let Some(look) = factory
            .upgrade()
            .map(|factory| factory.ports.clock.sleep(LOOK))
        else {
            return;
        };
        look.await;
        waited += LOOK;
        let Some(factory) = factory.upgrade() else {
            return;
        };
        // A store that fails is noticed by whoever commits next.
        if let Ok(Some(session)) = lookup::row(&*factory.ports.store, agent).await
            && session.holder.is_some()
        {
            return;
        }
    }
    drop(place);
    if let Some(factory) = factory.upgrade() {
        revive::take_over(&factory).await;
    }
}
