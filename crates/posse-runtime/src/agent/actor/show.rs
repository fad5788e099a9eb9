//! What viewers are told beside events: what the agent does, and what it has used. Nothing is worked
//! out while nobody watches.

use std::sync::atomic::Ordering;

use posse_protocol::{Activity, Detail, EventKind, SpendingUpdate, WaitReason};

use crate::agent::actor::Actor;
use crate::agent::actor::work::{LastShown, ModelWork, Work};
use crate::agent::step::prompts;

/// Tells viewers what has changed since they were told last.
pub(super) fn show_changes(actor: &Actor, work: &mut Work) {
    if !actor.sink.audience.wants(Detail::News) {
        work.shown = LastShown::default();
        return;
    }
    let activity = activity(actor, work);
    if work.shown.activity.replace(activity) != Some(activity) {
        actor.sink.audience.show(&EventKind::State(activity));
    }
    let waiting: Vec<_> = prompts::waiting(&actor.machine)
        .into_iter()
        .chain(work.skills.queued())
        .collect();
    if work.shown.queue != waiting {
        actor.sink.audience.show(&EventKind::Queue(waiting.clone()));
        work.shown.queue = waiting;
    }
    let spending = spending(actor);
    if work.shown.spending.as_ref() != Some(&spending) {
        let event = EventKind::Spending(Box::new(spending.clone()));
        actor.sink.audience.show(&event);
        work.shown.spending = Some(spending);
    }
}

/// Tells viewers everything again, since there is a new one, with the calls that run and the
/// questions that are open.
pub(super) fn introduce(actor: &Actor, work: &mut Work) {
    work.shown = LastShown::default();
    show_changes(actor, work);
    let open = actor.machine.open_calls();
    for event in open.into_iter().flat_map(|calls| calls.in_progress()) {
        actor.sink.audience.show(&event);
    }
}

fn activity(actor: &Actor, work: &Work) -> Activity {
    match &work.model {
        ModelWork::Queued { why, .. } => return Activity::Waiting(*why),
        _ if actor.sink.waits.load(Ordering::Acquire) => {
            return Activity::Waiting(WaitReason::Rate);
        }
        _ => {}
    }
    actor.machine.activity()
}

fn spending(actor: &Actor) -> SpendingUpdate {
    let account = &actor.spending.account;
    SpendingUpdate {
        own: account.own(),
        subtree: account.subtree(),
        left: account.left(),
        context_tokens: actor.prefix.last_request.tokens,
        context_window: actor.ports.model.window_of(&actor.spending.model),
    }
}
