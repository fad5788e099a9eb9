//! Queries for light rows of agents, for lists of many.

use posse_port::store::{AgentFilter, AgentRow, AgentRows, AgentState, RowFilter};
use posse_protocol::{AgentId, RealmId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::sessions::{chosen, holder};
use super::{PgFailure, PgReader, QueryValues, column, nul};
use crate::columns;

/// Rows of the agents `chosen`, with columns in the order of [`row`]. The limits force the planner
/// to look up one agent after another, whatever its statistics say.
const ROWS: &str = "SELECT a.id, a.parent, a.path, a.name, coalesce(a.agent_type, ''), coalesce(a.description, ''),
        a.model, p.mode, a.cwd, p.state, a.created_ms, p.used_ms, coalesce(i.waiting, 0), h.pid, h.node
    FROM chosen c
    CROSS JOIN LATERAL (SELECT * FROM agent WHERE realm = c.realm AND id = c.id LIMIT 1) a
    CROSS JOIN LATERAL (SELECT mode, state, used_ms, host FROM pulse WHERE realm = c.realm AND agent = c.id LIMIT 1) p
    LEFT JOIN LATERAL (SELECT waiting FROM inbox WHERE realm = c.realm AND agent = c.id LIMIT 1) i ON true
    LEFT JOIN LATERAL (SELECT pid, node FROM host WHERE id = p.host AND NOT gone(id) LIMIT 1) h ON true";

/// The last number of a realm's feed.
const HEAD: &str = "SELECT head FROM realm WHERE id = $1";

/// Returns light rows of a realm.
pub(in super::super) async fn agent_rows(
    reader: &PgReader<'_>,
    realm: RealmId,
    filter: &RowFilter,
) -> Result<AgentRows, PgFailure> {
    let key = realm.uuid();
    match filter {
        RowFilter::Page(page) => {
            let all = AgentFilter {
                realm: Some(realm),
                ..AgentFilter::default()
            };
            let sql = chosen(&all, page, ROWS);
            let types = [
                Type::UUID,
                Type::UUID,
                Type::TEXT,
                Type::INT8,
                Type::UUID,
                Type::UUID,
                Type::UUID,
                Type::TEXT,
                Type::UUID,
            ];
            let (no_id, no_text) = (None::<Uuid>, None::<&str>);
            let from = page.from.as_ref();
            let path = from.map(|from| nul::hide_text(&from.path));
            let agent = from.map(|from| from.agent.uuid());
            let limit = column::most(page.limit);
            let values: &QueryValues<'_> = &[
                &key, &no_id, &no_text, &limit, &no_id, &no_id, &no_id, &path, &agent,
            ];
            with_head(reader, key, &sql, &types, values).await
        }
        RowFilter::Agents(agents) => {
            let sql = format!(
                    "WITH chosen AS MATERIALIZED
                         (SELECT $1::uuid AS realm, id, nth FROM unnest($2::uuid[]) WITH ORDINALITY ids (id, nth))
                     {ROWS} ORDER BY c.nth"
                );
            let ids: Vec<Uuid> = agents.iter().map(|agent| agent.uuid()).collect();
            let types = [Type::UUID, Type::UUID_ARRAY];
            with_head(reader, key, &sql, &types, &[&key, &ids]).await
        }
    }
}

/// Returns the rows of a query and the feed's last number, from one snapshot.
async fn with_head(
    reader: &PgReader<'_>,
    realm: Uuid,
    sql: &str,
    types: &[Type],
    values: &QueryValues<'_>,
) -> Result<AgentRows, PgFailure> {
    reader.client.prepare_typed_cached(sql, types).await?;
    reader.prepare(&[HEAD]).await?;
    let about: &QueryValues<'_> = &[&realm];
    let (begun, rows, head, ended) = tokio::join!(
        biased;
        reader.begin(),
        reader.typed_rows(sql, types, values),
        reader.rows(HEAD, about),
        reader.end(),
    );
    begun?;
    let (rows, head) = (rows?, head?);
    ended?;
    Ok(AgentRows {
        number: head.first().map_or(Ok(0), |row| column::bits(row, 0))?,
        rows: rows
            .iter()
            .map(|found| row(found, reader.node))
            .collect::<Result<_, _>>()?,
    })
}

/// Returns a row as seen from the machine `node`.
fn row(row: &Row, node: &str) -> Result<AgentRow, PgFailure> {
    let (pid, on) = (
        column::get::<Option<i32>>(row, 13)?,
        column::get::<Option<&str>>(row, 14)?,
    );
    Ok(AgentRow {
        agent: column::get::<Uuid>(row, 0)?.into(),
        parent: column::get::<Option<Uuid>>(row, 1)?.map(AgentId::from),
        path: column::text(row, 2)?,
        name: column::maybe_name(row, 3)?,
        agent_type: column::text(row, 4)?,
        description: column::text(row, 5)?,
        model: column::text(row, 6)?,
        mode: column::get::<&str>(row, 7)?
            .parse()
            .map_err(|_| column::senseless(7))?,
        cwd: column::path(row, 8)?,
        state: column::one_of(row, 9, AgentState::ALL, columns::state)?,
        waiting: column::bits(row, 12)?,
        holder: pid.zip(on).map(|(pid, on)| holder(pid, on, node)),
        created_ms: column::get(row, 10)?,
        used_ms: column::get(row, 11)?,
    })
}
