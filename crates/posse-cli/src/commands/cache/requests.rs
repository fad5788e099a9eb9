//! The requests of an agent, reconstructed from its transcript.

use std::rc::Rc;

use posse_model::blocks::{Prompt, Sent, Shared};
use posse_port::store::{Origin, Segment, Store, Transcript};
use posse_protocol::{AgentId, EntryKind, ReplyFacts};

use super::{CacheRequest, CacheRow};
use crate::error::Advised;
use crate::present::costs::AgentCost;

/// An agent with everything it has sent.
pub(super) struct AgentRequests {
    agent: AgentId,
    sent: Sent,
    /// Number of inherited entries.
    inherited: usize,
    origin: Option<Box<Origin>>,
    segments: Vec<Segment>,
    /// Its answered requests, in order.
    answered: Vec<AnsweredRequest>,
    /// Its first request, answered or not.
    first: Option<RequestSpan>,
}

/// The entries of a request: from the last compaction before it up to its answer.
#[derive(Clone, Copy)]
struct RequestSpan {
    from: usize,
    to: usize,
}

/// A request with its answer's facts.
struct AnsweredRequest {
    sending: RequestSpan,
    at_ms: i64,
    compacts: bool,
    /// Number of changes of the model before it.
    models: usize,
    facts: ReplyFacts,
}

/// The agents that an agent is compared with.
pub(super) struct Relatives<'a> {
    pub(super) parent: Option<&'a AgentRequests>,
    pub(super) elders: &'a [Rc<AgentRequests>],
}

impl AgentRequests {
    /// Reads an agent's transcript.
    pub(super) async fn at(store: &dyn Store, agent: AgentId) -> anyhow::Result<Self> {
        let transcript = store.read(agent).await?;
        Ok(Self::of(transcript).map_err(|error| Advised {
            what: format!("the requests of agent {agent} cannot be read: {error}"),
            advice: "`posse store check` says whether the store is damaged".into(),
        })?)
    }

    /// Splits a transcript into requests.
    fn of(transcript: Transcript) -> Result<Self, serde_json::Error> {
        let Transcript {
            record: session,
            preamble,
            segments,
            entries,
            inherited,
            ..
        } = transcript;
        let sent = Sent::read(&preamble, entries.iter().map(|stored| &stored.entry))?;
        let (mut from, mut first, mut answered, mut models) = (0, None, Vec::new(), 0);
        let mut current = &preamble;
        for (to, stored) in entries.iter().enumerate() {
            let sending = RequestSpan { from, to };
            let compacts = stored.entry.kind == EntryKind::Compaction;
            // Inherited replies were paid for by another agent.
            let is_reply = matches!(stored.entry.kind, EntryKind::Reply | EntryKind::Compaction);
            let replied = to >= inherited && is_reply;
            if let Some(head) = &stored.entry.head
                && stored.entry.kind == EntryKind::Model
            {
                models += usize::from(head != current);
                current = head;
            }
            if let Some(facts) = stored.entry.reply.clone().filter(|_| replied) {
                first = first.or(Some(sending));
                answered.push(AnsweredRequest {
                    sending,
                    at_ms: stored.at_ms,
                    compacts,
                    models,
                    facts,
                });
            }
            if compacts {
                from = to;
            }
        }
        let has_words = entries.len() > inherited;
        first = first.or_else(|| {
            has_words.then_some(RequestSpan {
                from,
                to: entries.len(),
            })
        });
        Ok(Self {
            agent: session.agent,
            sent,
            inherited,
            origin: session.origin,
            segments,
            answered,
            first,
        })
    }

    /// Returns the last segment of another agent's history that its own begins with.
    pub(super) fn segment(&self) -> Option<Segment> {
        self.segments.last().copied()
    }

    /// Returns true if both have the same preamble.
    pub(super) fn begins_like(&self, other: &Self) -> bool {
        let nothing = RequestSpan { from: 0, to: 0 };
        self.prompt(nothing).same_preamble(&other.prompt(nothing))
    }

    /// Returns what its requests have in common with each other and with those of its relatives.
    pub(super) fn compared<'a>(
        &self,
        line: &'a AgentCost<'a>,
        kin: &Relatives<'_>,
    ) -> CacheRow<'a> {
        let first = self.first.map(|first| self.prompt(first));
        let parent = first.zip(kin.parent).and_then(|(first, parent)| {
            let before = parent.before(self)?;
            Some((before.bytes(), first.shared(&before)))
        });
        let siblings = kin.elders.iter().filter_map(|elder| {
            let shared = first?.shared(&elder.prompt(elder.first?));
            Some((elder.agent, shared))
        });
        CacheRow {
            line,
            first: first.map(|first| first.bytes()),
            sibling: siblings.max_by_key(|(_, shared)| shared.bytes),
            requests: self.requests(parent.as_ref().map(|(_, shared)| shared)),
            parent,
            missed: Vec::new(),
        }
    }

    fn prompt(&self, sending: RequestSpan) -> Prompt<'_> {
        self.sent.request(sending.from..sending.to)
    }

    /// Returns the request whose reply created `child`, or the last one in the child's history.
    fn before(&self, child: &Self) -> Option<Prompt<'_>> {
        let segment = child
            .segments
            .iter()
            .rev()
            .find(|segment| segment.agent == self.agent);
        let call = child
            .origin
            .as_ref()
            .filter(|origin| origin.parent == self.agent);
        let reply = call
            .map(|origin| origin.call.seq)
            .or(segment.map(|segment| segment.to.saturating_sub(1)))?;
        let reply = self.inherited.saturating_add(usize::try_from(reply).ok()?);
        let asked = self
            .answered
            .iter()
            .rev()
            .find(|answered| answered.sending.to <= reply)?;
        Some(self.prompt(asked.sending))
    }

    /// Returns the answered requests. The first one is compared with its parent's.
    fn requests(&self, parent: Option<&Shared>) -> Vec<CacheRequest> {
        let mut before: Option<&AnsweredRequest> = None;
        let mut requests = Vec::new();
        for answered in &self.answered {
            let is_other = before.is_some_and(|before| before.models < answered.models);
            let shared = match before {
                _ if is_other => None,
                // Nothing differs since the same compaction: entries never change.
                Some(before) if before.sending.from == answered.sending.from => None,
                Some(before) => Some(
                    self.prompt(answered.sending)
                        .shared(&self.prompt(before.sending)),
                ),
                None => parent.cloned(),
            };
            requests.push(CacheRequest {
                at_ms: answered.at_ms,
                after_ms: before.map(|before| answered.at_ms.saturating_sub(before.at_ms)),
                compacts: answered.compacts,
                usage: answered.facts.usage,
                missed: answered.facts.missed.clone(),
                differs: match is_other {
                    true => Some("model".to_owned()),
                    false => shared.and_then(|shared| super::differs(&shared)),
                },
            });
            before = Some(answered);
        }
        requests
    }
}
