//! Who is there, what they believe, and what can happen next.

use std::collections::{BTreeMap, BTreeSet};

use posse_protocol::{EntryKind, ListId, MailId, MailKind, TaskId, TaskStatus};
use posse_runtime::port::store::{
    Address, AgentState, Committed, Done, MailFilter, NewTask, Op, Operation, Order, StateChange, Step,
    TakenMail, TaskChange, Wake,
};
use posse_testkit::model::{Fate, Flaw, HostNumber, Life, Model};
use posse_testkit::store_contract::{agent, birth, entry, realm, step};
use stateright::Property;
use uuid::Uuid;

use super::property;

/// How much there is to explore.
#[derive(Clone, Copy)]
pub(super) struct World {
    pub(super) agents: u64,
    pub(super) hosts: u64,
    pub(super) tasks: u64,
    /// How many hosts are killed, and how many are taken for dead and go on.
    pub(super) crashes: u8,
    pub(super) stalls: u8,
    pub(super) flaw: Option<Flaw>,
}

impl Default for World {
    fn default() -> Self {
        Self { agents: 2, hosts: 2, tasks: 2, crashes: 1, stalls: 1, flaw: None }
    }
}

/// The store, and what the processes believe of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) model: Model,
    /// What a process believes of an agent that it holds, or thinks it holds.
    pub(super) views: BTreeMap<Actor, View>,
    pub(super) sent: BTreeSet<u64>,
    /// Tasks whose completion was acknowledged.
    pub(super) done: BTreeSet<TaskId>,
    crashes: u8,
    stalls: u8,
}

/// An agent in the process of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Actor {
    pub(super) host: HostNumber,
    pub(super) agent: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) epoch: u64,
    pub(super) task: Option<TaskId>,
    pub(super) asleep: bool,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// An agent commits a step.
    Step(Actor, Deed),
    /// A host asks what has happened.
    Deliver(HostNumber),
    /// A host takes an agent that nobody holds who lives.
    Take(Actor),
    /// kill -9.
    Crash(HostNumber),
    /// A host's heart is not heard; its process goes on.
    Stall(HostNumber),
}

/// What an agent can do in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Claim(TaskId),
    ClaimNext,
    Complete,
    Send,
    Show,
    Idle,
}

pub(super) fn list() -> ListId {
    ListId { realm: realm(), team: None }
}

/// Who gets the message of an agent.
pub(super) fn recipient(sender: u64, agents: u64) -> u64 {
    sender % agents + 1
}

pub(super) fn words(sender: u64) -> String {
    format!("from {sender};")
}

impl World {
    fn word(&self, state: &State, actor: Actor, view: &View, deed: Deed) -> Step {
        let mut worded = step(actor.agent, view.epoch);
        worded.at_ms = 0;
        let op = match deed {
            Deed::Claim(id) => Op::Claim { team: None, id },
            Deed::ClaimNext => Op::ClaimNext { team: None },
            Deed::Complete => {
                let status = Some(TaskStatus::Completed);
                let change = Box::new(TaskChange { status, ..TaskChange::default() });
                Op::UpdateTask { team: None, id: view.task.unwrap_or(TaskId(0)), expect: None, change }
            }
            Deed::Send => Op::Send {
                id: MailId::from(Uuid::from_u128(actor.agent.into())),
                to: Address::Agent(agent(recipient(actor.agent, self.agents))),
                kind: MailKind::Text,
                summary: String::new(),
                body: words(actor.agent),
            },
            Deed::Show => return show(&state.model, actor, worded),
            Deed::Idle => {
                worded.state = Some(StateChange::IdleUnlessMail);
                return worded;
            }
        };
        worded.operations.push(Operation { call: None, op });
        worded.state = Some(StateChange::To(AgentState::Running));
        worded
    }

    /// Commits a step, so that nothing but what it did is left of it.
    pub(super) fn commit(
        &self,
        state: &mut State,
        actor: Actor,
        deed: Deed,
    ) -> Option<Result<Committed, Fate>> {
        let view = state.views.get(&actor)?;
        let worded = self.word(state, actor, view, deed);
        let committed = state.model.commit(actor.host, &worded);
        state.model.forget_steps();
        Some(committed)
    }

