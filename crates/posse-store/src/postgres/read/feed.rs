//! The feed of a realm.

use posse_port::store::{FeedPage, FeedRow, Topics};
use posse_protocol::{AgentId, RealmId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{PgFailure, PgReader, column};

/// Returns the rows after a number, with the realm's last number.
pub(in super::super) async fn page(
    reader: &PgReader<'_>,
    realm: RealmId,
    after: u64,
    limit: usize,
) -> Result<FeedPage, PgFailure> {
    // One query, so that rows and head are of one snapshot. Without rows there is still the head.
    let sql = "SELECT r.head, f.number, f.agent, f.at_ms, f.what, f.seq, f.count FROM realm r
        LEFT JOIN LATERAL (SELECT * FROM feed WHERE realm = r.id AND number > $2
            ORDER BY number LIMIT $3) f ON true
        WHERE r.id = $1 ORDER BY f.number";
    let (after, limit) = (column::most(after), column::most(limit));
    let rows = reader.rows(sql, &[&realm.uuid(), &after, &limit]).await?;
    let Some(first) = rows.first() else {
        return Ok(FeedPage::default());
    };
    Ok(FeedPage {
        head: column::bits(first, 0)?,
        rows: rows
            .iter()
            .filter_map(|row| found(row).transpose())
            .collect::<Result<_, _>>()?,
    })
}

/// Returns the row of the feed; `None` if there is only the head.
fn found(row: &Row) -> Result<Option<FeedRow>, PgFailure> {
    let Some(number) = column::get::<Option<i64>>(row, 1)? else {
        return Ok(None);
    };
    let agent: Option<Uuid> = column::get(row, 2)?;
    Ok(Some(FeedRow {
        number: number.cast_unsigned(),
        agent: agent.map(AgentId::from),
        at_ms: column::get(row, 3)?,
        topics: Topics::from_bits(column::get::<i32>(row, 4)?.cast_unsigned()),
        seq: column::bits(row, 5)?,
        count: column::bits(row, 6)?,
    }))
}
