//! Queries: transcripts, lists of agents, mail, teams and tasks, each from one snapshot.
//!
//! What one query can return is one query. Where several are needed, they are sent together with
//! the beginning and the end of their transaction: that is one round trip, too, and leaves no
//! connection with an open transaction.

mod entries;
pub(super) mod feed;
mod mail;
mod question;
mod rows;
mod sessions;
mod task;
mod team;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use deadpool_postgres::ClientWrapper;
use posse_port::confinement::Tier;
use posse_port::model::Encoded;
use posse_port::store::{
    CallKey, CallOutcome, CallTier, Epoch, NewEntry, OpenCall, SeenFile, Segment, StoreError,
    StoredEntry, Taken, Transcript,
};
use posse_protocol::{AgentId, EntryKind, RealmId, ReplyFacts};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::error::PgFailure;
use super::{column, nul};
use crate::columns;
use crate::extent::Extent;

pub(super) use entries::entries;
pub(super) use question::list as list_questions;
pub(super) use rows::agent_rows;
pub(super) use task::{task, tasks};

/// Reads through one connection.
pub(super) struct PgReader<'a> {
    client: &'a ClientWrapper,
    /// The name of this machine.
    node: &'a str,
}

/// Parameters of a query.
type QueryValues<'a> = [&'a (dyn ToSql + Sync)];

/// Column of an entry with the hash of what it begins with.
const HEAD: usize = 5;
/// Column of an entry with the hash of the definitions that it brings.
const LOADED: usize = 9;

/// Content that entries share, by hash. Entries that share it share it in memory, too.
type PgHeads = HashMap<Uuid, Encoded>;

/// An agent's own entries, with columns in the order of [`entry`]. Parameter 2 restricts them to
/// what is still sent.
const OWN: &str =
    "SELECT seq, kind, at_ms, checksum, reply, head, mark_at, packed, bytes, loaded FROM entry
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1
        AND seq >= CASE WHEN $2 THEN coalesce((SELECT since FROM pulse
            WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1), 0) ELSE 0 END
    ORDER BY seq";

/// The segments an agent inherits. None if only what is still sent is wanted and a compaction
/// replaces them.
const SEGMENTS: &str = "SELECT source, first, beyond FROM segment s
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1
        AND NOT ($2 AND EXISTS (SELECT 1 FROM pulse WHERE realm = s.realm AND agent = $1 AND since IS NOT NULL))
    ORDER BY ordinal";

/// The entries of these segments. Each segment is looked up by index, regardless of how many
/// entries other agents have.
const INHERITED: &str = "SELECT e.* FROM segment s CROSS JOIN LATERAL (
        SELECT seq, kind, at_ms, checksum, reply, head, mark_at, packed, bytes, loaded FROM entry
        WHERE realm = s.realm AND agent = s.source AND seq >= s.first AND seq < s.beyond ORDER BY seq OFFSET 0) e
    WHERE s.realm = (SELECT realm FROM agent WHERE id = $1) AND s.agent = $1
        AND NOT ($2 AND EXISTS (SELECT 1 FROM pulse WHERE realm = s.realm AND agent = $1 AND since IS NOT NULL))
    ORDER BY s.ordinal, e.seq";

/// The calls of the last entry other than a prompt, if that is a reply.
const CALLS: &str =
    "SELECT seq, ordinal, id, tool, begun, is_error, operated, packed, content FROM call
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1
        AND seq = (SELECT CASE kind WHEN 2 THEN seq END FROM entry
            WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1 AND kind <> 1
            ORDER BY seq DESC LIMIT 1)
    ORDER BY ordinal";

/// How strongly the calls of an agent were held.
const TIERS: &str = "SELECT seq, ordinal, tier FROM call
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1 AND tier IS NOT NULL
    ORDER BY seq, ordinal";

