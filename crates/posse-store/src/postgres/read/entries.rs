//! Queries for parts of transcripts.

use posse_port::store::{EntryPage, Page, Segment, StoreError};
use posse_protocol::AgentId;
use uuid::Uuid;

use super::{PgFailure, PgReader, QueryValues, SEGMENTS, column, entries_of, segment};
use crate::entry_window::EntryWindow;

/// An agent's realm and its number of entries.
const LENGTH: &str = "SELECT a.realm, p.own FROM agent a
    JOIN pulse p ON p.realm = a.realm AND p.agent = a.id WHERE a.id = $1";

/// Entries of these segments, with columns in the order of [`super::entry`].
const WINDOW: &str = "SELECT e.* FROM unnest($2::uuid[], $3::int8[], $4::int8[])
        WITH ORDINALITY s (source, first, beyond, nth)
    CROSS JOIN LATERAL (
        SELECT seq, kind, at_ms, checksum, reply, head, mark_at, packed, bytes, loaded FROM entry
        WHERE realm = $1 AND agent = s.source AND seq >= s.first AND seq < s.beyond ORDER BY seq OFFSET 0) e
    ORDER BY s.nth, e.seq";

/// Returns a part of an agent's transcript.
pub(in super::super) async fn entries(
    reader: &PgReader<'_>,
    agent: AgentId,
    page: &Page<u64>,
) -> Result<EntryPage, PgFailure> {
    let (id, all) = (agent.uuid(), false);
    let (key, cut): (&QueryValues<'_>, &QueryValues<'_>) = (&[&id], &[&id, &all]);
    reader.prepare(&[LENGTH, SEGMENTS]).await?;
    // Entries and segments never change, and only the length grows: no snapshot is needed.
    let (length, segments) =
        tokio::join!(biased; reader.rows(LENGTH, key), reader.rows(SEGMENTS, cut));
    let (length, segments) = (length?, segments?);
    let missing = || PgFailure::Refused(StoreError::NotFound { agent });
    let length = length.first().ok_or_else(missing)?;
    let (realm, own) = (column::get::<Uuid>(length, 0)?, column::bits(length, 1)?);
    let mut segments: Vec<Segment> = segments.iter().map(segment).collect::<Result<_, _>>()?;
    segments.push(Segment {
        agent,
        from: 0,
        to: own,
    });
    let window = EntryWindow::new(page, &segments);
    let parts = window.parts.iter();
    let sources: Vec<Uuid> = parts.clone().map(|part| part.agent.uuid()).collect();
    let firsts: Vec<i64> = parts.clone().map(|part| part.from.cast_signed()).collect();
    let beyonds: Vec<i64> = parts.map(|part| part.to.cast_signed()).collect();
    let values: &QueryValues<'_> = &[&realm, &sources, &firsts, &beyonds];
    let rows = reader.rows(WINDOW, values).await?;
    let heads = reader.heads(realm.into(), rows.iter()).await?;
    let (mut rows, mut entries) = (rows.iter(), Vec::new());
    for part in &window.parts {
        entries_of(*part, &mut rows, &heads, &mut entries)?;
    }
    Ok(EntryPage {
        total: window.total,
        inherited: window.total - own,
        first: window.first,
        entries,
    })
}
