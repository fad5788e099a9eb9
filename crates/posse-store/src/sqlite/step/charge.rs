//! What an agent spends: each charge, and the sum of all.

use posse_runtime::port::store::Charge;
use rusqlite::{OptionalExtension, params};

use super::{Failure, Writing, column};

impl Writing<'_> {
    /// Adds a charge, and adds it to the agent's total. One without a price makes a total without one:
    /// a sum of what is known would pass for the whole.
    pub(super) fn charge(&self, charge: &Charge) -> Result<(), Failure> {
        let (realm, agent, model) = (self.realm, self.agent, charge.model.as_str());
        let sql = "SELECT calls, input, cache_read, cache_write_5m, cache_write_1h, output, thinking, cost
                   FROM total WHERE realm = ?1 AND agent = ?2 AND model = ?3";
        let before = self
            .connection
            .prepare_cached(sql)?
            .query_row(params![realm, agent, model], |row| {
                Ok((row.get::<_, i64>(0)?, column::spent(row, 1)?))
            })
            .optional()?;
        let (nth, usage, cost) = match before {
            None => (0, charge.usage, charge.cost),
            Some((calls, (usage, cost))) => {
                (calls, usage + charge.usage, cost.zip(charge.cost).map(|(total, more)| total + more))
            }
        };
        let [a, b, c, d, e, f, g] = column::spend(&usage, cost);
        let sql = match nth {
            0 => {
                "INSERT INTO total (realm, agent, model, calls, input, cache_read, cache_write_5m,
                     cache_write_1h, output, thinking, cost)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            }
            _ => {
                "UPDATE total SET calls = ?4, input = ?5, cache_read = ?6, cache_write_5m = ?7,
                     cache_write_1h = ?8, output = ?9, thinking = ?10, cost = ?11
                 WHERE realm = ?1 AND agent = ?2 AND model = ?3"
            }
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![realm, agent, model, nth + 1, a, b, c, d, e, f, g])?;
        let [a, b, c, d, e, f, g] = column::spend(&charge.usage, charge.cost);
        let sql = "INSERT INTO charge (realm, agent, model, nth, at_ms, input, cache_read,
                       cache_write_5m, cache_write_1h, output, thinking, cost)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![realm, agent, model, nth, self.at_ms, a, b, c, d, e, f, g])?;
        Ok(())
    }
}
