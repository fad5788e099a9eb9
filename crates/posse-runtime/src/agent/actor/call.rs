//! A model call: admitted, paid for, made.

use std::sync::Arc;
use std::time::Duration;

use posse_port::Ports;
use posse_port::model::{Failure, ModelError, Reply, Request, Ttl};
use posse_port::store::{AgentState, StoreError};
use posse_protocol::{ContentBlock, Purpose};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::work::{Admission, Called, ModelWork, Work};
use crate::agent::actor::{Actor, compact, wall_ms};
use crate::agent::call_cost;
use crate::agent::call_cost::Fare;
use crate::agent::events::{Arriving, Warming};
use crate::agent::step::{Input, Squeeze};
use crate::govern::{Coming, Entry, Lead};
use crate::history::request_size;
use crate::history::request_size::Paid;

/// How long an agent waits for its sibling's reply to begin: one that hangs must not hold up all others.
const PATIENCE: Duration = Duration::from_secs(15);

/// Takes a place to call the model from, if there is one and it need not wait for its siblings.
pub(super) fn try_take_place(actor: &mut Actor, work: &mut Work) {
    let entry = enter(actor);
    actor.spending.place = match entry {
        Entry::Go(_) => actor.tree.places.try_take(),
        Entry::Wait(_) => None,
    };
    work.entry = Some(entry);
}

/// Asks whether what it shares with its siblings can be read: before its first call only, which writes
/// it if not.
pub(super) fn enter(actor: &Actor) -> Entry {
    match actor
        .spending
        .warmth
        .as_ref()
        .filter(|_| !actor.prefix.paid.begun)
    {
        Some(warmth) => warmth.enter(actor.ports.clock.now()),
        None => Entry::Go(None),
    }
}

/// Calls the model as soon as there is a place to do so from.
pub(super) async fn admit(actor: &mut Actor, work: &mut Work) {
    match work.entry.take().unwrap_or(Entry::Go(None)) {
        Entry::Go(lead) if !wants_place(actor) => call_model(actor, lead, work).await,
        entry => line_up(actor, entry, work),
    }
}

/// Waits for its siblings without a place, and then for a place.
pub(super) fn line_up(actor: &mut Actor, entry: Entry, work: &mut Work) {
    actor.spending.place = None;
    let parent = actor.role.sub_agent().map(|sub| sub.parent);
    let coming = if actor.prefix.paid.begun {
        Coming::Back
    } else {
        Coming::Anew
    };
    let (places, patience) = (actor.tree.places.clone(), actor.ports.clock.sleep(PATIENCE));
    work.model = ModelWork::Queued(Box::pin(async move {
        let (lead, impatient) = tokio::select! {
            biased;
            lead = entry.passed() => (lead, false),
            () = patience => (None, true),
        };
        let place = match parent {
            Some(parent) => Some(places.take(parent, coming).await),
            None => None,
        };
        Admission {
            place,
            lead,
            impatient,
        }
    }));
}

/// Whether it needs a place to call the model from. A person waits for a root: it needs none.
pub(super) fn wants_place(actor: &Actor) -> bool {
    !actor.role.is_main() && actor.spending.place.is_none()
}

/// It has a place, or can pay again.
pub(super) async fn on_admitted(
    actor: &mut Actor,
    admission: Admission,
    work: &mut Work,
) -> Result<(), StoreError> {
    let Admission {
        place,
        lead,
        impatient,
    } = admission;
    actor.spending.place = place;
    let entry = if lead.is_some() || impatient {
        Entry::Go(lead)
    } else {
        enter(actor)
    };
    let lead = match entry {
        Entry::Go(lead) => lead,
        // It waited for so long that the cache has forgotten, and another is writing already.
        entry => {
            line_up(actor, entry, work);
            return Ok(());
        }
    };
    if std::mem::take(&mut actor.spending.told_queued) {
        actor.tell_state(AgentState::Running).await?;
    }
    call_model(actor, lead, work).await;
    Ok(())
}

/// The state in which it waits for a place.
pub(super) fn queued_state(actor: &Actor) -> AgentState {
    if !actor.prefix.paid.begun {
        AgentState::Created
    } else {
        AgentState::Waiting
    }
}

