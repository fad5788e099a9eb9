//! The way out: events to a front end. What is durable waits for room; a reply that is arriving is
//! drawn together while there is none, so that a slow reader slows nothing down and misses nothing.

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

/// Events that may wait for the front end.
pub(crate) const EVENTS: usize = 256;

/// Where an agent's events go.
#[derive(Clone)]
pub(crate) struct EventSink {
    pub(crate) agent: AgentId,
    pub(crate) events: mpsc::Sender<Event>,
    /// Fires when everything must stop: then nobody is waited for.
    pub(crate) stop: CancellationToken,
    /// Whether it is a sub-agent: of those only what concerns others is told.
    pub(crate) below: bool,
}

impl EventSink {
    /// Tells of something, once there is room. With nobody listening it is told to nobody.
    pub(crate) async fn emit(&self, kind: EventKind) {
        if self.below && !concerns_others(&kind) {
            return;
        }
        let event = Event {
            agent: self.agent,
            kind,
        };
        tokio::select! {
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

/// A reply that is arriving.
pub(crate) struct ReplyStream {
    sink: EventSink,
    call_reservation: CallReservation,
    warming: WarmupOutcome,
    /// What there was no room for yet.
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

    /// What is set aside for it.
    pub(crate) fn call_reservation(self) -> CallReservation {
        self.call_reservation
    }

    /// Makes a call and tells of what arrives: what comes together is told together.
    pub(crate) async fn follow(
        &mut self,
        model: &dyn Model,
        body: Body,
        attribution: &Attribution,
        cancel: &CancellationToken,
    ) -> Result<Reply, Failure> {
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

    /// Takes what the model port tells.
    fn on(&mut self, event: ModelEvent<'_>) {
        self.warming.on(event);
        if self.sink.below && !matches!(event, ModelEvent::Retry { .. }) {
            return;
        }
        if let ModelEvent::Retry { .. } = event {
            self.call_reservation.retried();
            // What the failed attempt said is void; whoever has not heard of it need not.
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

    /// Tells as much as there is room for. Never blocks.
    fn tell(&mut self) {
        while let Some(kind) = self.waiting.pop_front() {
            match self.sink.events.try_reserve() {
                Ok(_) if self.sink.below => {}
                Ok(room) => room.send(Event {
                    agent: self.sink.agent,
                    kind,
                }),
                Err(TrySendError::Full(())) => return self.waiting.push_front(kind),
                // Nobody listens any more.
                Err(TrySendError::Closed(())) => self.waiting.clear(),
            }
        }
    }

    /// Tells the rest.
    async fn finish(&mut self) {
        for kind in std::mem::take(&mut self.waiting) {
            self.sink.emit(kind).await;
        }
    }
}

/// Siblings whose requests begin like the one that is being answered.
pub(crate) struct WarmupOutcome {
    pub(crate) warmup: Option<Arc<CacheWarmup>>,
    /// If they wait for this very reply.
    pub(crate) lead: Option<WarmupLead>,
    /// When the request was sent: so long ago the cache was used, at most.
    pub(crate) sent: Duration,
}

impl WarmupOutcome {
    /// They go on when the reply begins; if the attempt fails, another of them tries it meanwhile.
    fn on(&mut self, event: ModelEvent<'_>) {
        match (event, &self.warmup) {
            (ModelEvent::Started { .. }, Some(warmup)) => warmup.begun(self.sent),
            (ModelEvent::Retry { .. }, _) => {}
            _ => return,
        }
        self.lead = None;
    }
}

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
