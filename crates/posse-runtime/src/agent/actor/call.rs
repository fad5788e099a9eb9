//! A model call: admitted, paid for, made.

use std::sync::Arc;
use std::time::Duration;

use posse_port::Ports;
use posse_port::model::{Failure, ModelError, Reply, Request, Ttl};
use posse_port::store::{AgentState, Charge, NewEntry, StoreError};
use posse_protocol::{ContentBlock, EntryKind, Purpose, WaitReason};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::work::{Admission, ModelReturn, ModelWork, Work};
use crate::agent::actor::{Actor, compact, standing, wall_ms};
use crate::agent::call_cost;
use crate::agent::call_cost::{CallReservation, NextCall};
use crate::agent::events::{AgentCall, ReplyStream, WarmupOutcome};
use crate::agent::step::{CompactionRequest, Input};
use crate::definition::tool_name::meant;
use crate::govern::{Priority, Ticket, WarmupLead};
use crate::history::request_size;
use crate::history::request_size::RequestSize;

/// Time that an agent waits for its sibling's reply to begin: one that hangs must not hold up the
/// others.
const PATIENCE: Duration = Duration::from_secs(15);

/// Takes a run permit, if one is free and the agent need not wait for its siblings.
pub(super) fn try_take_permit(actor: &mut Actor, work: &mut Work) {
    let entry = enter(actor);
    actor.spending.permit = match entry {
        Ticket::Go(_) => actor.session.slots.try_take(),
        Ticket::Wait(_) => None,
    };
    // Kept until the model is called: entering twice would take two turns in the queue.
    work.entry = Some(entry);
}

/// Asks whether the bytes that it shares with its siblings are cached. Only the first call asks; it
/// writes them if they are not.
pub(super) fn enter(actor: &Actor) -> Ticket {
    match actor
        .spending
        .warmup
        .as_ref()
        .filter(|_| !actor.prefix.last_request.begun)
    {
        Some(warmup) => warmup.enter(actor.ports.clock.now()),
        None => Ticket::Go(None),
    }
}

/// Calls the model as soon as there is a permit.
pub(super) async fn admit(actor: &mut Actor, work: &mut Work) {
    match work.entry.take().unwrap_or(Ticket::Go(None)) {
        Ticket::Go(lead) if !needs_permit(actor) => call_model(actor, lead, work).await,
        entry => line_up(actor, entry, work),
    }
}

/// Waits for its siblings without a permit, and then for a permit.
pub(super) fn line_up(actor: &mut Actor, entry: Ticket, work: &mut Work) {
    // A permit held while waiting would keep the sibling that it waits for from calling.
    actor.spending.permit = None;
    let parent = actor.role.sub_agent().map(|sub| sub.parent);
    let coming = if actor.prefix.last_request.begun {
        Priority::Resuming
    } else {
        Priority::New
    };
    let (slots, patience) = (
        actor.session.slots.clone(),
        actor.ports.clock.sleep(PATIENCE),
    );
    let admission = Box::pin(async move {
        let (lead, impatient) = tokio::select! {
            // The lead first: if both are ready, there is no reason to call without the cache.
            biased;
            lead = entry.passed() => (lead, false),
            () = patience => (None, true),
        };
        let place = match parent {
            Some(parent) => Some(slots.take(parent, coming).await),
            None => None,
        };
        Admission {
            place,
            lead,
            impatient,
        }
    });
    work.model = ModelWork::Queued {
        why: WaitReason::Place,
        admission,
    };
}

/// Returns true if it needs a permit to call the model. A main agent needs none, because a person
/// waits for it.
pub(super) fn needs_permit(actor: &Actor) -> bool {
    !actor.role.is_main() && actor.spending.permit.is_none()
}

