//! Makes and removes teams, and who belongs to them.

use std::collections::BTreeSet;

use posse_port::store::{AgentState, Done, Greeting, Joining, Refusal};
use posse_protocol::{AgentId, MailKind, MemberState, Name, RequestKind};
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::send::{From, Letter, Recipient};
use super::{Failure, Outcome, Stop, WriteTransaction, column, request, send};
use crate::sqlite::free;

/// A number behind a name has at most so many digits.
const DIGITS: u32 = 9;

/// The name with the highest number behind some words.
pub(in crate::sqlite) const HIGHEST: &str = "SELECT name FROM used_name INDEXED BY used_name_number
    WHERE realm = ?1 AND team = ?2 AND rtrim(name, '0123456789') = ?3
        AND length(name) > length(?3) AND length(name) <= length(?3) + ?4 AND substr(name, length(?3) + 1, 1) <> '0'
    ORDER BY length(name) DESC, name DESC LIMIT 1";

/// A member that does not lead.
struct Follower {
    name: String,
    agent: AgentId,
    host: Option<Uuid>,
    ended: bool,
}

pub(super) fn create_team(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    description: &str,
    settings: &Map<String, Value>,
    lead: &Joining,
) -> Outcome {
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

pub(super) fn join(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    name: &Name,
    member: &Joining,
    greeting: Option<&Greeting>,
) -> Outcome {
    tx.must_exist(team)?;
    let name = free_name(tx, team, name)?;
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
            From {
                agent: Some(lead),
                name: Name::LEAD,
            },
            letter,
        )?;
    }
    Ok(Done::Joined { name, color })
}

/// Refuses to greet one whose inbox has no room. Who has none yet gets one.
fn may_be_greeted(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
    letter: &Letter<'_>,
) -> Result<(), Stop> {
    match send::must_have_room(tx, to, 0, letter.bytes() as u64) {
        Err(Stop::Refused(Refusal::NoSuchRecipient { .. })) => Ok(()),
        room => room,
    }
}

/// A name as it was wished, or with the number after the highest that it has in the team, or the first after
/// that which makes it free.
fn free_name(tx: &WriteTransaction<'_>, team: &Name, wished: &Name) -> Result<Name, Failure> {
    let mut name = wished.clone();
    let mut number = 0;
    while !is_free(tx, team, &name)? {
        number = match number {
            0 => highest(tx, team, wished)? + 1,
            number => number + 1,
        };
        name = wished.numbered(number);
    }
    Ok(name)
}

/// Whether nobody of the team has or had a name, nor an agent of the realm is registered under it.
fn is_free(tx: &WriteTransaction<'_>, team: &Name, name: &Name) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM used_name WHERE realm = ?1 AND team = ?2 AND name = ?3
               UNION ALL SELECT 1 FROM agent WHERE realm = ?1 AND name = ?3";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![tx.realm_key(), team.as_str(), name.as_str()];
    Ok(!name.is_reserved() && !statement.exists(key)?)
}

/// The highest number that a name has in the team; 1 if it has none.
fn highest(tx: &WriteTransaction<'_>, team: &Name, wished: &Name) -> Result<u32, Failure> {
    // A long name is shortened for its number, by as much as that has digits.
    let stems: BTreeSet<String> = (0..DIGITS)
        .map(|zeros| wished.numbered(10_u32.pow(zeros)).to_string())
        .map(|name| {
            name.trim_end_matches(|end: char| end.is_ascii_digit())
                .to_owned()
        })
        .collect();
    let mut statement = tx.connection.prepare_cached(HIGHEST)?;
    let mut highest = 1;
    for stem in stems {
        let key = params![tx.realm_key(), team.as_str(), stem, DIGITS];
        let found: Option<String> = statement.query_row(key, |row| row.get(0)).optional()?;
        let number = found
            .as_deref()
            .and_then(|name| name.strip_prefix(&*stem)?.parse().ok());
        let of_it = |number: &u32| Some(wished.numbered(*number).as_str()) == found.as_deref();
        highest = highest.max(number.filter(of_it).unwrap_or(1));
    }
    Ok(highest)
}

pub(super) fn hand_over(tx: &mut WriteTransaction<'_>, team: &Name, to: &Name) -> Outcome {
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

fn has_ended(tx: &WriteTransaction<'_>, agent: AgentId) -> Result<bool, Failure> {
    let sql = "SELECT state FROM agent WHERE realm = ?1 AND id = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = [tx.realm_key(), agent.uuid().into_bytes()];
    let state: Option<i64> = statement.query_row(key, |row| row.get(0)).optional()?;
    Ok(state
        .and_then(column::state_from)
        .map(AgentState::of_member)
        == Some(MemberState::ShutDown))
}

/// Makes another the lead of a team that one has led.
fn make_lead(
    tx: &mut WriteTransaction<'_>,
    team: &Name,
    from: AgentId,
    to: &Recipient,
) -> Result<(), Stop> {
    let (realm, next) = (tx.realm_key(), to.agent.uuid().into_bytes());
    let sql = "UPDATE team SET lead = ?3 WHERE realm = ?1 AND name = ?2";
    tx.connection
        .prepare_cached(sql)?
        .execute(params![realm, team.as_str(), next])?;
    rename_lead(tx, team)?;
    // Who leads cannot be asked to end.
    let sql = "DELETE FROM request WHERE realm = ?1 AND asked = ?2 AND team = ?3 AND kind = ?4";
    let key = params![realm, next, team.as_str(), RequestKind::Shutdown.as_str()];
    tx.connection.prepare_cached(sql)?.execute(key)?;
    request::pass_on(tx, team, from, to)
}

/// The member that has been there longest: the one who led first, if it still is there.
pub(super) fn first_member(
    tx: &WriteTransaction<'_>,
    team: &str,
) -> Result<Option<Recipient>, Failure> {
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

/// Has the first member lead a team that one has led; says whether that is another.
fn fall_back(tx: &mut WriteTransaction<'_>, team: &Name, from: AgentId) -> Result<bool, Stop> {
    match first_member(tx, team.as_str())?.filter(|first| first.agent != from) {
        Some(first) => make_lead(tx, team, from, &first).map(|()| true),
        None => Ok(false),
    }
}

/// Has the first members lead the teams that one led who has ended.
pub(in crate::sqlite) fn stop_leading(
    tx: &mut WriteTransaction<'_>,
    agent: AgentId,
) -> Result<(), Failure> {
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
            // Nothing of it can be refused: members have inboxes, and such mail always fits.
            Ok(_) | Err(Stop::Refused(_)) => {}
            Err(Stop::Failed(failure)) => return Err(failure),
        }
    }
    Ok(())
}

