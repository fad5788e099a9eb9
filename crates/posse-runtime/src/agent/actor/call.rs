//! A model call: admitted, paid for, made.

use std::sync::Arc;
use std::time::Duration;

use posse_protocol::{ContentBlock, Purpose};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::{Actor, Work, wall_ms};
use crate::agent::call_cost;
use crate::agent::call_cost::Fare;
use crate::agent::events::{Arriving, Warming};
use crate::agent::step::{Input, Squeeze};
use crate::govern::{Coming, Entry, Lead, Place};
use crate::history::request_size;
use crate::history::request_size::Paid;
use posse_port::Ports;
use posse_port::model::{Failure, ModelError, Reply, Request, Ttl};
use posse_port::store::{AgentState, StoreError};

/// How long an agent waits for its sibling's reply to begin: one that hangs must not hold up all others.
const PATIENCE: Duration = Duration::from_secs(15);

/// What it has waited for.
pub(super) struct Admission {
    /// None for a root.
    place: Option<Place>,
    lead: Option<Lead>,
    /// Whether it has waited for its siblings long enough.
    impatient: bool,
}

/// What came of a call.
pub(super) struct Called {
    result: Result<Reply, Failure>,
    /// When it began, in milliseconds of Unix time.
    at_ms: i64,
    /// How many bytes were sent.
    size: usize,
    took: Duration,
    fare: Fare,
}

impl Actor {
    /// Takes a place to call the model from, if there is one and it need not wait for its siblings.
    pub(super) fn look_for_place(&mut self, work: &mut Work) {
        let entry = self.enter();
        self.place = match entry {
            Entry::Go(_) => self.tree.places.try_take(),
            Entry::Wait(_) => None,
        };
        work.entry = Some(entry);
    }

    /// Asks whether what it shares with its siblings can be read: before its first call only, which writes
    /// it if not.
    fn enter(&self) -> Entry {
        match self.warmth.as_ref().filter(|_| !self.paid.begun) {
            Some(warmth) => warmth.enter(self.ports.clock.now()),
            None => Entry::Go(None),
        }
    }

    /// Calls the model as soon as there is a place to do so from.
    pub(super) async fn admit(&mut self, work: &mut Work) {
        match work.entry.take().unwrap_or(Entry::Go(None)) {
            Entry::Go(lead) if !self.wants_place() => self.call_model(lead, work).await,
            entry => self.line_up(entry, work),
        }
    }

    /// Waits for its siblings without a place, and then for a place.
    fn line_up(&mut self, entry: Entry, work: &mut Work) {
        self.place = None;
        let parent = self.sub.as_ref().map(|sub| sub.parent);
        let coming = if self.paid.begun {
            Coming::Back
        } else {
            Coming::Anew
        };
        let (places, patience) = (self.tree.places.clone(), self.ports.clock.sleep(PATIENCE));
        work.admission = Some(Box::pin(async move {
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
    pub(super) fn wants_place(&self) -> bool {
        self.sub.is_some() && self.place.is_none()
    }

    /// It has a place, or can pay again.
    pub(super) async fn admitted(
        &mut self,
        admission: Admission,
        work: &mut Work,
    ) -> Result<(), StoreError> {
        let Admission {
            place,
            lead,
            impatient,
        } = admission;
        self.place = place;
        let entry = if lead.is_some() || impatient {
            Entry::Go(lead)
        } else {
            self.enter()
        };
        let lead = match entry {
            Entry::Go(lead) => lead,
            // It waited for so long that the cache has forgotten, and another is writing already.
            entry => {
                self.line_up(entry, work);
                return Ok(());
            }
        };
        if std::mem::take(&mut self.told_queued) {
            self.tell_state(AgentState::Running).await?;
        }
        self.call_model(lead, work).await;
        Ok(())
    }

    /// The state in which it waits for a place.
    pub(super) fn queued(&self) -> AgentState {
        if !self.paid.begun {
            AgentState::Created
        } else {
            AgentState::Waiting
        }
    }

    async fn call_model(&mut self, lead: Option<Lead>, work: &mut Work) {
        let crowded = || {
            self.is_crowded().then(|| Squeeze {
                auto: true,
                ..Squeeze::default()
            })
        };
        if let Some(squeeze) = work.squeeze.take().or_else(crowded) {
            return self.squeeze(squeeze, work).await;
        }
        let max_tokens = self.setup.limits.max_tokens;
        let size = request_size::size(&self.preamble, self.history.pieces());
        let freed = self.account.freed();
        let at_ms = wall_ms(&*self.ports.clock);
        let (ports, input, ttl) = (&self.ports, self.paid.input(size), self.reuse.ttl(at_ms));
        let reservation =
            match call_cost::reserve(ports, &self.account, &self.model, (input, ttl), max_tokens) {
                Ok(reservation) => reservation,
                Err(exceeded) if exceeded.may_pass() => {
                    // Others have set aside what they will not use: when they are done there may be enough.
                    let place = self.place.take();
                    work.admission = Some(Box::pin(async move {
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
        let body = self.request(reservation.output, ttl);
        self.paid.begun = true;
        let Ports { model, clock, .. } = self.ports.clone();
        let (attribution, cancel) = (Arc::clone(&self.attribution), work.cancel_model.clone());
        let warming = Warming {
            warmth: self.warmth.clone(),
            lead,
            sent: clock.now(),
        };
        let mut arriving = Arriving::new(
            self.outlet.clone(),
            Fare::new(reservation, cancel.clone()),
            warming,
        );
        work.calling = Some(Box::pin(async move {
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

    /// How long the cache is to keep what is sent now.
    pub(super) fn ttl(&self) -> Ttl {
        self.reuse.ttl(wall_ms(&*self.ports.clock))
    }

    fn request(&self, max_tokens: u32, ttl: Ttl) -> posse_port::model::Body {
        self.ports.model.body(&Request {
            preamble: &self.preamble,
            entries: self.history.pieces(),
            marks: &self.history.marks(ttl),
            max_tokens,
            previous: self.previous_reply.as_deref(),
        })
    }

    /// Ends the call, or the waiting for it.
    pub(super) fn abort_model(&mut self, work: &mut Work) {
        work.cancel_model.cancel();
        work.squeeze = None;
        if work.admission.take().is_some() {
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

    pub(super) fn called(&mut self, called: Called, work: &mut Work) -> Input {
        let Called {
            result,
            at_ms,
            size,
            took,
            mut fare,
        } = called;
        work.api += took;
        let mut charges =
            call_cost::charges(&*self.ports.prices, &self.model, Purpose::Work, &result);
        let miss = |reply: &Reply| {
            self.reuse
                .called(at_ms, &reply.usage, reply.cache_miss.as_ref())
        };
        let missed = result.as_ref().ok().and_then(miss);
        if let Some(missed) = &missed {
            fare.miss(&self.attribution, missed, &mut charges);
        }
        let (capped, broke) = (fare.output() < self.setup.limits.max_tokens, fare.broke());
        fare.settle(&charges);
        match result {
            Ok(reply) => {
                let tokens = reply.usage.prompt().saturating_add(reply.usage.output);
                self.paid = Paid {
                    tokens,
                    bytes: size,
                    begun: true,
                };
                self.unsqueezed = false;
                let intents = reply.content.iter().filter_map(|block| match block {
                    ContentBlock::ToolUse { name, input, .. } => Some(self.intent(name, input)),
                    _ => None,
                });
                let intents = intents.collect();
                self.previous_reply = Some(reply.id.clone());
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
}
