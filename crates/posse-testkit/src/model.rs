//! The store port in plain Rust: an executable specification of every store, without time, disk or
//! threads.
//!
//! It serves two purposes. The property test compares real stores with it, history by history; the
//! exploration enumerates everything that agents and failing hosts can do to it. Where the port
//! says "at once", it is immediate here: a host that dies has lost everything it held before anyone
//! looks. Epochs are the model's own, since the port promises only that they rise.

mod agent;
mod archive;
mod feed;
mod mail;
mod operation;
mod question;
mod request;
mod said;
mod task;
mod team;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use posse_port::store::{
    Committed, Epoch, OpResult, Order, Origin, StateChange, Step, SubtreeSpending, Wake,
};
use posse_protocol::{AgentId, HostId, ListId, MailId, Name, Note, QuestionId, RealmId};
use uuid::Uuid;

pub use agent::{Agent, Entry};
pub use said::Said;

use feed::Feed;
use mail::Inbox;
use operation::Doer;
use task::List;
use team::Team;

/// A host, by a number that is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostNumber(pub u64);

/// Liveness of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// Its heartbeat arrives.
    Alive,
    /// Its heartbeat is older than the lease, but nobody has needed what it holds yet.
    Stalled,
    /// It was declared dead. Its process may not know.
    Fenced,
    /// Its process has ended.
    Dead,
}

/// Why a call was refused; the words are those of [`fate`](crate::store_contract::fate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// [`StoreError::Fenced`](posse_port::store::StoreError::Fenced).
    Fenced,
    /// [`StoreError::Held`](posse_port::store::StoreError::Held).
    Held,
    /// [`StoreError::NotFound`](posse_port::store::StoreError::NotFound).
    NotFound,
    /// [`StoreError::NameTaken`](posse_port::store::StoreError::NameTaken).
    NameTaken,
    /// [`StoreError::BadStep`](posse_port::store::StoreError::BadStep).
    BadStep,
}

impl Fate {
    /// Returns the fate as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Held => "held",
            Self::NotFound => "not found",
            Self::NameTaken => "name taken",
            Self::BadStep => "bad step",
        }
    }
}

/// A deliberate flaw, to show that the checks would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// Becoming idle does not check for mail.
    IdleWithMail,
    /// A claim does not check the owner.
    BlindClaim,
    /// A new writer has the epoch of the previous one.
    SameEpoch,
    /// Mail that was taken keeps waiting.
    TwiceShown,
    /// An agent that does not end, because mail waits, still tells others that it did.
    ToldAnyway,
}

/// A store. Copies share agents, inboxes and tasks until they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Model {
    hosts: BTreeMap<HostNumber, Host>,
    agents: BTreeMap<AgentId, Arc<Agent>>,
    inboxes: BTreeMap<(RealmId, AgentId), Arc<Inbox>>,
    teams: BTreeMap<(RealmId, Name), Team>,
    lists: BTreeMap<ListId, List>,
    notes: BTreeMap<ListId, BTreeMap<Name, Said<Note>>>,
    requests: BTreeMap<(RealmId, MailId), request::Open>,
    questions: BTreeMap<(RealmId, QuestionId), question::Asked>,
    feed: Feed,
    flaw: Option<Flaw>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Host {
    life: Life,
    /// True if it has ever held anything; otherwise it is not told of deaths.
    settled: bool,
    /// Wakes to report when it asks.
    news: BTreeSet<Wake>,
}

impl Model {
    /// Creates a store with one flaw.
    pub fn flawed(flaw: Flaw) -> Self {
        Self {
            flaw: Some(flaw),
            ..Self::default()
        }
    }

    /// Opens a new host.
    pub fn open(&mut self) -> HostNumber {
        let number = HostNumber(self.hosts.len() as u64);
        self.hosts.insert(
            number,
            Host {
                life: Life::Alive,
                settled: false,
                news: BTreeSet::new(),
            },
        );
        number
    }