/// Gives the member that is called after what it was a name of its own, in the tasks that it has as well.
fn rename_lead(tx: &WriteTransaction<'_>, team: &Name) -> Result<(), Failure> {
    let realm = tx.realm_key();
    let name = free_name(tx, team, &Name::main())?;
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
    use_up(tx, team, &name)?;
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

/// Notes that a name is not to be given again.
fn use_up(tx: &WriteTransaction<'_>, team: &Name, name: &Name) -> Result<(), Failure> {
    let sql = "INSERT OR IGNORE INTO used_name (realm, team, name) VALUES (?1, ?2, ?3)";
    let mut statement = tx.connection.prepare_cached(sql)?;
    statement.execute(params![tx.realm_key(), team.as_str(), name.as_str()])?;
    Ok(())
}

pub(super) fn leave(tx: &mut WriteTransaction<'_>, team: &Name, name: &Name) -> Outcome {
    tx.must_exist(team)?;
    let nobody = || Refusal::NoSuchRecipient {
        to: name.to_string(),
    };
    let agent = tx
        .member(team.as_str(), name.as_str())?
        .ok_or_else(nobody)?;
    // Whoever leads need not be among the members of an archive.
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
    if lead == Some(agent) && !fall_back(tx, team, agent)? {
        return Err(Refusal::IsLead { name: name.clone() }.into());
    }
    let left = match name.as_str() {
        Name::LEAD => tx.name_in(team.as_str(), agent)?,
        name => Some(name.to_owned()),
    };
    let sql = "DELETE FROM member WHERE realm = ?1 AND team = ?2 AND name = ?3";
    let mut statement = tx.connection.prepare_cached(sql)?;
    statement.execute(params![tx.realm_key(), team.as_str(), left])?;
    free::tasks(tx.connection, tx.realm, agent, Some(team.as_str()), tx.news)?;
    free::unassign(tx.connection, tx.realm, agent, Some(team.as_str()), tx.news)?;
    let sql = "DELETE FROM request WHERE realm = ?1 AND (asked = ?2 OR asker = ?2) AND team = ?3";
    let key = params![tx.realm_key(), agent.uuid().into_bytes(), team.as_str()];
    tx.connection.prepare_cached(sql)?.execute(key)?;
    Ok(Done::Left)
}

/// Whether one has made another.
fn made(tx: &WriteTransaction<'_>, parent: AgentId, agent: AgentId) -> Result<bool, Failure> {
    let sql = "SELECT 1 FROM agent WHERE realm = ?1 AND id = ?2 AND parent = ?3";
    let key = [
        tx.realm_key(),
        agent.uuid().into_bytes(),
        parent.uuid().into_bytes(),
    ];
    Ok(tx.connection.prepare_cached(sql)?.exists(key)?)
}

pub(super) fn delete_team(tx: &mut WriteTransaction<'_>, team: &Name) -> Outcome {
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
        // Who has ended may be held by one that lives.
        if tx.gone(host)? {
            free::host(tx.connection, host, tx.news)?;
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
    // The list stays: a team of the same name goes on with its numbers.
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

/// Members other than the lead, with the hosts that hold them.
fn followers(tx: &WriteTransaction<'_>, team: &Name) -> Result<Vec<Follower>, Stop> {
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

/// The colour that was wished, or the first that no member has.
fn free_color(
    tx: &WriteTransaction<'_>,
    team: &Name,
    wished: Option<&str>,
) -> Result<String, Failure> {
    let sql = "SELECT color FROM member WHERE realm = ?1 AND team = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![tx.realm_key(), team.as_str()], |row| row.get(0))?;
    let taken: BTreeSet<String> = rows.collect::<Result<_, _>>()?;
    let wished = wished.filter(|color| !color.is_empty() && !taken.contains(*color));
    Ok(wished.map_or_else(|| posse_protocol::team::free_color(&taken), str::to_owned))
}

/// Adds a member as the last, and makes its inbox if it has none; gives its colour.
fn add(
    tx: &WriteTransaction<'_>,
    team: &Name,
    name: &Name,
    member: &Joining,
) -> Result<String, Failure> {
    let realm = tx.realm_key();
    let color = free_color(tx, team, member.color.as_deref())?;
    if !name.is_reserved() {
        use_up(tx, team, name)?;
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