/// What the agent's requests begin with.
const PREAMBLE: &str = "SELECT mark_at, packed, bytes FROM preamble
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND hash = (SELECT preamble FROM agent WHERE id = $1)";

/// Shared contents by hash.
const HEADS: &str =
    "SELECT hash, mark_at, packed, bytes FROM preamble WHERE realm = $1 AND hash = ANY ($2)";

/// Files whose content the agent knows.
const SEEN: &str = "SELECT path, version FROM seen
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1 ORDER BY path";

/// The rows a transcript is made from.
struct Parts {
    extent: Extent,
    agent: Vec<Row>,
    preamble: Vec<Row>,
    segments: Vec<Row>,
    inherited: Vec<Row>,
    own: Vec<Row>,
    calls: Vec<Row>,
}

impl<'a> PgReader<'a> {
    pub(super) fn new(client: &'a ClientWrapper, node: &'a str) -> Self {
        Self { client, node }
    }

    /// Returns an agent's transcript.
    pub(super) async fn transcript(&self, agent: AgentId) -> Result<Transcript, PgFailure> {
        self.prepare_parts().await?;
        // Biased, since the driver sends queries in the order in which they are first polled: the
        // transaction must begin before what it encloses.
        let (begun, parts, ended) =
            tokio::join!(biased; self.begin(), self.parts(agent, Extent::All), self.end());
        begun?;
        let parts = parts?;
        ended?;
        self.assembled(agent, &parts).await
    }

    /// Returns how strongly the calls of an agent were held.
    pub(super) async fn tiers(&self, agent: AgentId) -> Result<Vec<CallTier>, PgFailure> {
        let rows = self.rows(TIERS, &[&agent.uuid()]).await?;
        let one = |row: &Row| {
            let tier = Tier::named(column::get(row, 2)?).ok_or_else(|| column::senseless(2))?;
            let key = CallKey {
                seq: column::bits(row, 0)?,
                ordinal: column::ordinal(row, 1)?,
            };
            Ok(CallTier { key, tier })
        };
        rows.iter().map(one).collect()
    }

