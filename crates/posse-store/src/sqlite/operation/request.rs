//! Requests for approval: sent by mail, and open until they are answered by mail.

use posse_port::store::{Address, Done, Receipt, Refusal};
use posse_protocol::{AgentId, MailId, MailKind, Name, Request, RequestKind, Response};
use rusqlite::{OptionalExtension, params};

use super::send::{Letter, LetterFrom, Recipient};
use super::{
    OperationError, OperationResult, SqliteFailure, WriteTransaction, column, lead, send, team,
};

/// A request that is open.
struct RequestRow {
    asker: Option<AgentId>,
    asked: AgentId,
    team: String,
}

/// Asks a member to shut down, or a lead to approve a plan. Returns the receipt of the mail.
pub(super) fn request(
    tx: &mut WriteTransaction<'_>,
    id: MailId,
    to: &Address,
    kind: RequestKind,
    text: &str,
) -> OperationResult {
    let body = column::json(&Request {
        request_id: id,
        text: text.to_owned(),
    })?;
    let letter = Letter {
        id,
        kind: kind.asking(),
        summary: kind.asked(),
        body: &body,
        always: false,
    };
    letter.must_fit()?;
    let mut recipient = send::recipient(tx, to)?;
    send::must_be_there(tx, &recipient)?;
    let team = about(tx, &recipient, to, kind)?;
    if kind == RequestKind::Plan && tx.actor == Some(recipient.agent) {
        // Only the team's first lead can approve a plan of the lead.
        recipient = lead::first_member(tx, &team)?.unwrap_or(recipient);
    }
    if tx.actor == Some(recipient.agent) {
        return Err(Refusal::NotYours {
            name: recipient.name,
        }
        .into());
    }
    if kind == RequestKind::Shutdown {
        send::must_be_above(tx, &recipient)?;
        if let Some(asked) = asked_already(tx, &recipient)? {
            return Ok(asked);
        }
    } else if tx.actor.is_none() {
        // A person does not ask for approval of a plan.
        return Err(Refusal::NotYours {
            name: recipient.name,
        }
        .into());
    }
    let name = send::sender_name(tx, Some(team.as_str()))?;
    let from = LetterFrom {
        agent: tx.actor,
        name: &name,
    };
    let asked = recipient.agent;
    let receipt = send::deliver(tx, recipient, from, &letter)?;
    let sql =
        "INSERT OR REPLACE INTO request (realm, id, team, kind, asker, asker_name, asked, number,
                   asked_ms, text)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    tx.connection.prepare_cached(sql)?.execute(params![
        tx.realm_key(),
        id.uuid().as_bytes(),
        team,
        kind.as_str(),
        tx.actor.map(|agent| agent.uuid().into_bytes()),
        name,
        asked.uuid().as_bytes(),
        column::bits(receipt.number),
        tx.at_ms,
        text,
    ])?;
    Ok(Done::Requested {
        request: id,
        receipt,
    })
}

/// Returns the team that a request is about: the team of a member that is asked to shut down, or of
/// the lead that is asked for approval.
fn about(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
    address: &Address,
    kind: RequestKind,
) -> Result<String, OperationError> {
    let is_lead = |team: &str| Ok::<_, SqliteFailure>(tx.lead(team)? == Some(to.agent));
    if let Address::Member { team, name } = address {
        return match (is_lead(team.as_str())?, kind) {
            (true, RequestKind::Plan) | (false, RequestKind::Shutdown) => Ok(team.to_string()),
            (true, RequestKind::Shutdown) => Err(Refusal::IsLead { name: name.clone() }.into()),
            (false, RequestKind::Plan) => Err(Refusal::NotLead { team: team.clone() }.into()),
        };
    }
    let sql = "SELECT DISTINCT team FROM member INDEXED BY member_agent
               WHERE realm = ?1 AND agent = ?2 ORDER BY team";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![tx.realm_key(), to.agent.uuid().as_bytes()])?;
    while let Some(row) = rows.next()? {
        let team: String = row.get(0)?;
        if is_lead(&team)? == (kind == RequestKind::Plan) {
            return Ok(team);
        }
    }
    Err(Refusal::NotYours {
        name: to.name.clone(),
    }
    .into())
}

