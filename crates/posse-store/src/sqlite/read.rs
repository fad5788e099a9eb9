//! Looking: transcripts, lists of agents, mail, teams and tasks, from one snapshot each.

mod entries;
mod mail;
mod question;
mod rows;
mod sessions;
mod team;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use posse_port::confinement::Tier;
use posse_port::model::Encoded;
use posse_port::store::{
    CallKey, CallOutcome, CallTier, Epoch, FeedPage, NewEntry, OpenCall, SeenFile, Segment,
    StoreError, StoredEntry, Taken, Transcript,
};
use posse_protocol::{AgentId, EntryKind, RealmId};
use rusqlite::{Row, Transaction, params};

use super::content::Hash;
use super::error::SqliteFailure;
use super::place::DatabasePlace;
use super::{column, content, feed};
use crate::columns;
use crate::extent::Extent;

pub(super) use entries::entries;
pub(super) use question::list as list_questions;
pub(super) use rows::rows;

#[cfg(test)]
pub(super) use mail::{RUNS, mails, open};
#[cfg(test)]
pub(super) use question::questions;
#[cfg(test)]
pub(super) use rows::ONE;
#[cfg(test)]
pub(super) use sessions::{SUBTREE, chosen, roots};
#[cfg(test)]
pub(super) use team::{MEMBERSHIP, newest, notes};

/// A snapshot, until it is dropped.
pub(super) struct SqliteReader<'a> {
    place: &'a DatabasePlace,
    snapshot: Transaction<'a>,
}

/// What entries of one read begin with: those that begin the same way share it in memory too.
type SqliteHeads = HashMap<Hash, Encoded>;

/// An entry's columns, in the order of [`entry`].
const ENTRY: &str =
    "SELECT seq, kind, at_ms, checksum, mark_at, reply, bytes, head, loaded FROM entry
    WHERE realm = ?1 AND agent = ?2 AND seq >= ?3 AND seq < ?4 ORDER BY seq";

impl<'a> SqliteReader<'a> {
    pub(super) fn snapshot(
        place: &'a DatabasePlace,
        connection: &'a rusqlite::Connection,
    ) -> Result<Self, SqliteFailure> {
        Ok(Self {
            place,
            snapshot: connection.unchecked_transaction()?,
        })
    }

    /// Returns the feed of a realm after a number.
    pub(super) fn feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> Result<FeedPage, SqliteFailure> {
        feed::page(&self.snapshot, realm, after, limit)
    }

    /// Returns the last number of a realm's feed.
    pub(super) fn feed_head(&self, realm: RealmId) -> Result<u64, SqliteFailure> {
        Ok(feed::head(&self.snapshot, realm)?)
    }

    /// Returns an agent and what belongs to it.
    pub(super) fn transcript(
        &self,
        agent: AgentId,
        extent: Extent,
    ) -> Result<Transcript, SqliteFailure> {
        let found = self
            .agent(agent)?
            .ok_or(SqliteFailure::Refused(StoreError::NotFound { agent }))?;
        let realm = found.session.realm;
        let since = found.since.filter(|_| extent == Extent::Sent);
        let segments = match since {
            Some(_) => Vec::new(),
            None => self.segments(realm, agent)?,
        };
        let mut heads = SqliteHeads::new();
        let mut entries = Vec::with_capacity(found.session.entries.min(1 << 16) as usize);
        for segment in &segments {
            self.entries(realm, *segment, &mut heads, &mut entries)?;
        }
        let inherited = entries.len();
        let own = Segment {
            agent,
            from: since.unwrap_or(0),
            to: found.own,
        };
        self.entries(realm, own, &mut heads, &mut entries)?;
        let preamble = self.preamble(realm, found.preamble)?;
        let last = entries[inherited..]
            .iter()
            .rev()
            .map(|stored| &stored.entry);
        let open_calls = match last
            .into_iter()
            .find(|entry| entry.kind != EntryKind::Prompt)
        {
            Some(reply) if reply.kind == EntryKind::Reply => self.calls(realm, agent, reply.seq)?,
            _ => Vec::new(),
        };
        Ok(Transcript {
            record: found.session,
            dialect: found.dialect,
            preamble,
            segments,
            entries,
            inherited,
            open_calls,
        })
    }

    /// Returns what the host that has just taken an agent continues from.
    pub(super) fn taken(&self, agent: AgentId, epoch: Epoch) -> Result<Taken, SqliteFailure> {
        let transcript = self.transcript(agent, Extent::Sent)?;
        let realm = transcript.record.realm;
        let (seen, mail) = (self.seen(realm, agent)?, self.waiting(realm, agent)?);
        let runs = self.runs(realm, agent)?;
        let questions = question::own(self, realm, agent)?;
        Ok(Taken {
            epoch,
            transcript,
            seen,
            mail,
            runs,
            questions,
        })
    }