/// Calls the model now that there is a permit, or that money may be free.
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
    actor.spending.permit = place;
    let entry = if lead.is_some() || impatient {
        Ticket::Go(lead)
    } else {
        enter(actor)
    };
    let lead = match entry {
        Ticket::Go(lead) => lead,
        // It waited so long for a permit that the cache has forgotten, and a sibling is writing
        // already.
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

/// Returns the state in which it waits for a permit.
pub(super) fn queued_state(actor: &Actor) -> AgentState {
    if !actor.prefix.last_request.begun {
        AgentState::Created
    } else {
        AgentState::Waiting
    }
}

/// Reserves the call's worst case and makes the call; compacts first if the history is too large.
pub(super) async fn call_model(actor: &mut Actor, lead: Option<WarmupLead>, work: &mut Work) {
    let crowded = || {
        compact::is_crowded(actor).then(|| CompactionRequest {
            auto: true,
            ..CompactionRequest::default()
        })
    };
    if let Some(compaction_request) = work.compaction_request.take().or_else(crowded) {
        return compact::start(actor, compaction_request, work).await;
    }
    let size = request_size::of_history(&actor.prefix.preamble, &actor.prefix.history);
    // Asked for before the reservation: what is freed between a refusal and the wait would be
    // missed.
    let freed = actor.spending.account.freed();
    let at_ms = wall_ms(&*actor.ports.clock);
    let ttl = actor.prefix.cache_ttl.ttl(at_ms);
    let max_tokens = actor.setup.limits.max_tokens;
    let next = NextCall {
        model: &actor.spending.model,
        input: actor.prefix.last_request.input(size),
        ttl,
        // No more than the store knows to be reserved.
        max_tokens: actor
            .spending
            .output_cap
            .map_or(max_tokens, |cap| cap.min(max_tokens)),
    };
    let reservation = match next.reserve(&actor.ports, &actor.spending.account) {
        Ok(reservation) => reservation,
        Err(exceeded) if exceeded.may_pass() => {
            // Calls in progress have reserved more than they will use: once they are settled there
            // may be enough.
            let place = actor.spending.permit.take();
            let admission = Box::pin(async move {
                freed.await;
                // The lead is dropped: a sibling that can pay leads meanwhile.
                Admission {
                    place,
                    lead: None,
                    impatient: false,
                }
            });
            work.model = ModelWork::Queued {
                why: WaitReason::Budget,
                admission,
            };
            return;
        }
        Err(exceeded) => {
            let (why, charges) = (exceeded.to_string(), Vec::new());
            return work.inputs.push_back(Input::Refused { why, charges });
        }
    };
    work.cancel_model = CancellationToken::new();
    let body = request(actor, reservation.output, ttl);
    let warmup = actor.spending.warmup.as_ref();
    let warm = warmup.is_some_and(|warmup| warmup.is_warm(actor.ports.clock.now()));
    // Set when the call is made, not when it succeeds: a retry must not wait for siblings again.
    actor.prefix.last_request.begun = true;
    let Ports { model, clock, .. } = actor.ports.clone();
    let (attribution, cancel) = (
        Arc::clone(&actor.prefix.attribution),
        work.cancel_model.clone(),
    );
    let warming = WarmupOutcome {
        warmup: actor.spending.warmup.clone(),
        lead,
        sent: clock.now(),
        clock: Arc::clone(&clock),
    };
    let (standing, called) = (standing::of(actor, warm), actor.spending.model.clone());
    let mut arriving = ReplyStream::new(
        actor.sink.clone(),
        CallReservation::new(reservation, cancel.clone()),
        warming,
    );
    work.model = ModelWork::Calling(Box::pin(async move {
        let start = clock.now();
        let call = AgentCall {
            body,
            model: &called,
            standing: &standing,
            attribution: &attribution,
            cancel: &cancel,
        };
        let result = arriving.follow(&*model, call).await;
        // It may have waited for the account: what counts is when it was sent.
        let waited = arriving.sent().saturating_sub(start);
        ModelReturn {
            result,
            at_ms: at_ms.saturating_add(waited.as_millis() as i64),
            size,
            took: clock.now().saturating_sub(start),
            call_reservation: arriving.call_reservation(),
        }
    }));
}

/// Returns the worst case of the call that follows when `entries` are committed, and the cap on its
/// output; `None` if a budget does not allow the call.
pub(super) fn worst_case(actor: &Actor, entries: &[NewEntry]) -> Option<(Charge, u32)> {
    let compaction = entries
        .iter()
        .rposition(|entry| entry.kind == EntryKind::Compaction);
    // What a compaction replaces is not sent.
    let history = &actor.prefix.history;
    let (before, loaded, entries) = match compaction {
        Some(at) => (&[][..], 0, &entries[at..]),
        None => (history.encoded_entries(), history.loaded().size(), entries),
    };
    let is_model = |entry: &&NewEntry| entry.kind == EntryKind::Model;
    let sent = entries.iter().filter(|entry| !is_model(entry));
    let encoded = sent.flat_map(request_size::parts);
    let switch = actor.prefix.switch.as_deref();
    let (preamble, model, last_request) =
        match switch.filter(|_| entries.iter().any(|entry| is_model(&entry))) {
            Some(switch) => (
                &switch.preamble,
                &switch.choice.model,
                RequestSize::default(),
            ),
            None => (
                &actor.prefix.preamble,
                &actor.spending.model,
                actor.prefix.last_request,
            ),
        };
    let size = request_size::size(preamble, before.iter().chain(encoded)) + loaded;
    let at_ms = wall_ms(&*actor.ports.clock);
    let next = NextCall {
        model,
        input: last_request.input(size),
        ttl: actor.prefix.cache_ttl.ttl(at_ms),
        max_tokens: actor.setup.limits.max_tokens,
    };
    next.worst_case(&actor.ports, &actor.spending.account)
}

/// Returns the bytes of a request: all of them were encoded before.
pub(super) fn request(actor: &Actor, max_tokens: u32, ttl: Ttl) -> posse_port::model::Body {
    actor.ports.model.body(&Request {
        preamble: &actor.prefix.preamble,
        loaded: actor.prefix.history.loaded().encoded(),
        entries: actor.prefix.history.encoded_entries(),
        marks: &actor.prefix.history.marks(ttl),
        max_tokens,
        previous: actor.prefix.previous_reply.as_deref(),
    })
}

/// Cancels the call, or the waiting for it.
pub(super) fn abort(_actor: &mut Actor, work: &mut Work) {
    work.cancel_model.cancel();
    work.compaction_request = None;
    // What waits in the queue has no call that could report the cancellation.
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

/// Settles a call and returns its reply, or its failure, as an input.
pub(super) fn on_reply(actor: &mut Actor, called: ModelReturn, work: &mut Work) -> Input {
    let ModelReturn {
        result,
        at_ms,
        size,
        took,
        mut call_reservation,
    } = called;
    work.time.api += took;
    let mut charges = call_cost::charges(
        &*actor.ports.prices,
        &actor.spending.model,
        Purpose::Work,
        &result,
    );
    let miss = |reply: &Reply| {
        actor
            .prefix
            .cache_ttl
            .called(at_ms, &reply.usage, reply.cache_miss.as_ref())
    };
    let missed = result.as_ref().ok().and_then(miss);
    if let Some(missed) = &missed {
        call_reservation.miss(&actor.prefix.attribution, missed, &mut charges);
    }
    let (capped, broke) = (
        call_reservation.output() < actor.setup.limits.max_tokens,
        call_reservation.broke(),
    );
    // Also after a failure: attempts that failed may have to be paid for.
    call_reservation.settle(&charges);
    match result {
        Ok(reply) => {
            let tokens = reply.usage.prompt().saturating_add(reply.usage.output);
            actor.prefix.last_request = RequestSize {
                tokens,
                bytes: size,
                begun: true,
            };
            actor.prefix.compaction_failed = false;
            // Worked out here, because the decision is pure and may not look at files.
            let intents = reply.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse { name, input, .. } => {
                    let (tool, input) = meant(name, input);
                    Some(actor.intent(&tool, &input))
                }
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
