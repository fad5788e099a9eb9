//! Mail: inboxes and deliveries.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_port::store::{
    Address, Done, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES, MailFilter, OpResult, Receipt, Refusal,
    Step, Wake,
};
use posse_protocol::{AgentId, Mail, MailId, MailKind, Name, RealmId, Sender};

use super::operation::Doer;
use super::{Flaw, Model, Said};

/// An inbox: all mail that ever arrived, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Inbox(pub(super) BTreeMap<u64, Said<Mail>>);

/// A message before it has a recipient.
pub(super) struct Letter<'a> {
    pub(super) id: MailId,
    pub(super) kind: MailKind,
    pub(super) summary: &'a str,
    pub(super) body: &'a str,
    pub(super) at_ms: i64,
}

impl Letter<'_> {
    fn bytes(&self) -> usize {
        self.summary.len() + self.body.len()
    }

    /// Refuses a message that is too long.
    pub(super) fn fits(&self) -> Result<(), Refusal> {
        match self.bytes() {
            bytes if bytes > MAIL_BYTES => Err(Refusal::TooLong {
                bytes,
                most: MAIL_BYTES,
            }),
            _ => Ok(()),
        }
    }
}

impl Inbox {
    /// Mail that was not shown yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Mail> {
        self.0
            .values()
            .map(|mail| &mail.0)
            .filter(|mail| mail.shown_in.is_none())
    }

    /// Takes the mail that a step shows; `None` if it is not waiting, or no entry shows it.
    pub(super) fn show(&mut self, step: &Step, flaw: Option<Flaw>) -> Option<()> {
        for taken in &step.mail {
            let mail = &mut self.0.get_mut(&taken.number)?.0;
            let shows = step.entries.iter().any(|entry| entry.seq == taken.entry);
            if mail.shown_in.is_some() || !shows {
                return None;
            }
            mail.shown_in = Some(taken.entry).filter(|_| flaw != Some(Flaw::TwiceShown));
        }
        Some(())
    }

    /// Returns true if `more` messages of a kind and a length still fit. Notifications of runs and
    /// signals always do.
    fn has_room_for(&self, kind: MailKind, more: usize, bytes: usize) -> bool {
        let waiting: usize = self
            .waiting()
            .map(|mail| mail.summary.len() + mail.body.len())
            .sum();
        use MailKind::{Dismissal, Idle, Interruption, Notification};
        matches!(kind, Notification | Idle | Interruption | Dismissal)
            || (self.waiting().count() + more) as u64 <= INBOX_MAILS
                && (waiting + more * bytes) as u64 <= INBOX_BYTES
    }
}

impl Model {
    /// An agent's mail.
    pub fn mail(&self, realm: RealmId, agent: AgentId, filter: MailFilter) -> Vec<Mail> {
        let inbox = self.inboxes.get(&(realm, agent));
        let all = inbox
            .into_iter()
            .flat_map(|inbox| inbox.0.values().map(|mail| &mail.0));
        let wanted = |mail: &&Mail| !(filter.waiting && mail.shown_in.is_some());
        all.filter(wanted).cloned().collect()
    }

    /// The messages that wait for an agent.
    pub fn waiting(&self, realm: RealmId, agent: AgentId) -> impl Iterator<Item = &Mail> {
        self.inboxes
            .get(&(realm, agent))
            .into_iter()
            .flat_map(|inbox| inbox.waiting())
    }

    /// Number of messages that wait for an agent.
    pub fn mail_waiting(&self, realm: RealmId, agent: AgentId) -> u64 {
        self.inboxes
            .get(&(realm, agent))
            .map_or(0, |inbox| inbox.waiting().count() as u64)
    }