    /// Commits a step.
    pub fn commit(&mut self, host: HostNumber, step: &Step) -> Result<Committed, Fate> {
        let mut agent = match (self.agents.get(&step.agent), &step.birth) {
            (Some(agent), birth) => {
                // A birth in another realm, or after the first, is not a valid step of this agent.
                if agent.realm != step.realm || birth.is_some() && !agent.was_last(step) {
                    return Err(if birth.is_some() {
                        Fate::BadStep
                    } else {
                        Fate::NotFound
                    });
                }
                if agent.epoch != step.epoch.0 {
                    return Err(Fate::Fenced);
                }
                if let Some(answer) = agent.answer_to(step) {
                    return Ok(answer);
                }
                Agent::clone(agent)
            }
            (None, Some(_)) if !self.lives(host) => return Err(Fate::Fenced),
            (None, Some(birth)) => {
                self.may_come_from(step, birth.origin.as_deref())?;
                Agent::born(host, step, birth, &self.agents).ok_or(Fate::BadStep)?
            }
            (None, None) => return Err(Fate::NotFound),
        };
        let key = (step.realm, step.agent);
        let waiting = self.mail_waiting(step.realm, step.agent) > step.mail.len() as u64;
        let unless_mail = matches!(step.state, Some(StateChange::UnlessMail(_)));
        let mail_waits = unless_mail && waiting && self.flaw != Some(Flaw::IdleWithMail);
        if step
            .starter
            .is_some_and(|id| id != step.agent && !self.lives_in(step.realm, id))
        {
            return Err(Fate::BadStep);
        }
        if step.oversteps().is_some() {
            return Err(Fate::BadStep);
        }
        let questions = self.change_questions(step).ok_or(Fate::BadStep)?;
        let left_out = mail_waits && self.flaw != Some(Flaw::ToldAnyway);
        agent.advance(step, left_out).ok_or(Fate::BadStep)?;
        if !mail_waits {
            // Its operations see its new state.
            agent.change_state(step);
        }
        if !step.mail.is_empty() {
            let mut inbox = self.inboxes.get(&key).cloned().ok_or(Fate::BadStep)?;
            Arc::make_mut(&mut inbox)
                .show(step, self.flaw)
                .ok_or(Fate::BadStep)?;
            self.inboxes.insert(key, inbox);
        }
        // From here on nothing can fail the step.
        self.keep_questions(questions);
        self.feed.step(step);
        self.agents.insert(step.agent, Arc::new(agent));
        if step.birth.is_some() {
            self.settle(host);
        }
        let mut committed = Committed {
            mail_waits,
            ..Committed::default()
        };
        for operation in step.operations.iter().filter(|_| !left_out) {
            let result = self.operation(
                Doer::Agent(step.agent),
                step.realm,
                &operation.op,
                step.at_ms,
            );
            committed.results.push(result);
        }
        if let Some(agent) = self.agent_mut(step.agent) {
            agent.settle(step, &committed);
        }
        if !left_out {
            self.end_requests(step);
            self.withdraw_questions(step);
        }
        Ok(committed)
    }

    /// Performs a person's order.
    pub fn operate(&mut self, order: &Order) -> Vec<OpResult> {
        self.feed.realm(order.realm, order.topics());
        order
            .ops
            .iter()
            .map(|op| self.operation(Doer::User, order.realm, op, order.at_ms))
            .collect()
    }

    /// Makes a host the agent's only writer.
    pub fn take(&mut self, host: HostNumber, agent: AgentId) -> Result<Epoch, Fate> {
        let holder = self.agents.get(&agent).ok_or(Fate::NotFound)?.holder;
        if !self.lives(host) {
            return Err(Fate::Fenced);
        }
        match holder.filter(|holder| *holder != host) {
            Some(other) if self.life(other) == Life::Alive => return Err(Fate::Held),
            Some(other) => self.take_for_dead(other),
            None => {}
        }
        self.settle(host);
        let raised = u64::from(self.flaw != Some(Flaw::SameEpoch));
        let taken = self.agent_mut(agent).ok_or(Fate::NotFound)?;
        taken.holder = Some(host);
        taken.epoch += raised;
        let (realm, epoch) = (taken.realm, Epoch(taken.epoch));
        self.feed.holder(realm, agent);
        if self.mail_waiting(realm, agent) > 0 {
            self.tell(host, Wake::Mail(agent));
        }
        Ok(epoch)
    }

    /// Releases an agent. The released epoch can no longer write.
    pub fn release(&mut self, agent: AgentId, epoch: Epoch) {
        if self
            .agents
            .get(&agent)
            .is_some_and(|agent| agent.holder.is_some() && agent.epoch == epoch.0)
        {
            self.free_agent(agent);
        }
    }

