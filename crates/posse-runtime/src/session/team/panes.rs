//! Hands a teammate over to the process in its pane: it is created here, and the pane's process
//! takes it from the store.

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

/// Time that the process in a pane has to take its member.
const PATIENCE: Duration = Duration::from_secs(15);
/// Interval at which the store is asked whether it has.
const LOOK: Duration = Duration::from_millis(250);

/// Opens a pane for a teammate that was created here. `place` keeps this process from reviving the
/// teammate meanwhile, because mail waits for it. If no pane opens, or nobody in it takes the
/// member, it runs here.
pub(crate) async fn give_pane(
    factory: &Arc<Factory>,
    (pane, panes): (NewPane, &dyn Panes),
    session: &Session,
    place: Option<AliveGuard>,
) {
    let (agent, title) = (pane.member, pane.title.clone());
    // The error is dropped: it means that another process has taken the member already.
    let _ = factory.ports.store.release(agent, Epoch(1)).await;
    if let Err(why) = panes.open(pane).await {
        let what = format!("{title} has no pane and runs in this process: {why}");
        // Waits for a slow front end, as every start does.
        session
            .events
            .send(Event {
                agent,
                kind: EventKind::Warning(what),
            })
            .await;
        // Dropped first: while the guard lives, taking the member up here would be refused.
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

/// Waits until another process has the member; if none takes it, it is taken up here.
async fn expect(factory: Weak<Factory>, agent: AgentId, place: Option<AliveGuard>) {
    let mut waited = Duration::ZERO;
    // The factory is held weakly between looks, so that waiting does not keep it alive.
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
        // The error is dropped: the next commit meets the same failure and reports it.
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