    /// Puts a message into the inboxes of all recipients, or into none.
    pub(super) fn send(
        &mut self,
        doer: Doer,
        realm: RealmId,
        to: &Address,
        letter: &Letter<'_>,
    ) -> OpResult {
        letter.fits()?;
        if letter.kind != MailKind::Text && matches!(to, Address::Others { .. }) {
            return Err(Refusal::NotForAll);
        }
        let recipients = self.recipients(doer, realm, to)?;
        match (letter.kind, &recipients[..]) {
            (MailKind::Text | MailKind::Idle | MailKind::Notification, _) => {}
            (MailKind::Interruption | MailKind::Dismissal, [(agent, name)]) => {
                self.must_be_above(doer, realm, *agent, name)?;
            }
            (_, others) => {
                let name = others
                    .first()
                    .map(|(_, name)| name.clone())
                    .unwrap_or_default();
                return Err(Refusal::NotYours { name });
            }
        }
        for (at, (agent, name)) in recipients.iter().enumerate() {
            // An agent with two names gets it twice.
            let before = recipients[..at]
                .iter()
                .filter(|(other, _)| other == agent)
                .count();
            self.must_have_room(realm, (*agent, name), letter, before + 1)?;
        }
        let team = match to {
            Address::Agent(_) => None,
            Address::Member { team, .. } | Address::Others { team } => Some(team),
        };
        let from = self.sender(doer, realm, team);
        let receipts = recipients
            .into_iter()
            .map(|to| self.put(realm, to, &from, letter));
        Ok(Done::Sent(receipts.collect()))
    }

    /// Returns the sender: by its name in the team, else in the first that it belongs to. The lead
    /// of that team is called `team-lead`.
    pub(super) fn sender(&self, doer: Doer, realm: RealmId, team: Option<&Name>) -> Sender {
        let Doer::Agent(id) = doer else {
            return Sender::User;
        };
        let belongs = |team: &&Name| self.name_in(realm, id, team).is_some();
        let first = || {
            self.teams
                .keys()
                .filter(|(of, _)| *of == realm)
                .map(|(_, team)| team)
                .find(belongs)
        };
        let name = match team.filter(belongs).or_else(first) {
            Some(team) if self.team(realm, team).is_ok_and(|team| team.lead == id) => {
                Name::LEAD.to_owned()
            }
            Some(team) => self.name_in(realm, id, team).unwrap_or_default(),
            None => self.name_of(realm, id),
        };
        Sender::Agent { id, name }
    }

    /// Refuses an agent that neither leads a team of the other nor made it.
    pub(super) fn must_be_above(
        &self,
        doer: Doer,
        realm: RealmId,
        agent: AgentId,
        name: &str,
    ) -> Result<(), Refusal> {
        let Doer::Agent(me) = doer else { return Ok(()) };
        let here = self.agents.get(&agent).filter(|known| known.realm == realm);
        let made = here
            .and_then(|known| known.origin.0.as_ref())
            .is_some_and(|origin| origin.parent == me);
        let mut teams = self
            .teams
            .iter()
            .filter(|((of, _), team)| *of == realm && team.lead == me);
        let leads = teams.any(|((_, team), _)| self.name_in(realm, agent, team).is_some());
        if made || leads {
            Ok(())
        } else {
            Err(Refusal::NotYours {
                name: name.to_owned(),
            })
        }
    }

    /// Refuses the message if the inbox has no room for `more` of it.
    pub(super) fn must_have_room(
        &self,
        realm: RealmId,
        (agent, name): (AgentId, &str),
        letter: &Letter<'_>,
        more: usize,
    ) -> Result<(), Refusal> {
        let Some(inbox) = self.inboxes.get(&(realm, agent)) else {
            return Ok(());
        };
        if inbox.has_room_for(letter.kind, more, letter.bytes()) {
            return Ok(());
        }
        Err(Refusal::InboxFull {
            name: name.to_owned(),
            waiting: inbox.waiting().count() as u64,
        })
    }

