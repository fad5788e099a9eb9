//! Asides: requests on an agent's exact prefix that leave no trace in its conversation. What is said in
//! one is known to whoever asked, and paid for under a purpose of its own; nothing of it is kept.

mod side_tools;

use std::sync::Arc;

use posse_protocol::{ContentBlock, Message, Missed, Purpose, ReplyFacts, Role, StopReason};
use tokio_util::sync::CancellationToken;

use crate::agent::call_cost;
use crate::agent::call_cost::CallReservation;
use crate::govern::{Account, Reservation};
use crate::history::History;
use crate::history::request_size;
use crate::history::request_size::RequestSize;
use posse_port::Ports;
use posse_port::model::{
    Attribution, BreakpointPosition, CacheBreakpoint, Call, Encoded, Failure, ModelError,
    ModelEvent, Reply, Request, Ttl,
};
use posse_port::store::Charge;

pub(crate) use crate::agent::side_query::side_tools::SideTools;
use crate::prompt::side_query::{SideWords, placeholders};

/// Somebody who is told of what arrives, while it arrives. Must not block. What was said before a retry, or
/// before another reply begins, is no part of the answer.
pub type Hear = Box<dyn FnMut(ModelEvent<'_>) + Send>;

/// A request on an agent's prefix, before it is known what is asked.
pub(crate) struct SideQuery {
    pub(crate) ports: Ports,
    pub(crate) preamble: Encoded,
    /// All of it; a clone shares the bytes.
    pub(crate) history: History,
    /// The model's ids of all calls of the reply that the history ends with, if they have no results in it.
    pub(crate) open: Vec<String>,
    pub(crate) attribution: Arc<Attribution>,
    /// The model's name.
    pub(crate) model: String,
    /// The provider's id of the last reply.
    pub(crate) previous: Option<String>,
    /// Who pays.
    pub(crate) account: Account,
    /// How large the agent's last request was.
    pub(crate) last_request: RequestSize,
    pub(crate) max_tokens: u32,
    /// How long the cache keeps what this reads.
    pub(crate) ttl: Ttl,
    pub(crate) cancel: CancellationToken,
    pub(crate) hear: Option<Hear>,
}

/// What came of an aside.
pub(crate) struct SideReply {
    /// What it took, also when it failed.
    pub(crate) charges: Vec<Charge>,
    /// About the last reply, if there was one.
    pub(crate) facts: Option<ReplyFacts>,
    /// What the model said last.
    pub(crate) text: Result<String, SideQueryError>,
}

/// Why an aside has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SideQueryError {
    /// The model could not be asked.
    #[error(transparent)]
    Model(ModelError),
    /// A budget forbids it.
    #[error("{0}")]
    Refused(String),
    /// It was told to end.
    #[error("it was cancelled")]
    Cancelled,
    /// It went on calling tools.
    #[error("the model kept calling tools and did not answer")]
    Tools,
    /// It ended without a word.
    #[error("the model did not answer")]
    Silent,
}

/// What is said in an aside, after the agent's history.
struct Talk {
    pieces: Vec<Encoded>,
    marks: Vec<CacheBreakpoint>,
    charges: Vec<Charge>,
    facts: Option<ReplyFacts>,
}

impl Talk {
    fn ended(self, text: Result<String, SideQueryError>) -> SideReply {
        SideReply {
            charges: self.charges,
            facts: self.facts,
            text,
        }
    }
}

impl SideQuery {
    /// Asks, and follows the talk to its end. Tools that `hands` does not hold are answered with a refusal.
    pub(crate) async fn ask(mut self, words: &SideWords, hands: SideTools) -> SideReply {
        let mut talk = Talk {
            pieces: self.history.pieces().to_vec(),
            marks: self.history.marks_before(self.ttl),
            charges: Vec::new(),
            facts: None,
        };
        let mut said = placeholders(&self.open);
        said.extend(words.spelt());
        self.say(
            &mut talk,
            Message {
                role: Role::User,
                content: said,
            },
        );
        for turn in 0..hands.turns() {
            if turn > 0 {
                self.mark_end(&mut talk);
            }
            let reply = match self.call(&mut talk, words.purpose()).await {
                Ok(reply) => reply,
                Err(error) => return talk.ended(Err(error)),
            };
            let (stop, content) = (reply.stop.clone(), reply.content.clone());
            talk.facts = Some(facts(reply));
            let results = match hands
                .answer(&content, &self.ports.clock, &self.cancel)
                .await
            {
                Ok(results) => results,
                Err(error) => return talk.ended(Err(error)),
            };
            if results.is_empty() && stop != StopReason::PauseTurn {
                let text = text(&content);
                let answer = if text.trim().is_empty() {
                    Err(SideQueryError::Silent)
                } else {
                    Ok(text)
                };
                return talk.ended(answer);
            }
            self.say(&mut talk, Message::assistant(content));
            if !results.is_empty() {
                self.say(
                    &mut talk,
                    Message {
                        role: Role::User,
                        content: results,
                    },
                );
            }
        }
        talk.ended(Err(SideQueryError::Tools))
    }

