//! Members that another process takes up: how many.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use posse_runtime::{Hosted, Hosting, Members};
use posse_testkit::{Faulty, StoreCall};
use tokio::sync::Notify;

use super::life::plan;
use super::tasks::{WORKERS, raised};
use super::*;

/// Holds up the first agent that is taken, and counts how often teams are read.
#[derive(Default)]
struct Gate {
    looks: AtomicUsize,
    closed: AtomicBool,
    reached: Notify,
    open: Notify,
}

impl Gate {
    async fn pass(self: Arc<Self>, call: StoreCall) {
        match call {
            StoreCall::Teams => drop(self.looks.fetch_add(1, Ordering::SeqCst)),
            StoreCall::Take if self.closed.swap(false, Ordering::SeqCst) => {
                self.reached.notify_one();
                self.open.notified().await;
            }
            StoreCall::Take => {}
        }
    }
}

// proves TE-10 (open: several machines)
#[tokio::test]
async fn a_host_that_hears_of_a_death_while_it_takes_members_stays_within_its_limit() {
    let mut rig = rig(WORKERS);
    let mut agent = raised(&rig, plan(&["bow", "cook", "dev", "mate"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    let gate = Arc::new(Gate {
        closed: true.into(),
        ..Gate::default()
    });
    let before = Arc::clone(&gate);
    rig.store = Arc::new(Faulty {
        before: Box::new(move |call| Box::pin(Arc::clone(&before).pass(call))),
        ..Faulty::new(Arc::clone(&rig.store))
    });
    let runtime = rig.another().unwrap();
    let hosting = Hosting {
        session: root,
        members: Members::Free { most: Some(2) },
    };
    let mut hosting = pin!(runtime.host(hosting, rig.setup.clone()));
    tokio::select! {
        _ = &mut hosting => panic!("it takes nobody before the gate is open"),
        () = gate.reached.notified() => {}
    }
    // What the dispatcher does when a process dies. If it does not wait for the first look, it ends
    // before that.
    let looks = gate.looks.load(Ordering::SeqCst);
    let mut again = pin!(runtime.take_up_free());
    let mut ended = poll_fn(|context| Poll::Ready(again.as_mut().poll(context).is_ready())).await;
    if !ended && gate.looks.load(Ordering::SeqCst) > looks {
        again.as_mut().await;
        ended = true;
    }
    gate.open.notify_one();
    let hosted = hosting.await.unwrap();
    if !ended {
        again.await;
    }
    assert_eq!(hosted.agents.len(), 2, "all that it has are named");
    assert_eq!(runtime.members_here(root), 2, "and it has no more");
    until_given_up(hosted).await;
}

/// Gives up what a process hosts, and waits until it is free.
async fn until_given_up(hosted: Hosted) {
    let Hosted {
        handle, mut events, ..
    } = hosted;
    drop(handle);
    while events.recv().await.is_some() {}
}
