//! Agents of one realm, and their steps.

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_port::store::{
    CallChange, CallChangeKind, CallKey, Charge, Epoch, NewEntry, Step, Store,
};
use posse_protocol::{AgentId, EntryKind, Purpose, ReplyFacts, StopReason, Usage};
use posse_testkit::store_contract::{birth, realm};
use uuid::Uuid;

use crate::Failed;

/// A short entry: the shorter it is, the more of a step is its row of the feed.
const ENTRY: &str = r#"{"role":"user","content":[{"type":"text","text":"A question or an answer of the usual length: a few hundred bytes, as most of them are. It names a file or two, asks for a change here and a test there, and then it ends. The second test passes now; the third waits for what changes in the writer."}]}"#;
const MODEL: &str = "claude-opus-5";
const USAGE: Usage = Usage {
    input: 12,
    cache_read: 3400,
    cache_write_5m: 80,
    cache_write_1h: 0,
    output: 77,
    thinking: 0,
};

/// A writing agent.
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    /// The number of its next entry.
    pub(crate) seq: u64,
}

impl Agent {
    /// Creates an agent without entries.
    pub(crate) async fn born(store: &dyn Store) -> Result<Self, Failed> {
        let agent = Self {
            id: AgentId::within(realm(), Uuid::now_v7()),
            seq: 0,
        };
        let birth = birth(1).birth;
        store
            .commit(Step {
                birth,
                ..agent.blank()
            })
            .await?;
        Ok(agent)
    }

    fn blank(&self) -> Step {
        let at_ms = 1_794_700_800_000 + self.seq.cast_signed();
        Step::new(realm(), self.id, Epoch(1), at_ms)
    }

    /// Returns its next step, with one entry: a reply that calls a tool, or its results.
    pub(crate) fn step(&mut self) -> Step {
        let (mut step, seq) = (self.blank(), self.seq);
        self.seq += 1;
        let is_reply = seq.is_multiple_of(2);
        let (kind, reply) = if is_reply {
            (EntryKind::Reply, Some(facts()))
        } else {
            (EntryKind::Results, None)
        };
        step.entries = vec![NewEntry {
            seq,
            kind,
            head: None,
            loaded: None,
            encoded: Encoded {
                bytes: Bytes::from_static(ENTRY.as_bytes()),
                mark_at: Some(ENTRY.len() - 3),
            },
            checksum: seq,
            reply,
        }];
        if is_reply {
            step.calls = vec![CallChange {
                key: CallKey { seq, ordinal: 0 },
                change: CallChangeKind::Asked {
                    id: "toolu_01A09q90qw90lq917835lq9".into(),
                    tool: "Bash".into(),
                    tier: None,
                },
            }];
            step.charges = vec![Charge {
                model: MODEL.into(),
                usage: USAGE,
                cost: None,
                purpose: Purpose::Work,
                missed: 0,
            }];
        }
        step
    }
}

fn facts() -> ReplyFacts {
    ReplyFacts {
        id: "msg_013Zva2CMHLNnXjNJJKqJ2EF".into(),
        model: MODEL.into(),
        stop: Some(StopReason::ToolUse),
        usage: USAGE,
        missed: None,
    }
}
