//! Who leads a team, and what passes to the next lead.

use posse_port::store::{AgentState, Done, Refusal};
use posse_protocol::{AgentId, MailId, MemberState, Name, Request, RequestKind};
use rusqlite::{OptionalExtension, params};

use super::send::{Letter, LetterFrom, Recipient};
use super::{OperationError, OperationResult, SqliteFailure, WriteTransaction, column, name, send};

/// Makes another member the lead, on behalf of the lead or a person.
pub(super) fn hand_over(tx: &mut WriteTransaction<'_>, team: &Name, to: &Name) -> OperationResult {
    tx.must_exist(team)?;
    let lead = tx.lead(team.as_str())?;
    if tx.actor.is_some() && tx.actor != lead {
        return Err(Refusal::NotLead { team: team.clone() }.into());
    }
    let next = tx.member(team.as_str(), to.as_str())?;
    let (Some(lead), Some(next)) = (lead, next) else {
        return Err(Refusal::NoSuchRecipient { to: to.to_string() }.into());
    };
    if lead == next {
        return Err(Refusal::IsLead { name: to.clone() }.into());
    }
    if has_ended(tx, next)? {
        return Err(Refusal::NotRunning {
            name: to.to_string(),
        }
        .into());
    }
    make_lead(
        tx,
        team,
        lead,
        &Recipient {
            agent: next,
            name: to.to_string(),
        },
    )?;
    Ok(Done::HandedOver)
}

/// Returns true if an agent has shut down.
fn has_ended(tx: &WriteTransaction<'_>, agent: AgentId) -> Result<bool, SqliteFailure> {
    let sql = "SELECT state FROM agent WHERE realm = ?1 AND id = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = [tx.realm_key(), agent.uuid().into_bytes()];
    let state: Option<i64> = statement.query_row(key, |row| row.get(0)).optional()?;
    Ok(state
        .and_then(column::state_from)
        .map(AgentState::of_member)
        == Some(MemberState::ShutDown))
}

/// Makes `to` the lead of a team that `from` has led.
fn make_lead(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    from: AgentId,
    to: &Recipient,
) -> Result<(), OperationError> {
    let (realm, next) = (tx.realm_key(), to.agent.uuid().into_bytes());
    let sql = "UPDATE team SET lead = ?3 WHERE realm = ?1 AND name = ?2";
    tx.connection
        .prepare_cached(sql)?
        .execute(params![realm, team.as_str(), next])?;
    rename_lead(tx, team)?;
    // A lead cannot be asked to shut down.
    let sql = "DELETE FROM request WHERE realm = ?1 AND asked = ?2 AND team = ?3 AND kind = ?4";
    let key = params![realm, next, team.as_str(), RequestKind::Shutdown.as_str()];
    tx.connection.prepare_cached(sql)?.execute(key)?;
    pass_on(tx, team, from, to)
}

/// Returns the member that joined first: the team's first lead, if that is still a member.
pub(super) fn first_member(
    tx: &WriteTransaction<'_>,
    team: &str,
) -> Result<Option<Recipient>, SqliteFailure> {
    let sql = "SELECT agent, name FROM member WHERE realm = ?1 AND team = ?2 ORDER BY nth LIMIT 1";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let found = statement.query_row(params![tx.realm_key(), team], |row| {
        Ok(Recipient {
            agent: column::id(row, 0)?.into(),
            name: row.get(1)?,
        })
    });
    Ok(found.optional()?)
}

/// Makes the first member the lead of a team that `from` has led. Returns false if `from` is the
/// first member.
pub(super) fn fall_back(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    from: AgentId,
) -> Result<bool, OperationError> {
    match first_member(tx, team.as_str())?.filter(|first| first.agent != from) {
        Some(first) => make_lead(tx, team, from, &first).map(|()| true),
        None => Ok(false),
    }
}

/// Gives up the lead of every team that an agent leads: their first members take over.
pub(in crate::sqlite) fn stop_leading(
    tx: &mut WriteTransaction<'_>,
    agent: AgentId,
) -> Result<(), SqliteFailure> {
    let sql = "SELECT name FROM team WHERE realm = ?1 AND lead = ?2 ORDER BY name";
    let teams: Vec<Name> = tx
        .connection
        .prepare_cached(sql)?
        .query_map([tx.realm_key(), agent.uuid().into_bytes()], |row| {
            column::name(row, 0)
        })?
        .collect::<Result<_, _>>()?;
    for team in teams {
        match fall_back(tx, &team, agent) {
            // A refusal is impossible: members have inboxes, and such mail always fits.
            Ok(_) | Err(OperationError::Refused(_)) => {}
            Err(OperationError::Failed(failure)) => return Err(failure),
        }
    }
    Ok(())
}

/// Gives the former lead a name of its own, in the tasks that it owns as well.
fn rename_lead(tx: &WriteTransaction<'_>, team: &Name) -> Result<(), SqliteFailure> {
    let realm = tx.realm_key();
    let name = name::free_name(tx, team, &Name::main())?;
    let sql =
        "UPDATE member SET name = ?3 WHERE realm = ?1 AND team = ?2 AND name = ?4 RETURNING agent";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![realm, team.as_str(), name.as_str(), Name::LEAD];
    let Some(agent) = statement
        .query_row(key, |row| column::id(row, 0))
        .optional()?
    else {
        return Ok(());
    };
    name::use_up(tx, team, &name)?;
    let sql = "UPDATE task SET owner = ?3 WHERE realm = ?1 AND team = ?2 AND owner_agent = ?4 AND owner = ?5";
    let key = params![
        realm,
        team.as_str(),
        name.as_str(),
        agent.as_bytes(),
        Name::LEAD
    ];
    tx.connection.prepare_cached(sql)?.execute(key)?;
    Ok(())
}

/// Sends the plans that await the approval of `from` to `to`, except the plans of `to` itself.
fn pass_on(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    from: AgentId,
    to: &Recipient,
) -> Result<(), OperationError> {
    let sql = "SELECT id, asker, asker_name, text FROM request INDEXED BY request_asked
               WHERE realm = ?1 AND asked = ?2 AND team = ?3 AND kind = ?4 ORDER BY asked_ms, id";
    let key = params![
        tx.realm_key(),
        from.uuid().into_bytes(),
        team.as_str(),
        RequestKind::Plan.as_str()
    ];
    type Plan = (MailId, Option<AgentId>, String, String);
    let plans: Vec<Plan> = tx
        .connection
        .prepare_cached(sql)?
        .query_map(key, |row| {
            let asker = column::maybe_id(row, 1)?.map(AgentId::from);
            Ok((column::id(row, 0)?.into(), asker, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    for (id, agent, name, text) in plans
        .into_iter()
        .filter(|(_, asker, ..)| *asker != Some(to.agent))
    {
        let body = column::json(&Request {
            request_id: id,
            text,
        })?;
        let kind = RequestKind::Plan;
        let letter = Letter {
            id,
            kind: kind.asking(),
            summary: kind.asked(),
            body: &body,
            always: true,
        };
        let receipt = send::deliver(tx, to.clone(), LetterFrom { agent, name: &name }, &letter)?;
        let sql = "UPDATE request SET asked = ?3, number = ?4 WHERE realm = ?1 AND id = ?2";
        let (id, number) = (id.uuid().into_bytes(), column::bits(receipt.number));
        let key = params![tx.realm_key(), id, to.agent.uuid().into_bytes(), number];
        tx.connection.prepare_cached(sql)?.execute(key)?;
    }
    Ok(())
}
