//! Sends a message: one statement finds the inbox, its room and its host.

use posse_protocol::{AgentId, MailId, MailKind, Name};
use posse_runtime::port::store::{Address, Done, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES, Receipt, Refusal};
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use super::{Acting, Failure, Outcome, Stop, USER, column};

/// What is sent.
pub(super) struct Letter<'a> {
    pub(super) id: MailId,
    pub(super) kind: MailKind,
    pub(super) summary: &'a str,
    pub(super) body: &'a str,
}

impl Letter<'_> {
    fn bytes(&self) -> usize {
        self.summary.len() + self.body.len()
    }

    /// Whether it has room in any inbox: there are no more of these than runs that were started.
    fn always_fits(&self) -> bool {
        self.kind == MailKind::Notification
    }
}

/// One who is to get it.
struct Recipient {
    agent: AgentId,
    name: String,
}

impl Acting<'_> {
    pub(super) fn send(&mut self, to: &Address, letter: &Letter<'_>) -> Outcome {
        let bytes = letter.bytes();
        if bytes > MAIL_BYTES {
            return Err(Refusal::TooLong { bytes, most: MAIL_BYTES }.into());
        }
        let recipients = self.recipients(to, letter)?;
        if recipients.len() > 1 {
            for (at, recipient) in recipients.iter().enumerate() {
                // An agent may have several names in a team.
                let before = recipients[..at].iter().filter(|other| other.agent == recipient.agent).count();
                self.must_have_room(recipient, before as u64, bytes as u64)?;
            }
        }
        let team = match to {
            Address::Agent(_) => None,
            Address::Member { team, .. } | Address::Others { team } => Some(team),
        };
        let sender = self.sender_name(team)?;
        let mut receipts = Vec::with_capacity(recipients.len());
        for recipient in recipients {
            let (number, host) = self.count(&recipient, letter)?;
            self.put(recipient.agent, number, &sender, letter)?;
            if let Some(host) = host {
                self.news.mail(host, recipient.agent);
            }
            let Recipient { agent: to, name, .. } = recipient;
            receipts.push(Receipt { to, name, number: column::from_bits(number), held: host.is_some() });
        }
        Ok(Done::Sent(receipts))
    }

    /// Who gets it; of several the first by name first.
    fn recipients(&self, to: &Address, letter: &Letter<'_>) -> Result<Vec<Recipient>, Stop> {
        match to {
            Address::Agent(agent) => {
                let name = match self.name_in_any(*agent)? {
                    Some(name) => name,
                    None => self.registered(*agent)?.unwrap_or_else(|| agent.to_string()),
                };
                Ok(vec![Recipient { agent: *agent, name }])
            }
            Address::Member { team, name } => match self.member(team.as_str(), name.as_str())? {
                Some(agent) => Ok(vec![Recipient { agent, name: name.to_string() }]),
                None => {
                    self.must_exist(team)?;
                    Err(Refusal::NoSuchRecipient { to: name.to_string() }.into())
                }
            },
            Address::Others { .. } if letter.kind != MailKind::Text => Err(Refusal::NotForAll.into()),
            Address::Others { team } => self.others(team),
        }
    }

    fn others(&self, team: &Name) -> Result<Vec<Recipient>, Stop> {
        self.must_exist(team)?;
        let sql = "SELECT name, agent FROM member WHERE realm = ?1 AND team = ?2 ORDER BY name";
        let mut statement = self.connection.prepare_cached(sql)?;
        let members = statement.query_map(params![self.realm_key(), team.as_str()], |row| {
            Ok(Recipient { name: row.get(0)?, agent: column::id(row, 1)?.into() })
        })?;
        let mut others: Vec<Recipient> = members.collect::<Result<_, _>>()?;
        others.retain(|member| self.actor != Some(member.agent));
        Ok(others)
    }

    /// What the sender is called by those who read it.
    fn sender_name(&self, team: Option<&Name>) -> Result<String, Failure> {
        let Some(agent) = self.actor else { return Ok(USER.into()) };
        if let Some(team) = team
            && let Some(name) = self.name_in(team.as_str(), agent)?
        {
            return Ok(name);
        }
        match self.name_in_any(agent)? {
            Some(name) => Ok(name),
            None => Ok(self.registered(agent)?.unwrap_or_else(|| agent.to_string())),
        }
    }

    /// Refuses one who cannot get a message of so many bytes, after some others of the same length.
    fn must_have_room(&self, to: &Recipient, before: u64, bytes: u64) -> Result<(), Stop> {
        let sql = "SELECT waiting, bytes FROM inbox WHERE realm = ?1 AND agent = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement
            .query_row(params![self.realm_key(), to.agent.uuid().as_bytes()], |row| {
                Ok((column::from_bits(row.get(0)?), column::from_bits(row.get(1)?)))
            })
            .optional()?;
        match found {
            Some((waiting, used))
                if waiting + before >= INBOX_MAILS || used + (before + 1) * bytes > INBOX_BYTES =>
            {
                Err(Refusal::InboxFull { name: to.name.clone(), waiting }.into())
            }
            None if self.path(to.agent)?.is_none() => {
                Err(Refusal::NoSuchRecipient { to: to.name.clone() }.into())
            }
            _ => Ok(()),
        }
    }

    /// Counts a message into an inbox, and gives its number there and the host to be told. An agent's
    /// inbox is made with the first one.
    fn count(&self, to: &Recipient, letter: &Letter<'_>) -> Result<(i64, Option<Uuid>), Stop> {
        let (realm, agent, more) = (self.realm_key(), to.agent.uuid().into_bytes(), letter.bytes() as i64);
        let sql = "UPDATE inbox SET last = last + 1, waiting = waiting + 1, bytes = bytes + ?3
                   WHERE realm = ?1 AND agent = ?2 AND waiting < ?4 AND bytes + ?3 <= ?5
                   RETURNING last, host";
        let (mails, space) = match letter.always_fits() {
            true => (i64::MAX, i64::MAX),
            false => (column::bits(INBOX_MAILS), column::bits(INBOX_BYTES)),
        };
        let counted = self
            .connection
            .prepare_cached(sql)?
            .query_row(params![realm, agent, more, mails, space], |row| {
                Ok((row.get(0)?, column::maybe_id(row, 1)?))
            })
            .optional()?;
        if let Some(counted) = counted {
            return Ok(counted);
        }
        self.must_have_room(to, 0, letter.bytes() as u64)?;
        let sql = "INSERT INTO inbox (realm, agent, last, waiting, bytes, host)
                   SELECT realm, id, 1, 1, ?3, host FROM agent WHERE realm = ?1 AND id = ?2
                   RETURNING last, host";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement
            .query_row(params![realm, agent, more], |row| Ok((row.get(0)?, column::maybe_id(row, 1)?)))?)
    }

    fn put(&self, to: AgentId, number: i64, sender: &str, letter: &Letter<'_>) -> Result<(), Failure> {
        let sql = "INSERT INTO mail (realm, recipient, number, id, sender, sender_name, kind, sent_ms,
                       summary, body)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.realm_key(),
            to.uuid().as_bytes(),
            number,
            letter.id.uuid().as_bytes(),
            self.actor.map(|agent| agent.uuid().into_bytes()),
            sender,
            letter.kind.as_str(),
            self.at_ms,
            letter.summary,
            letter.body,
        ])?;
        Ok(())
    }
}
