//! Side queries: requests on an agent's exact prefix that leave no trace in its conversation. Only
//! the asker sees the answer, and charges have a purpose of their own; nothing else is stored.

mod side_tools;

use std::sync::Arc;

use posse_protocol::{ContentBlock, Message, Missed, Purpose, ReplyFacts, Role, StopReason};
use tokio_util::sync::CancellationToken;

use crate::agent::call_cost;
use crate::agent::call_cost::{CallReservation, NextCall};
use crate::govern::{Account, Reservation};
use crate::history::History;
use crate::history::loaded;
use crate::history::loaded::LoadedTools;
use crate::history::request_size;
use crate::history::request_size::RequestSize;
use posse_port::Ports;
use posse_port::model::{
    Attribution, BreakpointPosition, CacheBreakpoint, Call, Encoded, Failure, ModelError,
    ModelEvent, Reply, Request, Standing, Ttl,
};
use posse_port::store::Charge;

pub(crate) use crate::agent::side_query::side_tools::SideTools;
use crate::prompt::side_query::{SideInstruction, placeholders};

/// Called with parts of the reply while they arrive. Must not block. Text before a retry, or before
/// another reply begins, is not part of the answer.
pub type Hear = Box<dyn FnMut(ModelEvent<'_>) + Send>;

/// A request on an agent's prefix, without the question.
pub(crate) struct SideQuery {
    pub(crate) ports: Ports,
    /// Preamble of the agent.
    pub(crate) preamble: Encoded,
    /// The whole history; a clone shares the bytes.
    pub(crate) history: History,
    /// The model's IDs of the open calls of the last reply: each needs a placeholder.
    pub(crate) open: Vec<String>,
    /// Attribution of the agent.
    pub(crate) attribution: Arc<Attribution>,
    /// Whose turn it is when it waits for the account.
    pub(crate) standing: Standing,
    /// The model's name.
    pub(crate) model: String,
    /// The provider's id of the last reply.
    pub(crate) previous: Option<String>,
    /// Account that pays.
    pub(crate) account: Account,
    /// Size of the agent's last request.
    pub(crate) last_request: RequestSize,
    /// Maximum length of a reply, in tokens.
    pub(crate) max_tokens: u32,
    /// Lifetime of what it writes to the cache.
    pub(crate) ttl: Ttl,
    /// Cancels the query.
    pub(crate) cancel: CancellationToken,
    /// Called while the reply arrives.
    pub(crate) hear: Option<Hear>,
}

/// Result of a side query.
pub(crate) struct SideReply {
    /// Its charges, even if it failed.
    pub(crate) charges: Vec<Charge>,
    /// Facts about the last reply, if there was one.
    pub(crate) facts: Option<ReplyFacts>,
    /// Last text of the model.
    pub(crate) text: Result<String, SideQueryError>,
}

/// Why a side query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SideQueryError {
    /// The model could not be asked.
    #[error(transparent)]
    Model(ModelError),
    /// A budget forbids it.
    #[error("{0}")]
    Refused(String),
    /// It was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The model kept calling tools.
    #[error("the model kept calling tools and did not answer")]
    Tools,
    /// The model ended without text.
    #[error("the model did not answer")]
    Silent,
    /// A hook of the user does not let it happen.
    #[error("{0}")]
    Hook(String),
}

/// Conversation of a side query, after the agent's history.
struct Talk {
    encoded_entries: Vec<Encoded>,
    /// Definitions that the history and the conversation have loaded.
    loaded: LoadedTools,
    marks: Vec<CacheBreakpoint>,
    charges: Vec<Charge>,
    facts: Option<ReplyFacts>,
}

impl Talk {
    /// Ends the conversation with an answer or an error.
    fn ended(self, text: Result<String, SideQueryError>) -> SideReply {
        SideReply {
            charges: self.charges,
            facts: self.facts,
            text,
        }
    }
}

impl SideQuery {
    /// Asks, and continues until there is an answer. Tools that `side_tools` does not allow are refused.
    pub(crate) async fn ask(
        mut self,
        instruction: &SideInstruction,
        side_tools: SideTools,
    ) -> SideReply {
        let mut talk = Talk {
            encoded_entries: self.history.encoded_entries().to_vec(),
            loaded: self.history.loaded().clone(),
            marks: self.history.marks_before(self.ttl),
            charges: Vec::new(),
            facts: None,
        };
        let mut said = placeholders(&self.open);
        said.extend(instruction.content());
        self.say(
            &mut talk,
            Message {
                role: Role::User,
                content: said,
            },
        );
        for turn in 0..side_tools.turns() {
            // Only from the second turn on: the usual single turn should not pay for a cache entry
            // that nobody reads.
            if turn > 0 {
                self.mark_end(&mut talk);
            }
            let reply = match self.call(&mut talk, instruction.purpose()).await {
                Ok(reply) => reply,
                Err(error) => return talk.ended(Err(error)),
            };
            let (stop, content) = (reply.stop.clone(), reply.content.clone());
            talk.facts = Some(facts(reply));
            let results = match side_tools
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

    /// Adds a message to the conversation.
    fn say(&self, talk: &mut Talk, mut message: Message) {
        let api = &*self.ports.model;
        if let Some(loading) = talk.loaded.take(&message) {
            message = loading.message;
        }
        let sent = loaded::readable(&message, api, &self.model);
        talk.encoded_entries.push(api.entry(&sent));
    }

    /// Marks the end of the conversation for the cache, because another turn follows.
    fn mark_end(&self, talk: &mut Talk) {
        talk.marks = self.history.marks_before(self.ttl);
        talk.marks.push(CacheBreakpoint {
            place: BreakpointPosition::Entry(talk.encoded_entries.len() - 1),
            ttl: self.ttl,
        });
    }

    /// Makes one call and settles its cost.
    async fn call(&mut self, talk: &mut Talk, purpose: Purpose) -> Result<Reply, SideQueryError> {
        let size = request_size::size(&self.preamble, &talk.encoded_entries) + talk.loaded.size();
        let reservation = self.pay(size).await?;
        let cancel = self.cancel.child_token();
        let body = self.ports.model.body(&Request {
            preamble: &self.preamble,
            loaded: talk.loaded.encoded(),
            entries: &talk.encoded_entries,
            marks: &talk.marks,
            max_tokens: reservation.output,
            previous: self.previous.as_deref(),
        });
        let mut call_reservation = CallReservation::new(reservation, cancel.clone());
        let hear = &mut self.hear;
        let mut on = |event: ModelEvent<'_>| {
            if let ModelEvent::Retry { error, .. } = event
                && error.may_be_billed()
            {
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
                model: &self.model,
                standing: &self.standing,
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

    /// Reserves the worst case of a request, waiting until there is enough.
    async fn pay(&mut self, size: usize) -> Result<Reservation, SideQueryError> {
        loop {
            // Asked for before the attempt: what is freed between a refusal and the wait would be
            // missed.
            let freed = self.account.freed();
            let next = NextCall {
                model: &self.model,
                input: self.last_request.input(size),
                ttl: self.ttl,
                max_tokens: self.max_tokens,
            };
            match next.reserve(&self.ports, &self.account) {
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

/// Returns what the provider says that the reply missed in the cache.
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
