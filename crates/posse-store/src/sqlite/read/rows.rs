//! Light rows of agents, for lists of many.

use std::collections::HashMap;

use posse_port::store::{AgentFilter, AgentRow, AgentRows, RowFilter};
use posse_protocol::{AgentId, RealmId};
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::sessions::chosen;
use super::{SqliteFailure, SqliteReader, column};

/// A row's columns, in the order of [`row`]; the last is the host.
const ROW: &str = "SELECT id, parent, path, name, coalesce(agent_type, ''), coalesce(description, ''), model, mode,
    cwd, state, created_ms, used_ms,
    (SELECT waiting FROM inbox WHERE inbox.realm = agent.realm AND inbox.agent = agent.id), host FROM agent";

/// Which row one agent has.
pub(in super::super) const ONE: &str = "WHERE realm = ?1 AND id = ?2";

/// Returns light rows of a realm.
pub(in super::super) fn rows(
    reader: &SqliteReader<'_>,
    realm: RealmId,
    filter: &RowFilter,
) -> Result<AgentRows, SqliteFailure> {
    let mut found: Vec<(AgentRow, Option<Uuid>)> = Vec::new();
    let key = realm.uuid().into_bytes();
    match filter {
        RowFilter::Page(page) => {
            let all = AgentFilter {
                realm: Some(realm),
                ..AgentFilter::default()
            };
            let sql = format!("{ROW} {}", chosen(&all, page));
            let mut statement = reader.snapshot.prepare_cached(&sql)?;
            let none = None::<i64>;
            let from = page.from.as_ref();
            let values = params![
                key,
                none,
                none,
                column::most(page.limit),
                none,
                none,
                from.map(|from| from.realm.uuid().into_bytes()),
                from.map(|from| from.path.as_str()),
                from.map(|from| from.agent.uuid().into_bytes()),
            ];
            let rows = statement.query_map(values, row)?;
            found = page.in_order(rows.collect::<Result<_, _>>()?);
        }
        RowFilter::Agents(agents) => {
            let mut statement = reader.snapshot.prepare_cached(&format!("{ROW} {ONE}"))?;
            for agent in agents {
                let key = params![key, agent.uuid().into_bytes()];
                found.extend(statement.query_row(key, row).optional()?);
            }
        }
    }
    let mut alive = HashMap::new();
    let held = |(row, host)| AgentRow {
        holder: reader.holder(host, &mut alive),
        ..row
    };
    Ok(AgentRows {
        number: reader.feed_head(realm)?,
        rows: found.into_iter().map(held).collect(),
    })
}

fn row(row: &Row<'_>) -> rusqlite::Result<(AgentRow, Option<Uuid>)> {
    let mode: String = row.get(7)?;
    let waiting: Option<i64> = row.get(12)?;
    let found = AgentRow {
        agent: column::id(row, 0)?.into(),
        parent: column::maybe_id(row, 1)?.map(AgentId::from),
        path: row.get(2)?,
        name: column::maybe_name(row, 3)?,
        agent_type: row.get(4)?,
        description: row.get(5)?,
        model: row.get(6)?,
        mode: mode.parse().map_err(|_| column::senseless(7))?,
        cwd: column::path_from(row.get_ref(8)?.as_blob()?),
        state: column::state_from(row.get(9)?).ok_or_else(|| column::senseless(9))?,
        waiting: waiting.map_or(0, column::from_bits),
        holder: None,
        created_ms: row.get(10)?,
        used_ms: row.get(11)?,
    };
    Ok((found, column::maybe_id(row, 13)?))
}
