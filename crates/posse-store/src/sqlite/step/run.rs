//! Background commands. Each begins and ends once, in this order.

use posse_port::store::{RunChange, RunChangeKind};
use posse_protocol::RunStatus;
use rusqlite::params;

use super::{SqliteFailure, StepWriter, column};

impl StepWriter<'_> {
    /// Records the beginning or the end of a command.
    pub(super) fn run(&self, RunChange { id, change }: &RunChange) -> Result<(), SqliteFailure> {
        let (realm, agent, key) = (self.realm, self.agent, id.as_bytes());
        let changed = match change {
            RunChangeKind::Began {
                call,
                kind,
                description,
                output,
            } => {
                let sql =
                    "INSERT INTO run (realm, agent, id, kind, state, began_ms, description, output,
                               call_seq, call_ordinal)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
                self.connection.prepare_cached(sql)?.execute(params![
                    realm,
                    agent,
                    key,
                    kind.as_str(),
                    column::run(RunStatus::Running),
                    self.at_ms,
                    description,
                    column::path(output),
                    column::bits(call.seq),
                    call.ordinal,
                ])?
            }
            // A command that can continue has not ended.
            RunChangeKind::Ended(RunStatus::Running | RunStatus::Paused) => 0,
            RunChangeKind::Ended(status) => {
                let sql = "UPDATE run SET state = ?4
                           WHERE realm = ?1 AND agent = ?2 AND id = ?3 AND state = 0";
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![realm, agent, key, column::run(*status)])?
            }
        };
        match changed {
            0 => Err(SqliteFailure::bad_step(format!(
                "run {id} cannot become {change:?}"
            ))),
            _ => Ok(()),
        }
    }
}
