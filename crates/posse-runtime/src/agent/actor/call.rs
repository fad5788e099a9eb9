//! A model call: admitted, paid for, made.

use std::sync::Arc;
use std::time::Duration;

use posse_protocol::{ContentBlock, Cost, Purpose, Usage};
use tokio_util::sync::CancellationToken;

use super::super::outlet::Arriving;
use super::super::step::Input;
use super::{Actor, Work};
use crate::agent::Ports;
use crate::govern::{Ask, Coming, Reservation};
use crate::port::model::{Failure, ModelError, Reply, Request, Ttl};
use crate::port::store::{AgentState, Charge, StoreError};

/// The lowest cap on a reply that is of any use.
const LEAST_OUTPUT: u32 = 1024;

/// More than a request has around its pieces, in bytes.
const AROUND: usize = 1024;

/// What came of a call.
pub(super) struct Called {
    result: Result<Reply, Failure>,
    took: Duration,
    reservation: Reservation,
    /// Whether another attempt could not have been paid for.
    broke: bool,
}

/// How large requests are, as far as it was paid for.
#[derive(Clone, Copy, Default)]
pub(in crate::agent) struct Paid {
    /// Tokens of the last request and its reply.
    tokens: u64,
    /// Bytes of the last request.
    bytes: usize,
    /// Whether any call was made.
    begun: bool,
}

impl Actor {
    /// Calls the model as soon as there is a place to do so from.
    pub(super) fn admit(&mut self, work: &mut Work) {
        let Some(sub) = self.sub.as_ref().filter(|_| self.place.is_none()) else {
            return self.call_model(work);
        };
        let coming = if self.paid.begun { Coming::Back } else { Coming::Anew };
        let waiting = self.tree.places.take(sub.parent, coming);
        work.admission = Some(Box::pin(async move { Some(waiting.await) }));
    }

    /// Whether it needs a place to call the model from. A person waits for a root: it needs none.
    pub(super) fn wants_place(&self) -> bool {
        self.sub.is_some() && self.place.is_none()
    }

    /// It has a place, or can pay again.
    pub(super) async fn admitted(&mut self, work: &mut Work) -> Result<(), StoreError> {
        if std::mem::take(&mut self.told_queued) {
            self.tell_state(AgentState::Running).await?;
        }
        self.call_model(work);
        Ok(())
    }

    /// The state in which it waits for a place.
    pub(super) fn queued(&self) -> AgentState {
        if !self.paid.begun { AgentState::Created } else { AgentState::Waiting }
    }

    fn call_model(&mut self, work: &mut Work) {
        let max_tokens = self.setup.limits.max_tokens;
        let pieces = self.history.pieces().iter().map(|piece| piece.bytes.len());
        let size = self.preamble.bytes.len() + pieces.sum::<usize>() + AROUND;
        let freed = self.account.freed();
        let input = self.paid.tokens.saturating_add(size.saturating_sub(self.paid.bytes) as u64);
        let (prices, model) = (&self.house.ports.prices, &self.model);
        let price = |input: u64, output: u32| -> Option<Cost> {
            // Nothing costs more than to be written to the cache.
            prices.cost(model, &Usage { cache_write_5m: input, output: output.into(), ..Usage::default() })
        };
        let ask = Ask { input, output: max_tokens, least: LEAST_OUTPUT.min(max_tokens), price: &price };
        let reservation = match self.account.reserve(&ask, self.house.ports.clock.now()) {
            Ok(reservation) => reservation,
            Err(exceeded) if exceeded.may_pass() => {
                // Others have set aside what they will not use: when they are done there may be enough.
                let place = self.place.take();
                work.admission = Some(Box::pin(async move {
                    freed.await;
                    place
                }));
                return;
            }
            Err(exceeded) => {
                let (why, charges) = (exceeded.to_string(), Vec::new());
                return work.inputs.push_back(Input::Refused { why, charges });
            }
        };
        work.cancel_model = CancellationToken::new();
        let body = self.request(reservation.output);
        (self.paid.bytes, self.paid.begun) = (size, true);
        let Ports { model, clock, .. } = self.house.ports.clone();
        let (attribution, cancel) = (Arc::clone(&self.attribution), work.cancel_model.clone());
        let mut arriving = Arriving::new(self.outlet.clone(), reservation, cancel.clone());
        work.calling = Some(Box::pin(async move {
            let start = clock.now();
            let result = arriving.follow(&*model, body, &attribution, &cancel).await;
            let (reservation, broke) = arriving.paid();
            Called { result, took: clock.now().saturating_sub(start), reservation, broke }
        }));
    }

    fn request(&self, max_tokens: u32) -> crate::port::model::Body {
        self.house.ports.model.body(&Request {
            preamble: &self.preamble,
            entries: self.history.pieces(),
            marks: &self.history.marks(Ttl::FiveMinutes),
            max_tokens,
            previous: self.previous_reply.as_deref(),
        })
    }

    /// Ends the call, or the waiting for it.
    pub(super) fn abort_model(&mut self, work: &mut Work) {
        work.cancel_model.cancel();
        if work.admission.take().is_some() {
            let (error, finished, spent) = (ModelError::Cancelled, Vec::new(), Vec::new());
            let failure = Box::new(Failure { error, finished, spent, attempts: 0 });
            work.inputs.push_back(Input::Failed { failure, charges: Vec::new() });
        }
    }

    pub(super) fn called(&mut self, called: Called, work: &mut Work) -> Input {
        let Called { result, took, reservation, broke } = called;
        work.api += took;
        let prices = Arc::clone(&self.house.ports.prices);
        // A gateway may call the model by a name of its own.
        let asked = self.model.clone();
        let price =
            |model: &str, usage: &Usage| prices.cost(model, usage).or_else(|| prices.cost(&asked, usage));
        let charge = |model: &str, usage| Charge {
            model: model.to_owned(),
            usage,
            cost: price(model, &usage),
            purpose: Purpose::Work,
        };
        let capped = reservation.output < self.setup.limits.max_tokens;
        match result {
            Ok(reply) => {
                let model = if reply.model.is_empty() { &self.model } else { &reply.model };
                let spent = reply.wasted.iter().chain([&reply.usage]);
                let charges: Vec<Charge> = spent.map(|usage| charge(model, *usage)).collect();
                reservation.settle(&charges);
                self.paid.tokens = reply.usage.prompt().saturating_add(reply.usage.output);
                let intents = reply.content.iter().filter_map(|block| match block {
                    ContentBlock::ToolUse { name, input, .. } => Some(self.intent(name, input)),
                    _ => None,
                });
                let intents = intents.collect();
                self.previous_reply = Some(reply.id.clone());
                Input::Reply { reply: Box::new(reply), charges, intents, capped }
            }
            Err(failure) => {
                let charges: Vec<Charge> =
                    failure.spent.iter().map(|usage| charge(&self.model, *usage)).collect();
                reservation.settle(&charges);
                // What it would have been told is not known: the next request is bounded by its bytes.
                (self.paid.tokens, self.paid.bytes) = (0, 0);
                if broke {
                    let why = "the attempt failed, and the budget does not hold another".to_owned();
                    return Input::Refused { why, charges };
                }
                Input::Failed { failure: Box::new(failure), charges }
            }
        }
    }
}
