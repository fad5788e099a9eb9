//! Sends a message: one statement finds the inbox, its room and its host.

use posse_port::store::{
    Address, Done, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES, Receipt, Refusal, Topics,
};
use posse_protocol::{AgentId, MailId, MailKind, Name};
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::{OperationError, OperationResult, SqliteFailure, USER, WriteTransaction, column};
use crate::sqlite::feed::NewFeedRow;

/// A message to be sent.
pub(super) struct Letter<'a> {
    pub(super) id: MailId,
    pub(super) kind: MailKind,
    pub(super) summary: &'a str,
    pub(super) body: &'a str,
    /// True if it fits into any inbox, however full.
    pub(super) always: bool,
}

impl Letter<'_> {
    /// Returns the bytes that it takes of an inbox.
    pub(super) fn bytes(&self) -> usize {
        self.summary.len() + self.body.len()
    }

    /// Refuses a message that is too long.
    pub(super) fn must_fit(&self) -> Result<(), OperationError> {
        match self.bytes() {
            bytes if bytes > MAIL_BYTES => Err(Refusal::TooLong {
                bytes,
                most: MAIL_BYTES,
            }
            .into()),
            _ => Ok(()),
        }
    }
}

/// Returns true if mail of this kind fits into any inbox. Notifications and idle reports are
/// bounded by the runs that were started; interruptions and dismissals must arrive even if peers
/// have filled the inbox.
pub(super) fn always_fits(kind: MailKind) -> bool {
    use MailKind::{Dismissal, Idle, Interruption, Notification};
    matches!(kind, Notification | Idle | Interruption | Dismissal)
}

/// An agent that is to receive a message.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) agent: AgentId,
    pub(super) name: String,
}

/// The sender of a message.
#[derive(Clone, Copy)]
pub(super) struct LetterFrom<'a> {
    /// None for a person.
    pub(super) agent: Option<AgentId>,
    pub(super) name: &'a str,
}

/// Sends a message to one agent or to all other members of a team. Returns the receipts.
pub(super) fn send(
    tx: &mut WriteTransaction<'_>,
    to: &Address,
    letter: &Letter<'_>,
) -> OperationResult {
    letter.must_fit()?;
    let recipients = match to {
        Address::Others { .. } if letter.kind != MailKind::Text => {
            return Err(Refusal::NotForAll.into());
        }
        Address::Others { team } => others(tx, team)?,
        one => vec![recipient(tx, one)?],
    };
    if let [recipient] = &recipients[..] {
        may_send(tx, letter.kind, recipient)?;
    } else {
        for (at, recipient) in recipients.iter().enumerate() {
            // An agent may have several names in a team.
            let before = recipients[..at]
                .iter()
                .filter(|other| other.agent == recipient.agent)
                .count();
            must_have_room(tx, recipient, before as u64, letter.bytes() as u64)?;
        }
    }
    let team = match to {
        Address::Agent(_) => None,
        Address::Member { team, .. } | Address::Others { team } => Some(team.as_str()),
    };
    let name = sender_name(tx, team)?;
    let from = LetterFrom {
        agent: tx.actor,
        name: &name,
    };
    let receipts = recipients
        .into_iter()
        .map(|recipient| deliver(tx, recipient, from, letter));
    Ok(Done::Sent(receipts.collect::<Result<_, _>>()?))
}

/// Refuses kinds that have operations of their own, and signals from an agent that is not above the
/// recipient.
fn may_send(
    tx: &WriteTransaction<'_>,
    kind: MailKind,
    to: &Recipient,
) -> Result<(), OperationError> {
    match kind {
        MailKind::Text | MailKind::Idle | MailKind::Notification => Ok(()),
        MailKind::Interruption | MailKind::Dismissal => {
            must_be_there(tx, to)?;
            must_be_above(tx, to)
        }
        MailKind::ShutdownRequest
        | MailKind::ShutdownResponse
        | MailKind::PlanApprovalRequest
        | MailKind::PlanApprovalResponse => {
            must_be_there(tx, to)?;
            Err(Refusal::NotYours {
                name: to.name.clone(),
            }
            .into())
        }
    }
}

