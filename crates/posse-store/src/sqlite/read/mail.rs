//! Inboxes, and what waits for an agent: messages, requests, background commands.

use posse_port::store::{BackgroundRun, CallKey, MailFilter, OpenRequest, Page, RequestKey};
use posse_protocol::{AgentId, Mail, RealmId, Sender};
use rusqlite::{OptionalExtension, Row, params};

use super::{SqliteFailure, SqliteReader, column};
use crate::columns;

/// A message's columns, in the order of [`mail`].
const MAIL: &str =
    "SELECT recipient, number, id, sender, sender_name, kind, sent_ms, entry, summary, body
    FROM mail";

/// A request's columns.
const REQUEST: &str = "SELECT id, kind, asker, asker_name, asked, text, asked_ms FROM request";

/// Returns which messages of an agent a page has: numbers beyond parameter 3, at most as many as
/// parameter 4 says. Those that wait are found however much was shown before them.
pub(in super::super) fn mails(filter: MailFilter, page: &Page<u64>) -> String {
    let (index, which) = match filter.waiting {
        true => ("INDEXED BY mail_waiting", "AND entry IS NULL"),
        false => ("", ""),
    };
    let (than, way) = columns::rising(page);
    format!(
        "{index} WHERE realm = ?1 AND recipient = ?2 {which} AND number {than} ?3
         ORDER BY number {way} LIMIT ?4"
    )
}

/// Returns which requests of a realm a page has: with an agent, parameter 2, those from or to it;
/// beyond the time 3 and the id 4, at most 5.
pub(in super::super) fn open(agent: Option<AgentId>, page: &Page<RequestKey>) -> String {
    let which = match agent {
        Some(_) => "(asked = ?2 OR asker = ?2)",
        None => "?2 IS NULL",
    };
    let (than, way) = columns::rising(page);
    let beyond = match page.from {
        Some(_) => format!("(asked_ms, id) {than} (?3, ?4)"),
        None => "?3 IS NULL AND ?4 IS NULL".into(),
    };
    format!("WHERE realm = ?1 AND {which} AND {beyond} ORDER BY asked_ms {way}, id {way} LIMIT ?5")
}

/// What still runs, however much has ended.
pub(in super::super) const RUNS: &str =
    "SELECT id, kind, description, output, began_ms, coalesce(call_seq, 0),
    coalesce(call_ordinal, 0) FROM run INDEXED BY run_open WHERE realm = ?1 AND agent = ?2 AND state = 0 ORDER BY began_ms, id";

impl SqliteReader<'_> {
    /// Returns an agent's mail, in the order of its inbox.
    pub(in super::super) fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        page: &Page<u64>,
    ) -> Result<Vec<Mail>, SqliteFailure> {
        let sql = format!("{MAIL} {}", mails(filter, page));
        let mut statement = self.snapshot.prepare_cached(&sql)?;
        let (edge, limit) = (columns::edge(page), column::most(page.limit));
        let (realm, agent) = (realm.uuid().into_bytes(), agent.uuid().into_bytes());
        let rows = statement.query_map(params![realm, agent, edge, limit], mail)?;
        Ok(page.in_order(rows.collect::<Result<_, _>>()?))
    }

    /// Returns how many messages wait for an agent.
    pub(super) fn waiting(&self, realm: RealmId, agent: AgentId) -> Result<u64, SqliteFailure> {
        let sql = "SELECT waiting FROM inbox WHERE realm = ?1 AND agent = ?2";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let key = [realm.uuid().into_bytes(), agent.uuid().into_bytes()];
        Ok(statement
            .query_row(key, |row| row.get(0))
            .optional()?
            .map_or(0, column::from_bits))
    }

    /// Returns requests that are open, oldest first: that an agent was asked or has asked, or all.
    pub(in super::super) fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
        page: &Page<RequestKey>,
    ) -> Result<Vec<OpenRequest>, SqliteFailure> {
        let sql = format!("{REQUEST} {}", open(agent, page));
        let mut statement = self.snapshot.prepare_cached(&sql)?;
        let key = params![
            realm.uuid().into_bytes(),
            agent.map(|agent| agent.uuid().into_bytes()),
            page.from.map(|from| from.asked_ms),
            page.from.map(|from| from.id.uuid().into_bytes()),
            column::most(page.limit),
        ];
        let rows = statement.query_map(key, |row| {
            Ok(OpenRequest {
                id: column::id(row, 0)?.into(),
                kind: column::request_kind(row, 1)?,
                from: sender(row, 2)?,
                to: column::id(row, 4)?.into(),
                text: row.get(5)?,
                asked_ms: row.get(6)?,
            })
        })?;
        Ok(page.in_order(rows.collect::<Result<_, _>>()?))
    }

    /// Background commands of an agent that have not ended, oldest first.
    pub(super) fn runs(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> Result<Vec<BackgroundRun>, SqliteFailure> {
        let mut statement = self.snapshot.prepare_cached(RUNS)?;
        let rows = statement.query_map(
            [realm.uuid().into_bytes(), agent.uuid().into_bytes()],
            |row| {
                Ok(BackgroundRun {
                    id: column::id(row, 0)?,
                    call: CallKey {
                        seq: column::from_bits(row.get(5)?),
                        ordinal: row.get(6)?,
                    },
                    kind: column::run_kind(row, 1)?,
                    description: row.get(2)?,
                    output: column::path_from(row.get_ref(3)?.as_blob()?),
                    began_ms: row.get(4)?,
                })
            },
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn mail(row: &Row<'_>) -> rusqlite::Result<Mail> {
    Ok(Mail {
        id: column::id(row, 2)?.into(),
        number: column::from_bits(row.get(1)?),
        to: column::id(row, 0)?.into(),
        from: sender(row, 3)?,
        kind: column::mail_kind(row, 5)?,
        summary: row.get(8)?,
        body: row.get(9)?,
        sent_ms: row.get(6)?,
        shown_in: row.get::<_, Option<i64>>(7)?.map(column::from_bits),
    })
}

/// Returns a sender by its id and its name, in columns from `at` on.
fn sender(row: &Row<'_>, at: usize) -> rusqlite::Result<Sender> {
    Ok(match column::maybe_id(row, at)? {
        Some(id) => Sender::Agent {
            id: id.into(),
            name: row.get(at + 1)?,
        },
        None => Sender::User,
    })
}
