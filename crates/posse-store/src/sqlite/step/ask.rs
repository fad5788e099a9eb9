//! Questions to a person: kept while they are open.

use posse_runtime::port::store::{AskChange, AskChangeKind};
use rusqlite::params;

use super::{Failure, Writing, column};

impl Writing<'_> {
    pub(super) fn ask(&self, AskChange { id, change }: &AskChange) -> Result<(), Failure> {
        let changed = match change {
            AskChangeKind::Asked { kind, about } => {
                let sql = "INSERT INTO ask (realm, agent, id, kind, asked_ms, about)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let kind = column::ask(*kind);
                self.connection.prepare_cached(sql)?.execute(params![
                    self.realm,
                    self.agent,
                    id.as_bytes(),
                    kind,
                    self.at_ms,
                    about
                ])?
            }
            AskChangeKind::Settled => {
                let sql = "DELETE FROM ask WHERE realm = ?1 AND agent = ?2 AND id = ?3";
                self.connection.prepare_cached(sql)?.execute(params![
                    self.realm,
                    self.agent,
                    id.as_bytes()
                ])?
            }
        };
        match changed {
            0 => Err(Failure::bad_step(format!("question {id} is not open"))),
            _ => Ok(()),
        }
    }
}
