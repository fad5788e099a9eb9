//! Queries for what waits for an agent: messages, requests, background commands.

use posse_port::store::{BackgroundRun, CallKey, MailFilter, OpenRequest, Page, RequestKey};
use posse_protocol::{AgentId, Mail, MailKind, RealmId, RequestKind, RunKind, Sender};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PgFailure, PgReader, QueryValues, column};
use crate::columns;

/// A message's columns, in the order of [`message`].
pub(super) const MAIL: &str =
    "SELECT m.recipient, m.number, m.id, m.sender, m.sender_name, m.kind, m.sent_ms, m.entry,
        m.summary, m.body FROM mail m";

/// Columns of a request.
const REQUEST: &str = "SELECT id, kind, asker, asker_name, asked, text, asked_ms FROM request";

/// Number of messages that wait for an agent.
pub(super) const COUNT: &str = "SELECT waiting FROM inbox WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1";

/// Background commands that still run, oldest first. An index covers only these.
pub(super) const RUNS: &str =
    "SELECT id, kind, description, output, began_ms, call_seq, call_ordinal FROM run
    WHERE realm = (SELECT realm FROM agent WHERE id = $1) AND agent = $1 AND state = 0 ORDER BY began_ms, id";

impl PgReader<'_> {
    /// Returns an agent's mail, in the order of its inbox.
    pub(in super::super) async fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        page: &Page<u64>,
    ) -> Result<Vec<Mail>, PgFailure> {
        let which = if filter.waiting {
            "AND entry IS NULL"
        } else {
            ""
        };
        let (than, way) = columns::rising(page);
        let sql = format!(
            "{MAIL} WHERE realm = $1 AND recipient = $2 AND number {than} $3 {which}
             ORDER BY number {way} LIMIT $4"
        );
        let (edge, limit) = (columns::edge(page), column::most(page.limit));
        let rows = self
            .rows(&sql, &[&realm.uuid(), &agent.uuid(), &edge, &limit])
            .await?;
        let mails: Result<_, PgFailure> = rows.iter().map(message).collect();
        Ok(page.in_order(mails?))
    }

    /// Returns open requests, oldest first: those from or to `agent`, or all.
    pub(in super::super) async fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
        page: &Page<RequestKey>,
    ) -> Result<Vec<OpenRequest>, PgFailure> {
        let which = match agent {
            Some(_) => "(asked = $2 OR asker = $2)",
            None => "true",
        };
        let (than, way) = columns::rising(page);
        let beyond = match page.from {
            Some(_) => format!("(asked_ms, id) {than} ($3, $4)"),
            None => "true".into(),
        };
        let sql = format!(
            "{REQUEST} WHERE realm = $1 AND {which} AND {beyond}
             ORDER BY asked_ms {way}, id {way} LIMIT $5"
        );
        let types = [Type::UUID, Type::UUID, Type::INT8, Type::UUID, Type::INT8];
        let (realm, agent) = (realm.uuid(), agent.map(AgentId::uuid));
        let asked_ms = page.from.map(|from| from.asked_ms);
        let id = page.from.map(|from| from.id.uuid());
        let limit = column::most(page.limit);
        let values: &QueryValues<'_> = &[&realm, &agent, &asked_ms, &id, &limit];
        let rows = self.typed_rows(&sql, &types, values).await?;
        let request = |row: &Row| {
            Ok(OpenRequest {
                id: column::get::<Uuid>(row, 0)?.into(),
                kind: column::word(row, 1, RequestKind::ALL, RequestKind::as_str)?,
                from: sender(row, 2)?,
                to: column::get::<Uuid>(row, 4)?.into(),
                text: column::text(row, 5)?,
                asked_ms: column::get(row, 6)?,
            })
        };
        let requests: Result<_, PgFailure> = rows.iter().map(request).collect();
        Ok(page.in_order(requests?))
    }
}

/// Returns a background command.
pub(super) fn run(row: &Row) -> Result<BackgroundRun, PgFailure> {
    Ok(BackgroundRun {
        id: column::get(row, 0)?,
        call: CallKey {
            seq: column::bits(row, 5)?,
            ordinal: column::ordinal(row, 6)?,
        },
        kind: column::word(row, 1, [RunKind::Agent, RunKind::Shell], RunKind::as_str)?,
        description: column::text(row, 2)?,
        output: column::path(row, 3)?,
        began_ms: column::get(row, 4)?,
    })
}

pub(super) fn message(row: &Row) -> Result<Mail, PgFailure> {
    Ok(Mail {
        id: column::get::<Uuid>(row, 2)?.into(),
        number: column::bits(row, 1)?,
        to: column::get::<Uuid>(row, 0)?.into(),
        from: sender(row, 3)?,
        kind: column::word(row, 5, MailKind::ALL, MailKind::as_str)?,
        summary: column::text(row, 8)?,
        body: column::text(row, 9)?,
        sent_ms: column::get(row, 6)?,
        shown_in: column::maybe_bits(row, 7)?,
    })
}

/// Returns the sender in the columns `at` (id) and `at + 1` (name).
fn sender(row: &Row, at: usize) -> Result<Sender, PgFailure> {
    Ok(match column::get::<Option<Uuid>>(row, at)? {
        Some(id) => Sender::Agent {
            id: id.into(),
            name: column::text(row, at + 1)?,
        },
        None => Sender::User,
    })
}