/// Returns the open request to shut down that the recipient has, if any.
fn asked_already(tx: &WriteTransaction<'_>, to: &Recipient) -> Result<Option<Done>, SqliteFailure> {
    let sql = "SELECT id, number FROM request INDEXED BY request_asked
               WHERE realm = ?1 AND asked = ?2 AND kind = ?3 LIMIT 1";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![
        tx.realm_key(),
        to.agent.uuid().into_bytes(),
        RequestKind::Shutdown.as_str()
    ];
    let found = statement
        .query_row(key, |row| Ok((column::id(row, 0)?, row.get(1)?)))
        .optional()?;
    let Some((request, number)) = found else {
        return Ok(None);
    };
    let held = tx.host(to.agent)?.is_some();
    let receipt = Receipt {
        to: to.agent,
        name: to.name.clone(),
        kind: MailKind::ShutdownRequest,
        number: column::from_bits(number),
        held,
    };
    Ok(Some(Done::Requested {
        request: request.into(),
        receipt,
    }))
}

/// Answers an open request. Returns the receipt of the answer.
pub(super) fn respond(
    tx: &mut WriteTransaction<'_>,
    id: MailId,
    kind: RequestKind,
    response: &Response,
) -> OperationResult {
    let request = response.request_id;
    let body = column::json(response)?;
    let summary = kind.answered(response.approve);
    let letter = Letter {
        id,
        kind: kind.answering(),
        summary,
        body: &body,
        always: false,
    };
    letter.must_fit()?;
    let open = open(tx, request, kind)?;
    // A person may answer in place of a lead, but only a teammate knows whether it is ready to shut
    // down.
    let person = kind == RequestKind::Plan;
    let mine = |me, open: &RequestRow| me == open.asked && open.asker != Some(me);
    let open = open.filter(|open| tx.actor.map_or(person, |me| mine(me, open)));
    let RequestRow { asker, asked, team } = open.ok_or(Refusal::NotOpen { request })?;
    let asker = match asker {
        Some(asker) => Some(asker),
        // A person has no inbox; the lead gets the answer instead.
        None => tx.lead(&team)?,
    };
    let agent = asker.ok_or(Refusal::NotOpen { request })?;
    let name = match tx.name_in(&team, agent)? {
        Some(name) => name,
        None => send::known_as(tx, agent)?,
    };
    let sender = send::sender_name(tx, Some(&team))?;
    let from = LetterFrom {
        agent: tx.actor,
        name: &sender,
    };
    let receipt = send::deliver(tx, Recipient { agent, name }, from, &letter)?;
    let sql = "DELETE FROM request WHERE realm = ?1 AND id = ?2";
    tx.connection
        .prepare_cached(sql)?
        .execute([tx.realm_key(), request.uuid().into_bytes()])?;
    if kind == RequestKind::Shutdown && response.approve {
        resign(tx, &team, asked)?;
    }
    Ok(Done::Responded(receipt))
}

/// Removes a member that agreed to shut down from its team.
fn resign(tx: &mut WriteTransaction<'_>, team: &str, agent: AgentId) -> Result<(), OperationError> {
    let name = tx
        .name_in(team, agent)?
        .and_then(|name| name.parse::<Name>().ok());
    if let (Ok(team), Some(name)) = (team.parse::<Name>(), name) {
        team::leave(tx, &team, &name)?;
    }
    Ok(())
}

/// Returns a request that is open.
fn open(
    tx: &WriteTransaction<'_>,
    request: MailId,
    kind: RequestKind,
) -> Result<Option<RequestRow>, SqliteFailure> {
    let sql = "SELECT asker, asked, team FROM request WHERE realm = ?1 AND id = ?2 AND kind = ?3";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![tx.realm_key(), request.uuid().into_bytes(), kind.as_str()];
    let found = statement.query_row(key, |row| {
        let asker = column::maybe_id(row, 0)?.map(AgentId::from);
        Ok(RequestRow {
            asker,
            asked: column::id(row, 1)?.into(),
            team: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}