/// Refuses a recipient that has no inbox and is not in the store. Plain messages need not ask:
/// [`count`] finds out.
pub(super) fn must_be_there(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
) -> Result<(), OperationError> {
    let sql = "SELECT 1 FROM inbox WHERE realm = ?1 AND agent = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![tx.realm_key(), to.agent.uuid().into_bytes()];
    match statement.exists(key)? || tx.path(to.agent)?.is_some() {
        true => Ok(()),
        false => Err(Refusal::NoSuchRecipient {
            to: to.name.clone(),
        }
        .into()),
    }
}

/// Refuses an agent that neither leads a team of the recipient nor created it.
pub(super) fn must_be_above(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
) -> Result<(), OperationError> {
    let Some(me) = tx.actor else { return Ok(()) };
    let sql =
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM agent WHERE realm = ?1 AND id = ?2 AND parent = ?3)
                   OR EXISTS (SELECT 1 FROM member INDEXED BY member_agent CROSS JOIN team
                              WHERE member.realm = ?1 AND agent = ?2 AND team.realm = ?1
                                  AND team.name = member.team AND lead = ?3)";
    let mut statement = tx.connection.prepare_cached(sql)?;
    match statement.exists(params![
        tx.realm_key(),
        to.agent.uuid().as_bytes(),
        me.uuid().as_bytes()
    ])? {
        true => Ok(()),
        false => Err(Refusal::NotYours {
            name: to.name.clone(),
        }
        .into()),
    }
}

/// Puts a message into one inbox, and has the recipient's host notified. Returns the receipt.
pub(super) fn deliver(
    tx: &mut WriteTransaction<'_>,
    to: Recipient,
    from: LetterFrom<'_>,
    letter: &Letter<'_>,
) -> Result<Receipt, OperationError> {
    let (number, host) = count(tx, &to, letter)?;
    put(tx, to.agent, number, from, letter)?;
    if let Some(host) = host {
        tx.changes.mail(host, to.agent);
    }
    let (number, held) = (column::from_bits(number), host.is_some());
    tx.changes.feed(
        tx.realm,
        NewFeedRow {
            agent: Some(to.agent),
            topics: Topics::MAIL,
            seq: number,
            count: 1,
        },
    );
    Ok(Receipt {
        to: to.agent,
        name: to.name,
        kind: letter.kind,
        number,
        held,
    })
}

/// Returns the recipient at an address of one agent.
pub(super) fn recipient(
    tx: &WriteTransaction<'_>,
    to: &Address,
) -> Result<Recipient, OperationError> {
    match to {
        Address::Agent(agent) => Ok(Recipient {
            agent: *agent,
            name: known_as(tx, *agent)?,
        }),
        Address::Member { team, name } => match tx.member(team.as_str(), name.as_str())? {
            Some(agent) => Ok(Recipient {
                agent,
                name: name.to_string(),
            }),
            None => {
                tx.must_exist(team)?;
                Err(Refusal::NoSuchRecipient {
                    to: name.to_string(),
                }
                .into())
            }
        },
        Address::Others { .. } => Err(Refusal::NotForAll.into()),
    }
}

/// Returns the name of an agent if no team is given: in its first team, else outside teams, else
/// its id.
pub(super) fn known_as(tx: &WriteTransaction<'_>, agent: AgentId) -> Result<String, SqliteFailure> {
    match tx.name_in_any(agent)? {
        Some(name) => Ok(name),
        None => Ok(tx.registered(agent)?.unwrap_or_else(|| agent.to_string())),
    }
}

/// Returns the members of a team except the actor.
fn others(tx: &WriteTransaction<'_>, team: &Name) -> Result<Vec<Recipient>, OperationError> {
    tx.must_exist(team)?;
    let sql = "SELECT name, agent FROM member WHERE realm = ?1 AND team = ?2 ORDER BY name";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let members = statement.query_map(params![tx.realm_key(), team.as_str()], |row| {
        Ok(Recipient {
            name: row.get(0)?,
            agent: column::id(row, 1)?.into(),
        })
    })?;
    let mut others: Vec<Recipient> = members.collect::<Result<_, _>>()?;
    others.retain(|member| tx.actor != Some(member.agent));
    Ok(others)
}

/// Returns the name of the sender as readers see it. A lead is called `team-lead`.
pub(super) fn sender_name(
    tx: &WriteTransaction<'_>,
    team: Option<&str>,
) -> Result<String, SqliteFailure> {
    let Some(agent) = tx.actor else {
        return Ok(USER.into());
    };
    let within = match team {
        Some(team) if tx.name_in(team, agent)?.is_some() => Some(team.to_owned()),
        _ => first_team(tx, agent)?,
    };
    match within {
        Some(team) if tx.lead(&team)? == Some(agent) => Ok(Name::LEAD.into()),
        Some(team) => Ok(tx
            .name_in(&team, agent)?
            .unwrap_or_else(|| agent.to_string())),
        None => known_as(tx, agent),
    }
}