    /// A host's heartbeat stops.
    pub fn stall(&mut self, host: HostNumber) {
        self.change_life(host, Life::Alive, Life::Stalled);
    }

    /// A stalled host's heartbeat resumes. If nobody needed what it held, it has lost nothing.
    pub fn resume(&mut self, host: HostNumber) {
        self.change_life(host, Life::Stalled, Life::Alive);
    }

    /// A host's process ends.
    pub fn die(&mut self, host: HostNumber) {
        if self.lives(host) {
            self.take_for_dead(host);
        }
        self.change_life(host, Life::Fenced, Life::Dead);
    }

    /// Returns everything a host must know since it last asked.
    pub fn woken(&mut self, host: HostNumber) -> BTreeSet<Wake> {
        self.hosts
            .get_mut(&host)
            .map(|host| std::mem::take(&mut host.news))
            .unwrap_or_default()
    }

    /// Tells a host of deaths and tasks only; returns true if there were tasks.
    pub fn hear_of_tasks(&mut self, host: HostNumber) -> bool {
        let Some(host) = self.hosts.get_mut(&host) else {
            return false;
        };
        let tasks = host.news.iter().any(|wake| matches!(wake, Wake::Tasks(_)));
        host.news
            .retain(|wake| matches!(wake, Wake::Mail(_) | Wake::Fenced));
        tasks
    }

    /// Returns true if a host has ever held anything.
    pub fn is_settled(&self, host: HostNumber) -> bool {
        self.hosts.get(&host).is_some_and(|host| host.settled)
    }

    /// Wakes that a host has not been told yet.
    pub fn news(&self, host: HostNumber) -> impl Iterator<Item = &Wake> {
        self.hosts
            .get(&host)
            .into_iter()
            .flat_map(|host| &host.news)
    }

    /// Returns the liveness of a host.
    pub fn life(&self, host: HostNumber) -> Life {
        self.hosts.get(&host).map_or(Life::Dead, |host| host.life)
    }

    /// An agent.
    pub fn agent(&self, agent: AgentId) -> Option<&Agent> {
        self.agents.get(&agent).map(Arc::as_ref)
    }

    fn agent_mut(&mut self, agent: AgentId) -> Option<&mut Agent> {
        self.agents.get_mut(&agent).map(Arc::make_mut)
    }

    /// All agents.
    pub fn agents(&self) -> impl Iterator<Item = (AgentId, &Agent)> {
        self.agents.iter().map(|(id, agent)| (*id, agent.as_ref()))
    }

    /// Returns what an agent and all below it were charged.
    pub fn spending(&self, top: AgentId) -> SubtreeSpending {
        let mut spending = SubtreeSpending::default();
        let mut next = vec![top];
        while let Some(id) = next.pop() {
            let Some(agent) = self.agent(id) else {
                continue;
            };
            spending.agents += 1;
            let session = agent.session(id);
            let charges = session.with_reserved().cloned();
            charges.for_each(|charge| spending.add(charge));
            let is_child = |agent: &Agent| {
                let origin = agent.origin.0.as_ref();
                origin.is_some_and(|origin| origin.parent == id)
            };
            let children = self.agents().filter(|(_, agent)| is_child(agent));
            next.extend(children.map(|(child, _)| child));
        }
        spending
    }

    /// Returns true if an agent is in a realm.
    fn lives_in(&self, realm: RealmId, agent: AgentId) -> bool {
        self.agents
            .get(&agent)
            .is_some_and(|agent| agent.realm == realm)
    }

    /// Refuses a sub-agent without a parent, and one whose name another agent has, or has or had in
    /// a team.
    fn may_come_from(&self, step: &Step, origin: Option<&Origin>) -> Result<(), Fate> {
        let Some(origin) = origin else { return Ok(()) };
        if step.epoch.0 != 1 || !self.lives_in(step.realm, origin.parent) {
            return Err(Fate::BadStep);
        }
        let known = |name: &Name| {
            let mut teams = self.teams.iter().filter(|((of, _), _)| *of == step.realm);
            self.named(step.realm, name).is_some() || teams.any(|(_, team)| team.knows(name))
        };
        let taken = origin.name.as_ref().is_some_and(known);
        if taken { Err(Fate::NameTaken) } else { Ok(()) }
    }