    /// What an agent would do now, as far as it knows.
    pub(super) fn deeds(&self, state: &State, actor: Actor, view: &View) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if view.asleep {
            return deeds;
        }
        if view.task.is_some() {
            deeds.push(Deed::Complete);
        } else {
            deeds.extend((1..=self.tasks).map(|id| Deed::Claim(TaskId(id))));
            deeds.extend([Deed::ClaimNext, Deed::Idle]);
        }
        if !state.sent.contains(&actor.agent) {
            deeds.push(Deed::Send);
        }
        if state.model.mail_waiting(realm(), agent(actor.agent)) > 0 {
            deeds.push(Deed::Show);
        }
        deeds
    }

    fn step(&self, state: &mut State, actor: Actor, deed: Deed) -> Option<()> {
        let committed = match self.commit(state, actor, deed)? {
            Ok(committed) => committed,
            Err(_) => {
                // Whoever is fenced stops.
                state.views.remove(&actor);
                return Some(());
            }
        };
        let view = state.views.get_mut(&actor)?;
        match (deed, committed.results.first()) {
            (Deed::Claim(_) | Deed::ClaimNext, Some(Ok(Done::Claimed(task)))) => view.task = Some(task.id),
            // Nothing has changed but that it asked.
            (Deed::Claim(_) | Deed::ClaimNext, _) => return None,
            (Deed::Complete, Some(Ok(_))) => state.done.extend(view.task.take()),
            (Deed::Complete, _) => view.task = None,
            (Deed::Send, _) => drop(state.sent.insert(actor.agent)),
            (Deed::Idle, _) => view.asleep = !committed.mail_waits,
            (Deed::Show, _) => {}
        }
        Some(())
    }

    fn deliver(&self, state: &mut State, host: HostNumber) {
        for wake in state.model.woken(host) {
            for (actor, view) in state.views.iter_mut().filter(|(actor, _)| actor.host == host) {
                let concerns = match &wake {
                    Wake::Mail(to) => *to == agent(actor.agent),
                    Wake::Tasks(_) => true,
                    Wake::Died(_) | Wake::Fenced => false,
                };
                view.asleep &= !concerns;
            }
            if wake == Wake::Fenced {
                state.views.retain(|actor, _| actor.host != host);
            }
        }
    }

    fn hosts(&self) -> impl Iterator<Item = HostNumber> + use<> {
        (0..self.hosts).map(HostNumber)
    }
}

/// Shows the oldest message that waits, in an entry that says in which epoch.
fn show(model: &Model, actor: Actor, mut worded: Step) -> Step {
    let id = agent(actor.agent);
    let next = model.agent(id).map_or(0, |agent| agent.own.len() as u64);
    let waiting = model.mail(realm(), id, MailFilter { waiting: true, after: 0 });
    if let Some(mail) = waiting.first() {
        let text = format!("in epoch {}: {}", worded.epoch.0, mail.body);
        worded.entries.push(entry(next, EntryKind::Prompt, &text));
        worded.mail.push(TakenMail { number: mail.number, entry: next });
    }
    worded.state = Some(StateChange::To(AgentState::Running));
    worded
}

impl stateright::Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut model = self.flaw.map_or_else(Model::default, Model::flawed);
        let hosts: Vec<HostNumber> = self.hosts().map(|_| model.open()).collect();
        let mut views = BTreeMap::new();
        for number in 1..=self.agents {
            let host = hosts[(number % self.hosts) as usize];
            let mut born = birth(number);
            if let Some(birth) = &mut born.birth {
                birth.path = format!("/{number}");
            }
            (born.at_ms, born.state) = (0, Some(StateChange::To(AgentState::Running)));
            assert!(model.commit(host, &born).is_ok());
            views.insert(Actor { host, agent: number }, View { epoch: 1, task: None, asleep: false });
        }
        let task = |id| NewTask {
            // The third waits for the first.
            blocked_by: (id == 3).then_some(TaskId(1)).into_iter().collect(),
            ..NewTask::default()
        };
        let ops =
            (1..=self.tasks).map(|id| Op::CreateTask { team: None, task: Box::new(task(id)) }).collect();
        assert!(model.operate(&Order { realm: realm(), ops, at_ms: 0 }).iter().all(Result::is_ok));
        hosts.iter().for_each(|host| drop(model.woken(*host)));
        model.forget_steps();
        let (sent, done) = Default::default();
        vec![State { model, views, sent, done, crashes: 0, stalls: 0 }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (actor, view) in &state.views {
            let deeds = self.deeds(state, *actor, view);
            actions.extend(deeds.into_iter().map(|deed| Action::Step(*actor, deed)));
        }
        for host in self.hosts() {
            let life = state.model.life(host);
            if life != Life::Dead && state.model.news(host).next().is_some() {
                actions.push(Action::Deliver(host));
            }
            if life != Life::Dead && state.crashes < self.crashes {
                actions.push(Action::Crash(host));
            }
            if life != Life::Alive {
                continue;
            }
            if state.stalls < self.stalls {
                actions.push(Action::Stall(host));
            }
            let lost = |number: &u64| {
                let holder = state.model.agent(agent(*number)).and_then(|agent| agent.holder);
                holder.is_none_or(|holder| state.model.life(holder) == Life::Stalled)
            };
            let lost = (1..=self.agents).filter(lost).map(|agent| Action::Take(Actor { host, agent }));
            actions.extend(lost);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Step(actor, deed) => self.step(&mut next, actor, deed)?,
            Action::Deliver(host) => self.deliver(&mut next, host),
            Action::Take(actor) => {
                let epoch = next.model.take(actor.host, agent(actor.agent)).ok()?;
                next.views.insert(actor, View { epoch: epoch.0, task: None, asleep: false });
            }
            Action::Crash(host) => {
                next.model.die(host);
                drop(next.model.woken(host));
                next.views.retain(|actor, _| actor.host != host);
                next.crashes += 1;
            }
            Action::Stall(host) => {
                next.model.stall(host);
                next.stalls += 1;
            }
        }
        // Nobody here does anything about it.
        for host in self.hosts() {
            let died: Vec<Wake> =
                next.model.news(host).filter(|wake| matches!(wake, Wake::Died(_))).cloned().collect();
            died.iter().for_each(|wake| next.model.told(host, wake));
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all(self)
    }
}
