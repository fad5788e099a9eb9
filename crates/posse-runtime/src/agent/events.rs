//! Events for the front end. What is durable waits for room in the channel. Parts of a reply that
//! is arriving are joined while there is none, so that a slow reader delays nothing and misses
//! nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_protocol::{AgentId, Delta, Event, EventKind, Fault, Retry};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use crate::agent::call_cost::CallReservation;
use crate::govern::{CacheWarmup, WarmupLead};
use posse_port::model::{Attribution, Body, Call, Failure, Model, ModelEvent, Reply};

/// Number of events that may wait for the front end.
pub(crate) const EVENTS: usize = 256;

/// Sends an agent's events.
#[derive(Clone)]
pub(crate) struct EventSink {
    /// Agent whose events they are.
    pub(crate) agent: AgentId,
    /// Channel of the session.
    pub(crate) events: mpsc::Sender<Event>,
    /// Fires when the agent must stop: then nobody is waited for.
    pub(crate) stop: CancellationToken,
    /// True for a sub-agent: of those only events that concern others are sent.
    pub(crate) below: bool,
}

impl EventSink {
    /// Sends an event once there is room. Dropped if nobody listens.
    pub(crate) async fn emit(&self, kind: EventKind) {
        if self.below && !concerns_others(&kind) {
            return;
        }
        let event = Event {
            agent: self.agent,
            kind,
        };
        tokio::select! {
            // Room first: while the agent stops, its last events are still sent if the reader keeps
            // up.
            biased;
            room = self.events.reserve() => {
                if let Ok(room) = room {
                    room.send(event);
                }
            }
            () = self.stop.cancelled() => drop(event),
        }
    }
}

/// Returns true for events of sub-agents that people or other agents act on.
fn concerns_others(kind: &EventKind) -> bool {
    use EventKind::{ApprovalRequested, ApprovalWithdrawn, Denied, Member, Run, Warning};
    matches!(
        kind,
        Run(_)
            | Member(_)
            | ApprovalRequested(_)
            | ApprovalWithdrawn { .. }
            | Denied(_)
            | Warning(_)
    )
}

/// Forwards a reply while it arrives.
pub(crate) struct ReplyStream {
    sink: EventSink,
    call_reservation: CallReservation,
    warming: WarmupOutcome,
    /// Events for which there was no room yet.
    waiting: VecDeque<EventKind>,
}

impl ReplyStream {
    pub(crate) fn new(
        sink: EventSink,
        call_reservation: CallReservation,
        warming: WarmupOutcome,
    ) -> Self {
        Self {
            sink,
            call_reservation,
            warming,
            waiting: VecDeque::new(),
        }
    }

    /// Returns the reservation, to be settled.
    pub(crate) fn call_reservation(self) -> CallReservation {
        self.call_reservation
    }

    /// Makes a call and sends what arrives. Parts that arrive together are sent together.
    pub(crate) async fn follow(
        &mut self,
        model: &dyn Model,
        body: Body,
        attribution: &Attribution,
        cancel: &CancellationToken,
    ) -> Result<Reply, Failure> {
        // A mutex, because the callback and the poll below both need it; they never run at the same
        // time.
        let arriving = Mutex::new(self);
        let held = || arriving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut on = |event: ModelEvent<'_>| held().on(event);
        let mut calling = model.call(Call {
            body,
            attribution,
            cancel,
            on: &mut on,
        });
        let result = poll_fn(|context| {
            let polled = calling.as_mut().poll(context);
            // After each poll, not in the callback: all that one poll brought is joined first.
            held().tell();
            polled
        })
        .await;
        drop(calling);
        arriving
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .finish()
            .await;
        result
    }

    /// Takes an event of the model port.
    fn on(&mut self, event: ModelEvent<'_>) {
        self.warming.on(event);
        // Nobody sees a sub-agent's reply arrive, but its retries must be paid for.
        if self.sink.below && !matches!(event, ModelEvent::Retry { .. }) {
            return;
        }
        if let ModelEvent::Retry { .. } = event {
            self.call_reservation.retried();
            // The text of a failed attempt is void. What was not sent yet is dropped; front ends
            // discard the rest when they see the retry.
            self.waiting
                .retain(|kind| matches!(kind, EventKind::Retry(_)));
        }
        match (self.waiting.back_mut(), &event) {
            (Some(EventKind::Delta(Delta::Text(text))), ModelEvent::Text(more))
            | (Some(EventKind::Delta(Delta::Thinking(text))), ModelEvent::Thinking(more))
            | (Some(EventKind::Delta(Delta::ToolInput(text))), ModelEvent::ToolInput(more)) => {
                text.push_str(more)
            }
            _ => self.waiting.push_back(told(event)),
        }
    }

    /// Sends as much as there is room for. Never blocks.
    fn tell(&mut self) {
        while let Some(kind) = self.waiting.pop_front() {
            match self.sink.events.try_reserve() {
                Ok(_) if self.sink.below => {}
                Ok(room) => room.send(Event {
                    agent: self.sink.agent,
                    kind,
                }),
                Err(TrySendError::Full(())) => return self.waiting.push_front(kind),
                // The front end has gone.
                Err(TrySendError::Closed(())) => self.waiting.clear(),
            }
        }
    }

    /// Sends the rest, waiting for room.
    async fn finish(&mut self) {
        for kind in std::mem::take(&mut self.waiting) {
            self.sink.emit(kind).await;
        }
    }
}

/// Tells siblings whose requests begin with the same bytes how the call goes.
pub(crate) struct WarmupOutcome {
    /// The warm-up that they share.
    pub(crate) warmup: Option<Arc<CacheWarmup>>,
    /// Set if they wait for this reply.
    pub(crate) lead: Option<WarmupLead>,
    /// Time when the request was sent, which is when the cache was used.
    pub(crate) sent: Duration,
}

impl WarmupOutcome {
    /// Lets them continue when the reply begins. If the attempt fails, another of them leads.
    fn on(&mut self, event: ModelEvent<'_>) {
        match (event, &self.warmup) {
            (ModelEvent::Started { .. }, Some(warmup)) => warmup.begun(self.sent),
            (ModelEvent::Retry { .. }, _) => {}
            _ => return,
        }
        self.lead = None;
    }
}

/// Returns the event for front ends.
fn told(event: ModelEvent<'_>) -> EventKind {
    EventKind::Delta(match event {
        ModelEvent::Started { model } => Delta::Started {
            model: model.to_owned(),
        },
        ModelEvent::Text(text) => Delta::Text(text.to_owned()),
        ModelEvent::Thinking(text) => Delta::Thinking(text.to_owned()),
        ModelEvent::ToolUse { id, name } => Delta::ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
        },
        ModelEvent::ToolInput(text) => Delta::ToolInput(text.to_owned()),
        ModelEvent::BlockDone => Delta::BlockDone,
        ModelEvent::Retry {
            attempt,
            wait,
            error,
        } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            return EventKind::Retry(Retry {
                attempt,
                wait_ms,
                fault: Fault::from(error),
            });
        }
    })
}