    /// Returns the agent registered under a name in a realm.
    pub fn named(&self, realm: RealmId, name: &Name) -> Option<AgentId> {
        let found = self
            .agents()
            .find(|(_, agent)| agent.realm == realm && agent.name() == Some(name));
        found.map(|(id, _)| id)
    }

    /// Registered names of a realm.
    fn registered(&self, realm: RealmId) -> BTreeSet<Name> {
        let here = self.agents.values().filter(|agent| agent.realm == realm);
        here.filter_map(|agent| agent.name().cloned()).collect()
    }

    /// Forgets the last step of an agent, so that it cannot be repeated.
    pub fn forget_step(&mut self, agent: AgentId) {
        if let Some(agent) = self.agent_mut(agent) {
            agent.forget_step();
        }
    }

    /// Returns true if the host may still write: it was not declared dead.
    fn lives(&self, host: HostNumber) -> bool {
        matches!(self.life(host), Life::Alive | Life::Stalled)
    }

    /// Returns the host that holds an agent of a realm.
    fn holder(&self, realm: RealmId, agent: AgentId) -> Option<HostNumber> {
        self.agents
            .get(&agent)
            .filter(|known| known.realm == realm)?
            .holder
    }

    /// Returns true if a host is not alive. The caller's own host always counts as alive.
    fn is_gone(&self, doer: Doer, host: HostNumber) -> bool {
        let mine = match doer {
            Doer::User => None,
            Doer::Agent(agent) => self.agents.get(&agent).and_then(|agent| agent.holder),
        };
        mine != Some(host) && self.life(host) != Life::Alive
    }

    fn change_life(&mut self, host: HostNumber, from: Life, to: Life) {
        if let Some(host) = self.hosts.get_mut(&host).filter(|host| host.life == from) {
            host.life = to;
        }
    }

    /// Frees everything a host held, and tells all hosts.
    fn take_for_dead(&mut self, host: HostNumber) {
        let held: Vec<AgentId> = self
            .agents()
            .filter(|(_, agent)| agent.holder == Some(host))
            .map(|(id, _)| id)
            .collect();
        for agent in &held {
            self.free_agent(*agent);
        }
        if let Some(dead) = self.hosts.get_mut(&host) {
            (dead.life, dead.news) = (Life::Fenced, BTreeSet::from([Wake::Fenced]));
        }
        if !held.is_empty() {
            self.tell_all(&Wake::Died(HostId::from(Uuid::from_u128(u128::from(
                host.0,
            )))));
        }
    }

    /// Clears the holder, raises the epoch, and makes tasks in progress pending.
    fn free_agent(&mut self, agent: AgentId) {
        let raised = u64::from(self.flaw != Some(Flaw::SameEpoch));
        if let Some(freed) = self.agent_mut(agent) {
            freed.holder = None;
            freed.epoch += raised;
            let realm = freed.realm;
            self.feed.holder(realm, agent);
            self.free_tasks(realm, agent, None);
        }
    }

    /// Marks that it holds something.
    fn settle(&mut self, host: HostNumber) {
        if let Some(host) = self.hosts.get_mut(&host) {
            host.settled = true;
        }
    }

    fn tell(&mut self, host: HostNumber, wake: Wake) {
        if let Some(host) = self.hosts.get_mut(&host) {
            host.news.insert(wake);
        }
    }

    /// Tells all hosts that hold an agent of the realm that a task has become claimable.
    fn tell_claimable(&mut self, list: &ListId) {
        let here = self
            .agents
            .values()
            .filter(|agent| agent.realm == list.realm);
        let hosts: BTreeSet<HostNumber> = here.filter_map(|agent| agent.holder).collect();
        hosts
            .into_iter()
            .for_each(|host| self.tell(host, Wake::Tasks(list.clone())));
    }

    /// Tells all hosts that can still write.
    fn tell_all(&mut self, wake: &Wake) {
        let lives =
            |host: &&mut Host| host.settled && matches!(host.life, Life::Alive | Life::Stalled);
        for host in self.hosts.values_mut().filter(lives) {
            host.news.insert(wake.clone());
        }
    }
}