/// Returns the first team that an agent is a member of.
fn first_team(tx: &WriteTransaction<'_>, agent: AgentId) -> Result<Option<String>, SqliteFailure> {
    let sql = "SELECT team FROM member INDEXED BY member_agent WHERE realm = ?1 AND agent = ?2
               ORDER BY team LIMIT 1";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let key = params![tx.realm_key(), agent.uuid().into_bytes()];
    Ok(statement.query_row(key, |row| row.get(0)).optional()?)
}

/// Refuses a recipient whose inbox has no room for a message of `bytes` bytes after `before` others
/// of the same length.
pub(super) fn must_have_room(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
    before: u64,
    bytes: u64,
) -> Result<(), OperationError> {
    let sql = "SELECT waiting, bytes FROM inbox WHERE realm = ?1 AND agent = ?2";
    let mut statement = tx.connection.prepare_cached(sql)?;
    let found = statement
        .query_row(params![tx.realm_key(), to.agent.uuid().as_bytes()], |row| {
            Ok((
                column::from_bits(row.get(0)?),
                column::from_bits(row.get(1)?),
            ))
        })
        .optional()?;
    match found {
        Some((waiting, used))
            if waiting + before >= INBOX_MAILS || used + (before + 1) * bytes > INBOX_BYTES =>
        {
            Err(Refusal::InboxFull {
                name: to.name.clone(),
                waiting,
            }
            .into())
        }
        None if tx.path(to.agent)?.is_none() => Err(Refusal::NoSuchRecipient {
            to: to.name.clone(),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Counts a message into an inbox, which is created for the first one. Returns its number there,
/// and the host to notify.
fn count(
    tx: &WriteTransaction<'_>,
    to: &Recipient,
    letter: &Letter<'_>,
) -> Result<(i64, Option<Uuid>), OperationError> {
    let (realm, agent, more) = (
        tx.realm_key(),
        to.agent.uuid().into_bytes(),
        letter.bytes() as i64,
    );
    let sql = "UPDATE inbox SET last = last + 1, waiting = waiting + 1, bytes = bytes + ?3
               WHERE realm = ?1 AND agent = ?2 AND waiting < ?4 AND bytes + ?3 <= ?5
               RETURNING last, host";
    // The limits stand in the statement itself, so that the common case is one look-up.
    let (mails, space) = match letter.always {
        true => (i64::MAX, i64::MAX),
        false => (column::bits(INBOX_MAILS), column::bits(INBOX_BYTES)),
    };
    let counted = tx
        .connection
        .prepare_cached(sql)?
        .query_row(params![realm, agent, more, mails, space], |row| {
            Ok((row.get(0)?, column::maybe_id(row, 1)?))
        })
        .optional()?;
    if let Some(counted) = counted {
        return Ok(counted);
    }
    must_have_room(tx, to, 0, letter.bytes() as u64)?;
    let sql = "INSERT INTO inbox (realm, agent, last, waiting, bytes, host)
               SELECT realm, id, 1, 1, ?3, host FROM agent WHERE realm = ?1 AND id = ?2
               RETURNING last, host";
    let mut statement = tx.connection.prepare_cached(sql)?;
    Ok(statement.query_row(params![realm, agent, more], |row| {
        Ok((row.get(0)?, column::maybe_id(row, 1)?))
    })?)
}

/// Writes a message that was counted.
fn put(
    tx: &WriteTransaction<'_>,
    to: AgentId,
    number: i64,
    from: LetterFrom<'_>,
    letter: &Letter<'_>,
) -> Result<(), SqliteFailure> {
    let sql = "INSERT INTO mail (realm, recipient, number, id, sender, sender_name, kind, sent_ms,
                   summary, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    tx.connection.prepare_cached(sql)?.execute(params![
        tx.realm_key(),
        to.uuid().as_bytes(),
        number,
        letter.id.uuid().as_bytes(),
        from.agent.map(|agent| agent.uuid().into_bytes()),
        from.name,
        letter.kind.as_str(),
        tx.at_ms,
        letter.summary,
        letter.body,
    ])?;
    Ok(())
}
