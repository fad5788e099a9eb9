//! Events for the front end and for viewers. What is durable waits for room at the front end. Parts
//! of a reply that is arriving are joined while there is none, so that a slow front end delays
//! nothing and misses nothing. Viewers are never waited for.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_protocol::{
    Activity, AgentId, Delta, Detail, Event, EventKind, Fault, Retry, WaitReason,
};
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use crate::agent::call_cost::CallReservation;
use crate::govern::{CacheWarmup, WarmupLead};
use crate::live::session_events::SessionEvents;
use crate::live::viewers::Audience;
use posse_port::clock::Clock;
use posse_port::model::{Attribution, Body, Call, Failure, Model, ModelEvent, Reply, Standing};
use posse_port::tool::{LiveOutput, OutputViewers};

/// Sends an agent's events.
#[derive(Clone)]
pub(crate) struct EventSink {
    /// Agent whose events they are.
    pub(crate) agent: AgentId,
    /// Those who watch the agent.
    pub(crate) audience: Audience,
    /// Events of the session.
    pub(crate) events: SessionEvents,
    /// Fires when the agent must stop: then nobody is waited for.
    pub(crate) stop: CancellationToken,
    /// True for a sub-agent: of those the front end gets only events that concern others.
    pub(crate) below: bool,
    /// True while a model call waits for the provider: for its turn, or for its next attempt.
    pub(crate) waits: Arc<AtomicBool>,
}

impl EventSink {
    /// Returns where a call shows what it prints.
    pub(crate) fn output_of(&self, call: &str) -> LiveOutput {
        LiveOutput::to(Arc::new(CallViewers {
            audience: self.audience.clone(),
            call: call.to_owned(),
        }))
    }

    /// Sends an event to viewers at once, and to the front end once there is room. Dropped if
    /// nobody listens.
    pub(crate) async fn emit(&self, kind: EventKind) {
        self.audience.show(&kind);
        self.tell_front_end(kind).await;
    }

    /// Sends an event to the front end once there is room.
    async fn tell_front_end(&self, kind: EventKind) {
        if kind.is_for_viewers() || self.below && !concerns_others(&kind) {
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
            room = self.events.room() => {
                if let Some(room) = room {
                    room.send(event);
                }
            }
            () = self.stop.cancelled() => drop(event),
        }
    }
}

/// Those who watch what a call of an agent prints.
struct CallViewers {
    audience: Audience,
    call: String,
}

impl OutputViewers for CallViewers {
    fn is_watched(&self) -> bool {
        self.audience.wants(Detail::All)
    }

    fn show(&self, text: String, skipped: u64) {
        self.audience.show(&EventKind::Output {
            call: self.call.clone(),
            text,
            skipped,
        });
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

/// A call of an agent, without those who listen.
pub(crate) struct AgentCall<'a> {
    pub(crate) body: Body,
    pub(crate) model: &'a str,
    pub(crate) standing: &'a Standing,
    pub(crate) attribution: &'a Attribution,
    pub(crate) cancel: &'a CancellationToken,
}

/// Forwards a reply while it arrives.
pub(crate) struct ReplyStream {
    sink: EventSink,
    call_reservation: CallReservation,
    warming: WarmupOutcome,
    /// Events that nobody has seen yet.
    fresh: VecDeque<EventKind>,
    /// Events for which the front end had no room yet.
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
            fresh: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Returns the time when the request was sent.
    pub(crate) fn sent(&self) -> Duration {
        self.warming.sent
    }

    /// Returns the reservation, to be settled.
    pub(crate) fn call_reservation(self) -> CallReservation {
        self.call_reservation
    }

