//! Agents, and the rows of their turns.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_port::store::{
    CallChange, CallChangeKind, CallKey, Charge, Epoch, NewEntry, Step, Store,
};
use posse_protocol::{AgentId, EntryKind, Purpose, RealmId, ReplyFacts, StopReason, Usage};
use posse_store::Postgres;
use posse_testkit::store_contract::birth;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::Failed;

/// Approximate length of an entry.
const LENGTH: usize = 3000;
/// The text that entries are made of.
const PROSE: &str = "the store keeps what an agent does between two waits for the outside world as one step that is \
    committed whole or not at all let me look at the function which reads its rows and at the test that fails there \
    it seems that this value was never set before line 214 of src/store/writer.rs so I will change both places then \
    run cargo nextest again and see whether anything else depends on it result: Ok(Some(entry)) => return Err(error) \
    pub fn commit(&self, step: Step) -> Result<Committed, StoreError> { let mut rows = self.rows.lock(); if rows.is_empty() \
    { return None; } } the first of them passes now but the second one still waits for a lock held by another process \
    which explains why it took thirty seconds I have added a timeout, written down the reason, and checked by hand";
pub(crate) const MODEL: &str = "claude-opus-5";
pub(crate) const CALL: (&str, &str) = ("toolu_01A09q90qw90lq917835lq9", "Bash");
pub(crate) const USAGE: Usage = Usage {
    input: 12,
    cache_read: 34_000,
    cache_write_5m: 800,
    cache_write_1h: 0,
    output: 770,
    thinking: 0,
};
pub(crate) static FACTS: LazyLock<ReplyFacts> = LazyLock::new(|| ReplyFacts {
    id: "msg_013Zva2CMHLNnXjNJJKqJ2EF".into(),
    model: MODEL.into(),
    stop: Some(StopReason::ToolUse),
    usage: USAGE,
    missed: None,
});

/// Distribution of agents over realms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Realms {
    /// All in one realm.
    One,
    /// Each in its own.
    Each,
}

impl FromStr for Realms {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "one" => Ok(Self::One),
            "each" => Ok(Self::Each),
            _ => Err(format!("realms: one or each, not `{word}`")),
        }
    }
}

/// A writing agent.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) realm: RealmId,
    pub(crate) id: AgentId,
    pub(crate) epoch: Epoch,
    /// The number of its next entry.
    pub(crate) seq: u64,
    text: Bytes,
}

impl Agent {
    fn new(realm: RealmId) -> Self {
        let id = Uuid::now_v7();
        Self {
            realm,
            id: AgentId::within(realm, id),
            epoch: Epoch(1),
            seq: 0,
            text: text(id.as_u128() as u64),
        }
    }

    /// A step that does nothing yet.
    pub(crate) fn blank(&self) -> Step {
        Step::new(self.realm, self.id, self.epoch, at(self.seq))
    }

    /// Returns an entry, and advances to the next number.
    pub(crate) fn entry(&mut self, kind: EntryKind) -> NewEntry {
        let (seq, bytes) = (self.seq, self.text.clone());
        self.seq += 1;
        let mark_at = Some(bytes.len() - 3);
        let reply = (kind == EntryKind::Reply).then(|| FACTS.clone());
        NewEntry {
            seq,
            kind,
            head: None,
            loaded: None,
            encoded: Encoded { bytes, mark_at },
            checksum: seq,
            reply,
        }
    }

    /// The step of a model's reply that calls a tool.
    pub(crate) fn reply(&mut self) -> Step {
        let mut step = self.blank();
        let (key, (id, tool)) = (
            CallKey {
                seq: self.seq,
                ordinal: 0,
            },
            CALL,
        );
        step.calls = vec![CallChange {
            key,
            change: CallChangeKind::Asked {
                id: id.into(),
                tool: tool.into(),
                tier: None,
            },
        }];
        step.entries = vec![self.entry(EntryKind::Reply)];
        let (usage, purpose) = (USAGE, Purpose::Work);
        step.charges = vec![Charge {
            model: MODEL.into(),
            usage,
            cost: None,
            purpose,
            missed: 0,
        }];
        step
    }
}

/// Returns the nominal time of a step.
pub(crate) fn at(seq: u64) -> i64 {
    1_794_700_800_000 + seq.cast_signed()
}

/// Returns text like that of models and tools, different for each seed.
fn text(seed: u64) -> Bytes {
    let words: Vec<&str> = PROSE.split_whitespace().collect();
    let mut state = seed | 1;
    let mut text = r#"{"role":"assistant","content":[{"type":"text","text":""#.to_owned();
    while text.len() < LENGTH {
        // Xorshift. Short runs of words stay together, as in prose.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let from = (state >> 33) as usize % words.len();
        for word in words.iter().cycle().skip(from).take(3) {
            text.push_str(&word.replace('"', "'"));
            text.push(' ');
        }
    }
    text.push_str(r#""}]}"#);
    text.into()
}

/// Creates an agent with one entry.
pub(crate) async fn born(store: &Postgres, realm: RealmId) -> Result<Agent, Failed> {
    let mut agent = Agent::new(realm);
    store
        .commit(Step {
            birth: birth(1).birth,
            ..agent.reply()
        })
        .await?;
    Ok(agent)
}

/// Creates agents concurrently.
pub(crate) async fn raised(
    store: &Arc<Postgres>,
    count: usize,
    realms: Realms,
) -> Result<Vec<Agent>, Failed> {
    let first = RealmId::from(Uuid::now_v7());
    let mut births = JoinSet::new();
    let mut raised = Vec::new();
    for _ in 0..count {
        let realm = if realms == Realms::One {
            first
        } else {
            Uuid::now_v7().into()
        };
        let store = Arc::clone(store);
        births.spawn(async move { born(&store, realm).await });
        if births.len() >= 512 {
            raised.extend(births.join_next().await.transpose()?.transpose()?);
        }
    }
    while let Some(born) = births.join_next().await {
        raised.push(born??);
    }
    Ok(raised)
}