    fn say(&self, talk: &mut Talk, message: Message) {
        talk.pieces.push(self.ports.model.entry(&message));
    }

    /// There will be more turns than one: what they share is kept.
    fn mark_end(&self, talk: &mut Talk) {
        talk.marks = self.history.marks_before(self.ttl);
        talk.marks.push(CacheBreakpoint {
            place: BreakpointPosition::Entry(talk.pieces.len() - 1),
            ttl: self.ttl,
        });
    }

    /// One call, and what it took.
    async fn call(&mut self, talk: &mut Talk, purpose: Purpose) -> Result<Reply, SideQueryError> {
        let size = request_size::size(&self.preamble, &talk.pieces);
        let reservation = self.pay(size).await?;
        let cancel = self.cancel.child_token();
        let body = self.ports.model.body(&Request {
            preamble: &self.preamble,
            entries: &talk.pieces,
            marks: &talk.marks,
            max_tokens: reservation.output,
            previous: self.previous.as_deref(),
        });
        let mut call_reservation = CallReservation::new(reservation, cancel.clone());
        let hear = &mut self.hear;
        let mut on = |event: ModelEvent<'_>| {
            if let ModelEvent::Retry { .. } = event {
                call_reservation.retried();
            }
            if let Some(hear) = hear {
                hear(event);
            }
        };
        let (model, attribution) = (&self.ports.model, &self.attribution);
        let result = model
            .call(Call {
                body,
                attribution,
                cancel: &cancel,
                on: &mut on,
            })
            .await;
        let mut charges = call_cost::charges(&*self.ports.prices, &self.model, purpose, &result);
        if let Some(missed) = result.as_ref().ok().and_then(missed) {
            call_reservation.miss(&self.attribution, &missed, &mut charges);
        }
        let broke = call_reservation.broke();
        call_reservation.settle(&charges);
        talk.charges.extend(charges);
        match (result, broke) {
            (Ok(reply), _) => {
                let tokens = reply.usage.prompt().saturating_add(reply.usage.output);
                self.last_request = RequestSize {
                    tokens,
                    bytes: size,
                    begun: true,
                };
                self.previous = Some(reply.id.clone()).filter(|id| !id.is_empty());
                Ok(reply)
            }
            (Err(_), Some(why)) => Err(SideQueryError::Refused(why)),
            (
                Err(Failure {
                    error: ModelError::Cancelled,
                    ..
                }),
                None,
            ) => Err(SideQueryError::Cancelled),
            (Err(failure), None) => Err(SideQueryError::Model(failure.error)),
        }
    }

    /// Sets aside what a request of this size could take, once there is enough.
    async fn pay(&mut self, size: usize) -> Result<Reservation, SideQueryError> {
        loop {
            let freed = self.account.freed();
            let input = self.last_request.input(size);
            match call_cost::reserve(
                &self.ports,
                &self.account,
                &self.model,
                (input, self.ttl),
                self.max_tokens,
            ) {
                Ok(reservation) => return Ok(reservation),
                Err(exceeded) if exceeded.may_pass() => tokio::select! {
                    () = freed => {}
                    () = self.cancel.cancelled() => return Err(SideQueryError::Cancelled),
                },
                Err(exceeded) => return Err(SideQueryError::Refused(exceeded.to_string())),
            }
        }
    }
}

/// What a reply's provider says that it missed in the cache.
fn missed(reply: &Reply) -> Option<Missed> {
    let miss = reply.cache_miss.as_ref()?;
    let tokens = miss.missed_tokens.filter(|tokens| *tokens > 0)?;
    Some(Missed {
        tokens,
        why: miss.reason.clone(),
    })
}

fn facts(reply: Reply) -> ReplyFacts {
    let missed = missed(&reply);
    ReplyFacts {
        id: reply.id,
        model: reply.model,
        stop: Some(reply.stop),
        usage: reply.usage,
        missed,
    }
}

fn text(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