    /// Makes a call and sends what arrives. Parts that arrive together are sent together.
    pub(crate) async fn follow(
        &mut self,
        api: &dyn Model,
        call: AgentCall<'_>,
    ) -> Result<Reply, Failure> {
        // A mutex, because the callback and the poll below both need it; they never run at the same
        // time.
        let arriving = Mutex::new(self);
        let held = || arriving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut on = |event: ModelEvent<'_>| held().on(event);
        let mut calling = api.call(Call {
            body: call.body,
            model: call.model,
            standing: call.standing,
            attribution: call.attribution,
            cancel: call.cancel,
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
        let is_retry = matches!(event, ModelEvent::Retry { .. });
        if let ModelEvent::Retry { error, .. } = event
            && error.may_be_billed()
        {
            self.call_reservation.retried();
        }
        if is_retry {
            // The text of a failed attempt is void. What was not sent yet is dropped; front ends
            // discard the rest when they see the retry.
            for queue in [&mut self.fresh, &mut self.waiting] {
                queue.retain(|kind| matches!(kind, EventKind::Retry(_)));
            }
        }
        if let Some(told) = told(event)
            && (!self.sink.below || self.sink.audience.wants(detail(is_retry)))
        {
            push(&mut self.fresh, told);
        }
        let waits = is_retry || matches!(event, ModelEvent::Waiting { .. });
        if self.sink.waits.swap(waits, Ordering::AcqRel) != waits {
            let now = match waits {
                true => Activity::Waiting(WaitReason::Rate),
                false => Activity::Working,
            };
            self.fresh.push_back(EventKind::State(now));
        }
    }

    /// Shows viewers what is new, and sends the front end as much as it has room for. Never blocks.
    fn tell(&mut self) {
        while let Some(kind) = self.fresh.pop_front() {
            self.sink.audience.show(&kind);
            if !self.sink.below && !kind.is_for_viewers() {
                push(&mut self.waiting, kind);
            }
        }
        while let Some(kind) = self.waiting.pop_front() {
            match self.sink.events.try_room() {
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
        self.sink.waits.store(false, Ordering::Release);
        for kind in std::mem::take(&mut self.waiting) {
            self.sink.tell_front_end(kind).await;
        }
    }
}

/// Returns the detail to which a part of a reply belongs.
fn detail(is_retry: bool) -> Detail {
    if is_retry { Detail::News } else { Detail::All }
}

/// Adds an event, or its text to that of the event before it.
fn push(queue: &mut VecDeque<EventKind>, kind: EventKind) {
    if let (Some(EventKind::Delta(before)), EventKind::Delta(more)) = (queue.back_mut(), &kind)
        && before.join(more)
    {
        return;
    }
    queue.push_back(kind);
}

/// Tells siblings whose requests begin with the same bytes how the call goes.
pub(crate) struct WarmupOutcome {
    /// The warm-up that they share.
    pub(crate) warmup: Option<Arc<CacheWarmup>>,
    /// Set if they wait for this reply.
    pub(crate) lead: Option<WarmupLead>,
    /// Time when the request was sent, which is when the cache was used.
    pub(crate) sent: Duration,
    /// Tells when a call that waits is sent.
    pub(crate) clock: Arc<dyn Clock>,
}

impl WarmupOutcome {
    /// Lets them continue when the reply begins. If the attempt fails, another of them leads.
    fn on(&mut self, event: ModelEvent<'_>) {
        match (event, &self.warmup) {
            (ModelEvent::Started { .. }, Some(warmup)) => warmup.begun(self.sent),
            (ModelEvent::Retry { .. }, _) => {}
            (ModelEvent::Admitted, _) => {
                self.sent = self.clock.now();
                return;
            }
            _ => return,
        }
        self.lead = None;
    }
}

/// Returns the event for front ends; none for what they see as the agent's state.
fn told(event: ModelEvent<'_>) -> Option<EventKind> {
    Some(EventKind::Delta(match event {
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
            return Some(EventKind::Retry(Retry {
                attempt,
                wait_ms,
                fault: Fault::from(error),
            }));
        }
        ModelEvent::Waiting { .. } | ModelEvent::Admitted => return None,
    }))
}
