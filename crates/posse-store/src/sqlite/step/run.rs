//! Background runs: each begins, ends, and is told of, once and in this order.

use posse_runtime::port::store::{RunChange, RunChangeKind, RunState, Step};
use rusqlite::params;

use super::{Failure, Writing, brings, column};

impl Writing<'_> {
    pub(super) fn run(&self, RunChange { id, change }: &RunChange, step: &Step) -> Result<(), Failure> {
        let (realm, agent, key) = (self.realm, self.agent, id.as_bytes());
        let changed = match change {
            RunChangeKind::Began { kind, description, output } => {
                let sql = "INSERT INTO run (realm, agent, id, kind, state, began_ms, description, output)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let (state, output) = (column::run(RunState::Running), column::path(output));
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![realm, agent, key, kind, state, self.at_ms, description, output])?
            }
            RunChangeKind::Ended(RunState::Running) => 0,
            RunChangeKind::Ended(state) => {
                let sql = "UPDATE run SET state = ?4
                           WHERE realm = ?1 AND agent = ?2 AND id = ?3 AND state = 0";
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![realm, agent, key, column::run(*state)])?
            }
            RunChangeKind::Told { entry } if !brings(step, *entry) => 0,
            RunChangeKind::Told { entry } => {
                let sql = "UPDATE run SET told = ?4
                           WHERE realm = ?1 AND agent = ?2 AND id = ?3 AND state <> 0 AND told IS NULL";
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![realm, agent, key, column::bits(*entry)])?
            }
        };
        match changed {
            0 => Err(Failure::bad_step(format!("run {id} cannot become {change:?}"))),
            _ => Ok(()),
        }
    }
}