    fn preamble(&self, realm: RealmId, hash: Hash) -> Result<Encoded, SqliteFailure> {
        let found = content::find(&self.snapshot, realm.uuid().as_bytes(), hash)?;
        Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    /// Returns a content that entries share, if it is there.
    fn shared(
        &self,
        realm: &[u8],
        hash: Hash,
        heads: &mut SqliteHeads,
    ) -> Result<Option<Encoded>, SqliteFailure> {
        if let Some(head) = heads.get(&hash) {
            return Ok(Some(head.clone()));
        }
        let found = content::find(&self.snapshot, realm, hash)?;
        heads.extend(found.clone().map(|head| (hash, head)));
        Ok(found)
    }

    fn segments(&self, realm: RealmId, agent: AgentId) -> Result<Vec<Segment>, SqliteFailure> {
        let sql = "SELECT source, first, beyond FROM segment WHERE realm = ?1 AND agent = ?2 ORDER BY ordinal";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let rows =
            statement.query_map([realm.uuid().as_bytes(), agent.uuid().as_bytes()], |row| {
                let (from, to) = (
                    column::from_bits(row.get(1)?),
                    column::from_bits(row.get(2)?),
                );
                Ok(Segment {
                    agent: column::id(row, 0)?.into(),
                    from,
                    to,
                })
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds the entries of a segment. A hole is damage that needs no checksum to be seen.
    fn entries(
        &self,
        realm: RealmId,
        from: Segment,
        heads: &mut SqliteHeads,
        into: &mut Vec<StoredEntry>,
    ) -> Result<(), SqliteFailure> {
        let damaged = |seq| {
            SqliteFailure::Refused(StoreError::Damaged {
                agent: from.agent,
                seq,
            })
        };
        let (realm, agent) = (realm.uuid(), from.agent.uuid());
        let (first, beyond) = (column::bits(from.from), column::bits(from.to));
        let mut statement = self.snapshot.prepare_cached(ENTRY)?;
        let mut rows =
            statement.query(params![realm.as_bytes(), agent.as_bytes(), first, beyond])?;
        for seq in from.from..from.to {
            let row = rows.next()?.ok_or_else(|| damaged(seq))?;
            let mut stored = entry(row, from.agent)?.ok_or_else(|| damaged(seq))?;
            if stored.entry.seq != seq {
                return Err(damaged(seq));
            }
            for (column, into) in [(7, &mut stored.entry.head), (8, &mut stored.entry.loaded)] {
                if let Some(hash) = row.get(column)? {
                    let found = self.shared(realm.as_bytes(), hash, heads)?;
                    *into = Some(found.ok_or_else(|| damaged(seq))?);
                }
            }
            into.push(stored);
        }
        Ok(())
    }

    fn calls(
        &self,
        realm: RealmId,
        agent: AgentId,
        seq: u64,
    ) -> Result<Vec<OpenCall>, SqliteFailure> {
        let sql = "SELECT ordinal, id, tool, begun, is_error, content, operated FROM call
                   WHERE realm = ?1 AND agent = ?2 AND seq = ?3 ORDER BY ordinal";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let (realm, agent) = (realm.uuid(), agent.uuid());
        let key = params![realm.as_bytes(), agent.as_bytes(), column::bits(seq)];
        let rows = statement.query_map(key, |row| {
            Ok(OpenCall {
                key: CallKey {
                    seq,
                    ordinal: row.get(0)?,
                },
                id: row.get(1)?,
                tool: row.get(2)?,
                begun: row.get(3)?,
                outcome: outcome(row)?,
                operated: column::maybe_json(row, 6)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns how strongly the calls of an agent were held.
    pub(super) fn tiers(&self, agent: AgentId) -> Result<Vec<CallTier>, SqliteFailure> {
        let sql = "SELECT seq, ordinal, tier FROM call
                   WHERE realm = (SELECT realm FROM agent WHERE id = ?1) AND agent = ?1 AND tier IS NOT NULL
                   ORDER BY seq, ordinal";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let rows = statement.query_map([agent.uuid().as_bytes()], |row| {
            let named = Tier::named(row.get_ref(2)?.as_str()?);
            let tier = named.ok_or(rusqlite::Error::InvalidQuery)?;
            let key = CallKey {
                seq: column::from_bits(row.get(0)?),
                ordinal: row.get(1)?,
            };
            Ok(CallTier { key, tier })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn seen(&self, realm: RealmId, agent: AgentId) -> Result<Vec<SeenFile>, SqliteFailure> {
        let sql = "SELECT path, version FROM seen WHERE realm = ?1 AND agent = ?2 ORDER BY path";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let rows =
            statement.query_map([realm.uuid().as_bytes(), agent.uuid().as_bytes()], |row| {
                let path = column::path_from(row.get_ref(0)?.as_blob()?);
                Ok(SeenFile {
                    path,
                    version: column::from_bits(row.get(1)?),
                })
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Returns an entry, or none if its columns mean nothing.
fn entry(row: &Row<'_>, agent: AgentId) -> rusqlite::Result<Option<StoredEntry>> {
    let facts = row
        .get_ref(5)?
        .as_str_or_null()?
        .map(columns::reply_in)
        .transpose()
        .map(Option::flatten);
    let (Some(kind), Ok(reply)) = (column::kind_from(row.get(1)?), facts) else {
        return Ok(None);
    };
    let encoded = Encoded {
        bytes: Bytes::copy_from_slice(row.get_ref(6)?.as_blob()?),
        mark_at: column::mark(row, 4)?,
    };
    let (seq, checksum) = (
        column::from_bits(row.get(0)?),
        column::from_bits(row.get(3)?),
    );
    Ok(Some(StoredEntry {
        agent,
        at_ms: row.get(2)?,
        entry: NewEntry {
            seq,
            kind,
            head: None,
            loaded: None,
            encoded,
            checksum,
            reply,
        },
    }))
}

fn outcome(row: &Row<'_>) -> rusqlite::Result<Option<CallOutcome>> {
    let Some(content) = column::maybe_json::<Vec<_>>(row, 5)? else {
        return Ok(None);
    };
    Ok(Some(CallOutcome {
        content: Arc::from(content),
        is_error: row.get(4)?,
    }))
}
