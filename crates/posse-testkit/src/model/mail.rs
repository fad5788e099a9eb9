//! Mail: inboxes, and what is put into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_protocol::{AgentId, Mail, MailId, MailKind, Name, RealmId, Sender};
use posse_runtime::port::store::{
    Address, Done, INBOX_BYTES, INBOX_MAILS, MAIL_BYTES, MailFilter, OpResult, Receipt, Refusal, Step, Wake,
};

use super::operation::Doer;
use super::{Flaw, Model, Said};

/// An inbox: all that ever came, in its order.
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

impl Inbox {
    /// What was not shown yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Mail> {
        self.0.values().map(|mail| &mail.0).filter(|mail| mail.shown_in.is_none())
    }

    /// Takes what the entries of a step show; none if it does not wait, or no entry shows it.
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

    /// Whether so many of a kind and a length still fit. News of runs always do.
    fn has_room_for(&self, kind: MailKind, more: usize, bytes: usize) -> bool {
        let waiting: usize = self.waiting().map(|mail| mail.summary.len() + mail.body.len()).sum();
        kind == MailKind::Notification
            || (self.waiting().count() + more) as u64 <= INBOX_MAILS
                && (waiting + more * bytes) as u64 <= INBOX_BYTES
    }
}

impl Model {
    /// An agent's mail.
    pub fn mail(&self, realm: RealmId, agent: AgentId, filter: MailFilter) -> Vec<Mail> {
        let inbox = self.inboxes.get(&(realm, agent));
        let all = inbox.into_iter().flat_map(|inbox| inbox.0.values().map(|mail| &mail.0));
        let wanted =
            |mail: &&Mail| mail.number > filter.after && !(filter.waiting && mail.shown_in.is_some());
        all.filter(wanted).cloned().collect()
    }

    /// The messages that wait for an agent.
    pub fn waiting(&self, realm: RealmId, agent: AgentId) -> impl Iterator<Item = &Mail> {
        self.inboxes.get(&(realm, agent)).into_iter().flat_map(|inbox| inbox.waiting())
    }

    /// How many messages wait for an agent.
    pub fn mail_waiting(&self, realm: RealmId, agent: AgentId) -> u64 {
        self.inboxes.get(&(realm, agent)).map_or(0, |inbox| inbox.waiting().count() as u64)
    }

    /// Puts a message into the inboxes of all recipients, or into none.
    pub(super) fn send(&mut self, doer: Doer, realm: RealmId, to: &Address, letter: &Letter<'_>) -> OpResult {
        let bytes = letter.summary.len() + letter.body.len();
        if bytes > MAIL_BYTES {
            return Err(Refusal::TooLong { bytes, most: MAIL_BYTES });
        }
        if letter.kind != MailKind::Text && matches!(to, Address::Others { .. }) {
            return Err(Refusal::NotForAll);
        }
        let recipients = self.recipients(doer, realm, to)?;
        for (at, (agent, name)) in recipients.iter().enumerate() {
            // One with two names gets it twice.
            let before = recipients[..at].iter().filter(|(other, _)| other == agent).count();
            let inbox = self.inboxes.entry((realm, *agent)).or_default();
            if !inbox.has_room_for(letter.kind, before + 1, bytes) {
                let waiting = inbox.waiting().count() as u64;
                return Err(Refusal::InboxFull { name: name.clone(), waiting });
            }
        }
        let team = match to {
            Address::Agent(_) => None,
            Address::Member { team, .. } | Address::Others { team } => Some(team),
        };
        let from = match doer {
            Doer::User => Sender::User,
            Doer::Agent(id) => Sender::Agent { id, name: self.name_of(realm, id, team) },
        };
        let receipts = recipients.into_iter().map(|(to, name)| {
            let held = self.holder(realm, to);
            let inbox = &mut Arc::make_mut(self.inboxes.entry((realm, to)).or_default()).0;
            let number = inbox.len() as u64 + 1;
            let (summary, body) = (letter.summary.to_owned(), letter.body.to_owned());
            let (id, kind, sent_ms, from) = (letter.id, letter.kind, letter.at_ms, from.clone());
            let mail = Mail { id, number, to, from, kind, summary, body, sent_ms, shown_in: None };
            inbox.insert(number, Said(mail));
            if let Some(host) = held {
                self.tell(host, Wake::Mail(to));
            }
            Receipt { to, name, number, held: held.is_some() }
        });
        Ok(Done::Sent(receipts.collect()))
    }

    /// Who has an address, with what they are called; by name.
    fn recipients(
        &self,
        doer: Doer,
        realm: RealmId,
        to: &Address,
    ) -> Result<Vec<(AgentId, String)>, Refusal> {
        let nobody = |to: &dyn ToString| Refusal::NoSuchRecipient { to: to.to_string() };
        let mut found: Vec<(AgentId, String)> = match to {
            Address::Agent(agent) => {
                let born = self.agents.get(agent).is_some_and(|agent| agent.realm == realm);
                let joined = self
                    .teams
                    .keys()
                    .any(|(of, team)| *of == realm && self.name_in(realm, *agent, team).is_some());
                if !born && !joined && !self.inboxes.contains_key(&(realm, *agent)) {
                    return Err(nobody(agent));
                }
                vec![(*agent, self.name_of(realm, *agent, None))]
            }
            Address::Member { team, name } => {
                let member = self.team(realm, team)?.member(name);
                let member = member.ok_or_else(|| nobody(name))?;
                vec![(member.agent, name.to_string())]
            }
            Address::Others { team } => {
                let named = |member: &posse_protocol::Member| (member.agent, member.name.to_string());
                let members = self.team(realm, team)?.members();
                members.filter(|member| doer != Doer::Agent(member.agent)).map(named).collect()
            }
        };
        found.sort_by(|(_, a), (_, b)| a.cmp(b));
        Ok(found)
    }

    /// What a sender is called: in a team, else in the first team that it belongs to, else by the name it is
    /// registered under, else by its path.
    fn name_of(&self, realm: RealmId, agent: AgentId, team: Option<&Name>) -> String {
        let mut teams = self.teams.keys().filter(|(of, _)| *of == realm);
        let first = || teams.find_map(|(_, team)| self.name_in(realm, agent, team));
        let here = self.agents.get(&agent).filter(|known| known.realm == realm);
        let registered = || here.and_then(|known| known.name()).map(Name::to_string);
        let within = team.and_then(|team| self.name_in(realm, agent, team));
        within.or_else(first).or_else(registered).unwrap_or_else(|| self.path_of(realm, agent))
    }

    /// What a member is called in its team.
    pub(super) fn name_in(&self, realm: RealmId, agent: AgentId, team: &Name) -> Option<String> {
        let mut members = self.teams.get(&(realm, team.clone()))?.members();
        members.find(|member| member.agent == agent).map(|member| member.name.to_string())
    }

    pub(super) fn path_of(&self, realm: RealmId, agent: AgentId) -> String {
        let here = self.agents.get(&agent).filter(|known| known.realm == realm);
        here.map_or_else(|| agent.to_string(), |known| known.path.clone())
    }
}