    /// Returns what the host that has just taken an agent continues from.
    pub(super) async fn taken(&self, agent: AgentId, epoch: Epoch) -> Result<Taken, PgFailure> {
        self.prepare_parts().await?;
        self.prepare(&[SEEN, mail::COUNT, mail::RUNS, question::OWN])
            .await?;
        let id = agent.uuid();
        let key: &QueryValues<'_> = &[&id];
        let (begun, parts, seen, mail, runs, questions, ended) = tokio::join!(
            biased;
            self.begin(),
            self.parts(agent, Extent::Sent),
            self.rows(SEEN, key),
            self.rows(mail::COUNT, key),
            self.rows(mail::RUNS, key),
            self.rows(question::OWN, key),
            self.end(),
        );
        begun?;
        let (parts, seen, mail, runs) = (parts?, seen?, mail?, runs?);
        let questions = questions?;
        ended?;
        Ok(Taken {
            epoch,
            transcript: self.assembled(agent, &parts).await?,
            seen: seen.iter().map(seen_file).collect::<Result<_, _>>()?,
            mail: mail.first().map_or(Ok(0), |row| column::bits(row, 0))?,
            runs: runs.iter().map(mail::run).collect::<Result<_, _>>()?,
            questions: questions
                .iter()
                .map(question::question)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns all rows of a query.
    async fn rows(&self, sql: &str, about: &QueryValues<'_>) -> Result<Vec<Row>, PgFailure> {
        let statement = self.client.prepare_cached(sql).await?;
        Ok(self.client.query(&statement, about).await?)
    }

    /// Returns all rows of a query that may not use all of its parameters, so that the server
    /// cannot infer their types.
    async fn typed_rows(
        &self,
        sql: &str,
        types: &[Type],
        about: &QueryValues<'_>,
    ) -> Result<Vec<Row>, PgFailure> {
        let statement = self.client.prepare_typed_cached(sql, types).await?;
        Ok(self.client.query(&statement, about).await?)
    }

    /// Prepares queries. Once prepared, [`PgReader::rows`] sends its query when it is first
    /// polled, so that joined queries are sent in their order.
    async fn prepare(&self, queries: &[&str]) -> Result<(), PgFailure> {
        for sql in queries {
            self.client.prepare_cached(sql).await?;
        }
        Ok(())
    }

    /// Begins a read-only snapshot.
    async fn begin(&self) -> Result<(), PgFailure> {
        Ok(self
            .client
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            .await?)
    }

    /// Ends the snapshot.
    async fn end(&self) -> Result<(), PgFailure> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }

    async fn prepare_parts(&self) -> Result<(), PgFailure> {
        self.prepare(&[&sessions::one(), PREAMBLE, SEGMENTS, INHERITED, OWN, CALLS])
            .await
    }

    async fn parts(&self, agent: AgentId, extent: Extent) -> Result<Parts, PgFailure> {
        let (id, sent, one) = (agent.uuid(), extent == Extent::Sent, sessions::one());
        let (key, cut): (&QueryValues<'_>, &QueryValues<'_>) = (&[&id], &[&id, &sent]);
        let (agent, preamble, segments, inherited, own, calls) = tokio::join!(
            biased;
            self.rows(&one, key),
            self.rows(PREAMBLE, key),
            self.rows(SEGMENTS, cut),
            self.rows(INHERITED, cut),
            self.rows(OWN, cut),
            self.rows(CALLS, key),
        );
        let (agent, preamble, segments) = (agent?, preamble?, segments?);
        Ok(Parts {
            extent,
            agent,
            preamble,
            segments,
            inherited: inherited?,
            own: own?,
            calls: calls?,
        })
    }

    /// Builds the transcript from its rows.
    async fn assembled(&self, agent: AgentId, parts: &Parts) -> Result<Transcript, PgFailure> {
        let found = parts
            .agent
            .first()
            .ok_or(PgFailure::Refused(StoreError::NotFound { agent }))?;
        let found = sessions::agent(found, self.node)?;
        let heads = self
            .heads(
                found.session.realm,
                parts.inherited.iter().chain(&parts.own),
            )
            .await?;
        let segments: Vec<Segment> = parts
            .segments
            .iter()
            .map(segment)
            .collect::<Result<_, _>>()?;
        let mut entries = Vec::with_capacity(parts.inherited.len() + parts.own.len());
        let mut rest = parts.inherited.iter();
        for segment in &segments {
            entries_of(*segment, &mut rest, &heads, &mut entries)?;
        }
        let inherited = entries.len();
        let from = found
            .since
            .filter(|_| parts.extent == Extent::Sent)
            .unwrap_or(0);
        let own = Segment {
            agent,
            from,
            to: found.own,
        };
        entries_of(own, &mut parts.own.iter(), &heads, &mut entries)?;
        let preamble = parts
            .preamble
            .first()
            .ok_or_else(|| PgFailure::senseless("a preamble is missing"))?;
        Ok(Transcript {
            record: found.session,
            dialect: found.dialect,
            preamble: column::encoded(preamble, 0)?,
            segments,
            entries,
            inherited,
            open_calls: parts.calls.iter().map(call).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the contents that entries share, if they exist. They are found by hash and
    /// never change, so that they need not be read in the same snapshot.
    async fn heads(
        &self,
        realm: RealmId,
        entries: impl Iterator<Item = &Row>,
    ) -> Result<PgHeads, PgFailure> {
        let hashes: BTreeSet<Uuid> = entries
            .flat_map(|row| [HEAD, LOADED].map(|at| column::get::<Option<Uuid>>(row, at)))
            .filter_map(Result::transpose)
            .collect::<Result<_, _>>()?;
        if hashes.is_empty() {
            return Ok(PgHeads::new());
        }
        let (realm, hashes) = (realm.uuid(), Vec::from_iter(hashes));
        let rows = self.rows(HEADS, &[&realm, &hashes]).await?;
        Ok(rows
            .iter()
            // One that cannot be decompressed is treated as missing, which is reported as damage.
            .filter_map(|row| Some((column::get(row, 0).ok()?, column::encoded(row, 1).ok()?)))
            .collect())
    }
}

/// Adds the entries of a segment. A gap is damage that is visible without a checksum.
fn entries_of<'a>(
    segment: Segment,
    rows: &mut impl Iterator<Item = &'a Row>,
    heads: &PgHeads,
    into: &mut Vec<StoredEntry>,
) -> Result<(), PgFailure> {
    let damaged = |seq| {
        PgFailure::Refused(StoreError::Damaged {
            agent: segment.agent,
            seq,
        })
    };
    for seq in segment.from..segment.to {
        let row = rows.next().ok_or_else(|| damaged(seq))?;
        let stored = entry(row, segment.agent, heads).map_err(|_| damaged(seq))?;
        if stored.entry.seq != seq {
            return Err(damaged(seq));
        }
        into.push(stored);
    }
    Ok(())
}

/// Returns the facts about a reply.
fn reply(row: &Row) -> Result<Option<ReplyFacts>, PgFailure> {
    let facts = column::get::<Option<&str>>(row, 4)?;
    let reply = facts.map(|facts| columns::reply_in(&nul::show(facts)));
    Ok(reply.transpose().map_err(PgFailure::senseless)?.flatten())
}

/// Returns an entry of `agent`.
fn entry(row: &Row, agent: AgentId, heads: &PgHeads) -> Result<StoredEntry, PgFailure> {
    let kinds = [
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Compaction,
        EntryKind::Model,
    ];
    let shared = |at| match column::get::<Option<Uuid>>(row, at)? {
        Some(hash) => Ok(Some(
            heads
                .get(&hash)
                .ok_or_else(|| column::senseless(at))?
                .clone(),
        )),
        None => Ok::<_, PgFailure>(None),
    };
    Ok(StoredEntry {
        agent,
        at_ms: column::get(row, 2)?,
        entry: NewEntry {
            seq: column::bits(row, 0)?,
            kind: column::one_of(row, 1, kinds, columns::kind)?,
            head: shared(HEAD)?,
            loaded: shared(LOADED)?,
            encoded: column::encoded(row, 6)?,
            checksum: column::bits(row, 3)?,
            reply: reply(row)?,
        },
    })
}

fn segment(row: &Row) -> Result<Segment, PgFailure> {
    let (from, to) = (column::bits(row, 1)?, column::bits(row, 2)?);
    Ok(Segment {
        agent: column::get::<Uuid>(row, 0)?.into(),
        from,
        to,
    })
}

fn call(row: &Row) -> Result<OpenCall, PgFailure> {
    Ok(OpenCall {
        key: CallKey {
            seq: column::bits(row, 0)?,
            ordinal: column::ordinal(row, 1)?,
        },
        id: column::text(row, 2)?,
        tool: column::text(row, 3)?,
        begun: column::get(row, 4)?,
        outcome: outcome(row)?,
        operated: column::maybe_json(row, 6)?,
    })
}

fn outcome(row: &Row) -> Result<Option<CallOutcome>, PgFailure> {
    let Some(is_error) = column::get::<Option<bool>>(row, 5)? else {
        return Ok(None);
    };
    let content: Vec<_> =
        serde_json::from_slice(&column::bytes(row, 7)?).map_err(PgFailure::senseless)?;
    Ok(Some(CallOutcome {
        content: Arc::from(content),
        is_error,
    }))
}

fn seen_file(row: &Row) -> Result<SeenFile, PgFailure> {
    Ok(SeenFile {
        path: column::path(row, 0)?,
        version: column::bits(row, 1)?,
    })
}
