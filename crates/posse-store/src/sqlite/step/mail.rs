//! Mail that an agent takes. It is shown by an entry of the same step, or it still waits.

use posse_port::store::{Step, TakenMail};
use rusqlite::{OptionalExtension, params};

use super::{SqliteFailure, StepWriter, brings, column};

impl StepWriter<'_> {
    /// Marks the mail that the step takes with the entries that show it.
    pub(super) fn take_mail(&self, step: &Step) -> Result<(), SqliteFailure> {
        let sql = "UPDATE mail SET entry = ?4
                   WHERE realm = ?1 AND recipient = ?2 AND number = ?3 AND entry IS NULL
                   RETURNING octet_length(summary) + octet_length(body)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut bytes = 0_i64;
        for TakenMail { number, entry } in &step.mail {
            if !brings(step, *entry) {
                return Err(SqliteFailure::bad_step(format!(
                    "mail {number} is shown by entry {entry} of another step"
                )));
            }
            let key = params![
                self.realm,
                self.agent,
                column::bits(*number),
                column::bits(*entry)
            ];
            let taken: Option<i64> = statement.query_row(key, |row| row.get(0)).optional()?;
            bytes += taken
                .ok_or_else(|| SqliteFailure::bad_step(format!("mail {number} does not wait")))?;
        }
        let sql = "UPDATE inbox SET waiting = waiting - ?3, bytes = bytes - ?4 WHERE realm = ?1 AND agent = ?2";
        let count = step.mail.len() as i64;
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.realm, self.agent, count, bytes])?;
        Ok(())
    }

    /// Returns the number of messages that wait for the agent.
    pub(super) fn mail_waiting(&self) -> Result<u64, SqliteFailure> {
        let sql = "SELECT waiting FROM inbox WHERE realm = ?1 AND agent = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let waiting = statement
            .query_row([self.realm, self.agent], |row| row.get(0))
            .optional()?;
        Ok(waiting.map_or(0, column::from_bits))
    }
}
