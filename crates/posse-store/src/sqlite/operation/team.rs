//! Creates and deletes teams, and changes their members.

use std::collections::BTreeSet;

use posse_port::store::{AgentState, Done, Greeting, Joining, Refusal};
use posse_protocol::{AgentId, MailKind, MemberState, Name};
use rusqlite::params;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::send::{Letter, LetterFrom, Recipient};
use super::{
    OperationError, OperationResult, SqliteFailure, WriteTransaction, column, lead, name, send,
};
use crate::sqlite::free;

/// A member that does not lead.
struct Follower {
    name: String,
    agent: AgentId,
    host: Option<Uuid>,
    ended: bool,
}

/// Creates a team with its lead.
pub(super) fn create_team(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    description: &str,
    settings: &Map<String, Value>,
    lead: &Joining,
) -> OperationResult {
    if tx.exists(team)? {
        return Err(Refusal::TeamExists { team: team.clone() }.into());
    }
    let sql = "INSERT INTO team (realm, name, lead, created_ms, here_ms, description, settings)
               VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)";
    tx.connection.prepare_cached(sql)?.execute(params![
        tx.realm_key(),
        team.as_str(),
        lead.agent.uuid().as_bytes(),
        tx.at_ms,
        description,
        column::json(settings)?,
    ])?;
    add(tx, team, &Name::lead(), lead)?;
    Ok(Done::TeamCreated)
}

/// Adds a member, and sends it the greeting. Returns the name and colour that it got.
pub(super) fn join(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    name: &Name,
    member: &Joining,
    greeting: Option<&Greeting>,
) -> OperationResult {
    tx.must_exist(team)?;
    let name = name::free_name(tx, team, name)?;
    let to = Recipient {
        agent: member.agent,
        name: name.to_string(),
    };
    let letter = greeting.map(|greeting| Letter {
        id: greeting.id,
        kind: MailKind::Text,
        summary: &greeting.summary,
        body: &member.prompt,
        always: false,
    });
    if let Some(letter) = &letter {
        letter.must_fit()?;
        may_be_greeted(tx, &to, letter)?;
    }
    let color = add(tx, team, &name, member)?;
    if let (Some(letter), Some(lead)) = (&letter, tx.lead(team.as_str())?) {
        send::deliver(
            tx,
            to,
            LetterFrom {
                agent: Some(lead),
                name: Name::LEAD,
            },
            letter,
        )?;
    }
    Ok(Done::Joined { name, color })
}

/// Refuses a greeting if the recipient has an inbox without room for it. An inbox that is missing
/// is created.
fn may_be_greeted(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
    letter: &Letter<'_>,
) -> Result<(), OperationError> {
    match send::must_have_room(tx, to, 0, letter.bytes() as u64) {
        Err(OperationError::Refused(Refusal::NoSuchRecipient { .. })) => Ok(()),
        room => room,
    }
}

/// Removes a member: its tasks become free, and its requests are closed.
pub(super) fn leave(tx: &mut WriteTransaction<'_>, team: &Name, name: &Name) -> OperationResult {
    tx.must_exist(team)?;
    let nobody = || Refusal::NoSuchRecipient {
        to: name.to_string(),
    };
    let agent = tx
        .member(team.as_str(), name.as_str())?
        .ok_or_else(nobody)?;
    // In a team that was imported, the lead need not be among the members.
    tx.name_in(team.as_str(), agent)?.ok_or_else(nobody)?;
    let lead = tx.lead(team.as_str())?;
    if let Some(me) = tx.actor
        && me != agent
        && Some(me) != lead
        && !made(tx, me, agent)?
    {
        return Err(Refusal::NotYours {
            name: name.to_string(),
        }
        .into());
    }
    if lead == Some(agent) && !lead::fall_back(tx, team, agent)? {
        return Err(Refusal::IsLead { name: name.clone() }.into());
    }
    let left = match name.as_str() {
        Name::LEAD => tx.name_in(team.as_str(), agent)?,
        name => Some(name.to_owned()),
    };
    let sql = "DELETE FROM member WHERE realm = ?1 AND team = ?2 AND name = ?3";
    let mut statement = tx.connection.prepare_cached(sql)?;
    statement.execute(params![tx.realm_key(), team.as_str(), left])?;
    free::tasks(
        tx.connection,
        tx.realm,
        agent,
        Some(team.as_str()),
        tx.changes,
    )?;
    free::unassign(
        tx.connection,
        tx.realm,
        agent,
        Some(team.as_str()),
        tx.changes,
    )?;
    let sql = "DELETE FROM request WHERE realm = ?1 AND (asked = ?2 OR asker = ?2) AND team = ?3";
    let key = params![tx.realm_key(), agent.uuid().into_bytes(), team.as_str()];
    tx.connection.prepare_cached(sql)?.execute(key)?;
    Ok(Done::Left)
}

/// Returns true if `parent` created `agent`.
fn made(tx: &WriteTransaction<'_>, parent: AgentId, agent: AgentId) -> Result<bool, SqliteFailure> {
    let sql = "SELECT 1 FROM agent WHERE realm = ?1 AND id = ?2 AND parent = ?3";
    let key = [
        tx.realm_key(),
        agent.uuid().into_bytes(),
        parent.uuid().into_bytes(),
    ];
    Ok(tx.connection.prepare_cached(sql)?.exists(key)?)
}