pub(super) async fn call_model(actor: &mut Actor, lead: Option<Lead>, work: &mut Work) {
    let crowded = || {
        compact::is_crowded(actor).then(|| Squeeze {
            auto: true,
            ..Squeeze::default()
        })
    };
    if let Some(squeeze) = work.squeeze.take().or_else(crowded) {
        return compact::start(actor, squeeze, work).await;
    }
    let max_tokens = actor.setup.limits.max_tokens;
    let size = request_size::size(&actor.prefix.preamble, actor.prefix.history.pieces());
    let freed = actor.spending.account.freed();
    let at_ms = wall_ms(&*actor.ports.clock);
    let (ports, input, ttl) = (
        &actor.ports,
        actor.prefix.paid.input(size),
        actor.prefix.reuse.ttl(at_ms),
    );
    let reservation = match call_cost::reserve(
        ports,
        &actor.spending.account,
        &actor.spending.model,
        (input, ttl),
        max_tokens,
    ) {
        Ok(reservation) => reservation,
        Err(exceeded) if exceeded.may_pass() => {
            // Others have set aside what they will not use: when they are done there may be enough.
            let place = actor.spending.place.take();
            work.model = ModelWork::Queued(Box::pin(async move {
                freed.await;
                // Its siblings need not wait for its money: whoever can pay leads meanwhile.
                Admission {
                    place,
                    lead: None,
                    impatient: false,
                }
            }));
            return;
        }
        Err(exceeded) => {
            let (why, charges) = (exceeded.to_string(), Vec::new());
            return work.inputs.push_back(Input::Refused { why, charges });
        }
    };
    work.cancel_model = CancellationToken::new();
    let body = request(actor, reservation.output, ttl);
    actor.prefix.paid.begun = true;
    let Ports { model, clock, .. } = actor.ports.clone();
    let (attribution, cancel) = (
        Arc::clone(&actor.prefix.attribution),
        work.cancel_model.clone(),
    );
    let warming = Warming {
        warmth: actor.spending.warmth.clone(),
        lead,
        sent: clock.now(),
    };
    let mut arriving = Arriving::new(
        actor.outlet.clone(),
        Fare::new(reservation, cancel.clone()),
        warming,
    );
    work.model = ModelWork::Calling(Box::pin(async move {
        let start = clock.now();
        let result = arriving.follow(&*model, body, &attribution, &cancel).await;
        Called {
            result,
            at_ms,
            size,
            took: clock.now().saturating_sub(start),
            fare: arriving.fare(),
        }
    }));
}

pub(super) fn request(actor: &Actor, max_tokens: u32, ttl: Ttl) -> posse_port::model::Body {
    actor.ports.model.body(&Request {
        preamble: &actor.prefix.preamble,
        entries: actor.prefix.history.pieces(),
        marks: &actor.prefix.history.marks(ttl),
        max_tokens,
        previous: actor.prefix.previous_reply.as_deref(),
    })
}

/// Ends the call, or the waiting for it.
pub(super) fn abort(_actor: &mut Actor, work: &mut Work) {
    work.cancel_model.cancel();
    work.squeeze = None;
    if work.model.leave_queue() {
        let (error, finished, spent) = (ModelError::Cancelled, Vec::new(), Vec::new());
        let failure = Box::new(Failure {
            error,
            finished,
            spent,
            attempts: 0,
        });
        work.inputs.push_back(Input::Failed {
            failure,
            charges: Vec::new(),
        });
    }
}

pub(super) fn on_reply(actor: &mut Actor, called: Called, work: &mut Work) -> Input {
    let Called {
        result,
        at_ms,
        size,
        took,
        mut fare,
    } = called;
    work.api += took;
    let mut charges = call_cost::charges(
        &*actor.ports.prices,
        &actor.spending.model,
        Purpose::Work,
        &result,
    );
    let miss = |reply: &Reply| {
        actor
            .prefix
            .reuse
            .called(at_ms, &reply.usage, reply.cache_miss.as_ref())
    };
    let missed = result.as_ref().ok().and_then(miss);
    if let Some(missed) = &missed {
        fare.miss(&actor.prefix.attribution, missed, &mut charges);
    }
    let (capped, broke) = (fare.output() < actor.setup.limits.max_tokens, fare.broke());
    fare.settle(&charges);
    match result {
        Ok(reply) => {
            let tokens = reply.usage.prompt().saturating_add(reply.usage.output);
            actor.prefix.paid = Paid {
                tokens,
                bytes: size,
                begun: true,
            };
            actor.prefix.unsqueezed = false;
            let intents = reply.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse { name, input, .. } => Some(actor.intent(name, input)),
                _ => None,
            });
            let intents = intents.collect();
            actor.prefix.previous_reply = Some(reply.id.clone());
            Input::Reply {
                reply: Box::new(reply),
                charges,
                intents,
                capped,
                missed,
            }
        }
        Err(failure) => match broke {
            Some(why) => Input::Refused { why, charges },
            None => Input::Failed {
                failure: Box::new(failure),
                charges,
            },
        },
    }
}
