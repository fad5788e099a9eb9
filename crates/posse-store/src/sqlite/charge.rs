//! What an agent spends: each charge, and the totals by model and purpose.

use posse_port::store::Charge;
use rusqlite::{Connection, params};

use super::column;
use super::error::SqliteFailure;

/// Adds a charge, and adds it to the agent's total. A charge without a price makes the total
/// unknown: a partial sum would pass for the whole.
pub(super) fn book(
    connection: &Connection,
    realm: &[u8],
    agent: &[u8],
    charge: &Charge,
    at_ms: i64,
) -> Result<(), SqliteFailure> {
    let (model, purpose) = (charge.model.as_str(), column::purpose(charge.purpose));
    let sql =
        "SELECT purpose, calls, input, cache_read, cache_write_5m, cache_write_1h, output, thinking, cost, missed
               FROM total WHERE realm = ?1 AND agent = ?2 AND model = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![realm, agent, model])?;
    // Charges are numbered per model, across all purposes.
    let (mut nth, mut before) = (0, None);
    while let Some(row) = rows.next()? {
        let calls: i64 = row.get(1)?;
        nth += calls;
        if row.get::<_, i64>(0)? == purpose {
            before = Some((
                calls,
                column::spent(row, 2)?,
                column::from_bits(row.get(9)?),
            ));
        }
    }
    let (calls, usage, cost, missed) = match before {
        None => (0, charge.usage, charge.cost, charge.missed),
        Some((calls, (usage, cost), missed)) => {
            let cost = cost.zip(charge.cost).map(|(total, more)| total + more);
            (
                calls,
                usage + charge.usage,
                cost,
                missed.saturating_add(charge.missed),
            )
        }
    };
    let [a, b, c, d, e, f, g] = column::spend(&usage, cost);
    // Not an upsert: unsigned sums saturate in Rust, and would overflow in SQL.
    let sql = match calls {
        0 => {
            "INSERT INTO total (realm, agent, model, purpose, calls, input, cache_read, cache_write_5m,
                 cache_write_1h, output, thinking, cost, missed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        }
        _ => {
            "UPDATE total SET calls = ?5, input = ?6, cache_read = ?7, cache_write_5m = ?8,
                 cache_write_1h = ?9, output = ?10, thinking = ?11, cost = ?12, missed = ?13
             WHERE realm = ?1 AND agent = ?2 AND model = ?3 AND purpose = ?4"
        }
    };
    let mut statement = connection.prepare_cached(sql)?;
    let missed = column::bits(missed);
    statement.execute(params![
        realm,
        agent,
        model,
        purpose,
        calls + 1,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        missed
    ])?;
    let [a, b, c, d, e, f, g] = column::spend(&charge.usage, charge.cost);
    let sql = "INSERT INTO charge (realm, agent, model, nth, at_ms, input, cache_read,
                   cache_write_5m, cache_write_1h, output, thinking, cost, purpose, missed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let mut statement = connection.prepare_cached(sql)?;
    let missed = column::bits(charge.missed);
    statement.execute(params![
        realm, agent, model, nth, at_ms, a, b, c, d, e, f, g, purpose, missed
    ])?;
    Ok(())
}