/// Deletes a team that has no running members besides its lead.
pub(super) fn delete_team(tx: &mut WriteTransaction<'_>, team: &Name) -> OperationResult {
    tx.must_exist(team)?;
    let members = followers(tx, team)?;
    let mut names = Vec::new();
    for Follower {
        name, host, ended, ..
    } in &members
    {
        if let Some(host) = host.filter(|_| !ended)
            && !tx.gone(host)?
        {
            names.push(name.clone());
        }
    }
    if !names.is_empty() {
        return Err(Refusal::MembersLive { names }.into());
    }
    let hosts: BTreeSet<Uuid> = members.iter().filter_map(|member| member.host).collect();
    for host in hosts {
        // A member that has shut down may be held by a host that is alive.
        if tx.gone(host)? {
            free::host(tx.connection, host, tx.changes)?;
        }
    }
    let realm = tx.realm_key();
    for Follower { agent, .. } in members {
        let sql = "SELECT 1 FROM member WHERE realm = ?1 AND agent = ?2 AND team <> ?3";
        let key = params![realm, agent.uuid().into_bytes(), team.as_str()];
        if tx.connection.prepare_cached(sql)?.exists(key)? {
            continue;
        }
        for sql in [
            "DELETE FROM mail WHERE realm = ?1 AND recipient = ?2",
            "DELETE FROM inbox WHERE realm = ?1 AND agent = ?2",
        ] {
            tx.connection
                .prepare_cached(sql)?
                .execute(params![realm, agent.uuid().as_bytes()])?;
        }
    }
    // The list stays: a later team of the same name continues its numbers.
    for sql in [
        "DELETE FROM team WHERE realm = ?1 AND name = ?2",
        "DELETE FROM member WHERE realm = ?1 AND team = ?2",
        "DELETE FROM used_name WHERE realm = ?1 AND team = ?2",
        "DELETE FROM request WHERE realm = ?1 AND team = ?2",
        "DELETE FROM note WHERE realm = ?1 AND team = ?2",
        "DELETE FROM task WHERE realm = ?1 AND team = ?2",
        "DELETE FROM dependency WHERE realm = ?1 AND team = ?2",
    ] {
        tx.connection
            .prepare_cached(sql)?
            .execute(params![realm, team.as_str()])?;
    }
    Ok(Done::TeamDeleted)
}

/// Returns the members except the lead, with the hosts that hold them.
fn followers(tx: &WriteTransaction<'_>, team: &Name) -> Result<Vec<Follower>, OperationError> {
    let sql = "SELECT m.name, m.agent, a.host, a.state FROM member m
               LEFT JOIN agent a ON a.realm = m.realm AND a.id = m.agent
               WHERE m.realm = ?1 AND m.team = ?2
                   AND m.agent <> (SELECT lead FROM team WHERE realm = ?1 AND name = ?2)
               ORDER BY m.nth";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![tx.realm_key(), team.as_str()], |row| {
        let state: Option<i64> = row.get(3)?;
        let ended = state
            .and_then(column::state_from)
            .map(AgentState::of_member);
        Ok(Follower {
            name: row.get(0)?,
            agent: column::id(row, 1)?.into(),
            host: column::maybe_id(row, 2)?,
            ended: ended == Some(MemberState::ShutDown),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the colour that was asked for, if it is free, else the first that no member has.
fn free_color(
    tx: &WriteTransaction<'_>,
    team: &Name,
    wished: Option<&str>,
) -> Result<String, SqliteFailure> {
    let sql = "SELECT color FROM member WHERE realm = ?1 AND team = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![tx.realm_key(), team.as_str()], |row| row.get(0))?;
    let taken: BTreeSet<String> = rows.collect::<Result<_, _>>()?;
    let wished = wished.filter(|color| !color.is_empty() && !taken.contains(*color));
    Ok(wished.map_or_else(|| posse_protocol::team::free_color(&taken), str::to_owned))
}

/// Adds a member behind the others, and creates its inbox if it has none. Returns its colour.
fn add(
    tx: &WriteTransaction<'_>,
    team: &Name,
    name: &Name,
    member: &Joining,
) -> Result<String, SqliteFailure> {
    let realm = tx.realm_key();
    let color = free_color(tx, team, member.color.as_deref())?;
    if !name.is_reserved() {
        name::use_up(tx, team, name)?;
    }
    let sql = "SELECT coalesce(max(nth) + 1, 0) FROM member WHERE realm = ?1 AND team = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let nth: i64 = statement.query_row(params![realm, team.as_str()], |row| row.get(0))?;
    let sql =
        "INSERT INTO member (realm, team, name, nth, agent, agent_type, model, prompt, color, backend,
                   cwd, joined_ms, role, takes)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    tx.connection.prepare_cached(sql)?.execute(params![
        realm,
        team.as_str(),
        name.as_str(),
        nth,
        member.agent.uuid().as_bytes(),
        member.agent_type,
        member.model,
        member.prompt,
        color,
        member.backend,
        column::path(&member.cwd),
        tx.at_ms,
        member.role,
        column::takes(&member.takes)?,
    ])?;
    let sql = "INSERT OR IGNORE INTO inbox (realm, agent, last, waiting, bytes, host)
               VALUES (?1, ?2, 0, 0, 0, (SELECT host FROM agent WHERE realm = ?1 AND id = ?2))";
    tx.connection
        .prepare_cached(sql)?
        .execute(params![realm, member.agent.uuid().as_bytes()])?;
    Ok(color)
}