    /// Puts a message into one inbox, and tells its host.
    pub(super) fn put(
        &mut self,
        realm: RealmId,
        (to, name): (AgentId, String),
        from: &Sender,
        letter: &Letter<'_>,
    ) -> Receipt {
        let held = self.holder(realm, to);
        let inbox = &mut Arc::make_mut(self.inboxes.entry((realm, to)).or_default()).0;
        let number = inbox.len() as u64 + 1;
        let (summary, body) = (letter.summary.to_owned(), letter.body.to_owned());
        let (id, kind, sent_ms, from) = (letter.id, letter.kind, letter.at_ms, from.clone());
        let mail = Mail {
            id,
            number,
            to,
            from,
            kind,
            summary,
            body,
            sent_ms,
            shown_in: None,
        };
        inbox.insert(number, Said(mail));
        self.feed.mail(realm, to, number);
        if let Some(host) = held {
            self.tell(host, Wake::Mail(to));
        }
        Receipt {
            to,
            name,
            kind,
            number,
            held: held.is_some(),
        }
    }

    /// Returns the one agent that has an address, with its name.
    pub(super) fn recipient(
        &self,
        doer: Doer,
        realm: RealmId,
        to: &Address,
    ) -> Result<(AgentId, String), Refusal> {
        match to {
            Address::Others { .. } => Err(Refusal::NotForAll),
            one => self
                .recipients(doer, realm, one)?
                .pop()
                .ok_or(Refusal::NotForAll),
        }
    }

    /// Returns the agents that have an address, with their names; sorted by name.
    fn recipients(
        &self,
        doer: Doer,
        realm: RealmId,
        to: &Address,
    ) -> Result<Vec<(AgentId, String)>, Refusal> {
        let nobody = |to: &dyn ToString| Refusal::NoSuchRecipient { to: to.to_string() };
        let mut found: Vec<(AgentId, String)> = match to {
            Address::Agent(agent) => {
                let born = self
                    .agents
                    .get(agent)
                    .is_some_and(|agent| agent.realm == realm);
                let joined = self
                    .teams
                    .keys()
                    .any(|(of, team)| *of == realm && self.name_in(realm, *agent, team).is_some());
                if !born && !joined && !self.inboxes.contains_key(&(realm, *agent)) {
                    return Err(nobody(agent));
                }
                vec![(*agent, self.name_of(realm, *agent))]
            }
            Address::Member { team, name } => {
                let agent = self
                    .team(realm, team)?
                    .called(name)
                    .ok_or_else(|| nobody(name))?;
                vec![(agent, name.to_string())]
            }
            Address::Others { team } => {
                let named =
                    |member: &posse_protocol::Member| (member.agent, member.name.to_string());
                let members = self.team(realm, team)?.members();
                members
                    .filter(|member| doer != Doer::Agent(member.agent))
                    .map(named)
                    .collect()
            }
        };
        found.sort_by(|(_, a), (_, b)| a.cmp(b));
        Ok(found)
    }

    /// Returns an agent's name: in the first team that it belongs to, else its registered name,
    /// else its path.
    pub(super) fn name_of(&self, realm: RealmId, agent: AgentId) -> String {
        let mut teams = self.teams.keys().filter(|(of, _)| *of == realm);
        let mut first = || teams.find_map(|(_, team)| self.name_in(realm, agent, team));
        let here = self.agents.get(&agent).filter(|known| known.realm == realm);
        let registered = || here.and_then(|known| known.name()).map(Name::to_string);
        first()
            .or_else(registered)
            .unwrap_or_else(|| self.path_of(realm, agent))
    }

    /// Returns a member's name in its team.
    pub(super) fn name_in(&self, realm: RealmId, agent: AgentId, team: &Name) -> Option<String> {
        let mut members = self.teams.get(&(realm, team.clone()))?.members();
        members
            .find(|member| member.agent == agent)
            .map(|member| member.name.to_string())
    }

    pub(super) fn path_of(&self, realm: RealmId, agent: AgentId) -> String {
        let here = self.agents.get(&agent).filter(|known| known.realm == realm);
        here.map_or_else(|| agent.to_string(), |known| known.path.clone())
    }
}
