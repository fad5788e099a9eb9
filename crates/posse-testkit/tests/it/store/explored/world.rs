//! Who is there, what they believe, and what can happen next.

use posse_port::store::{
    AgentState, Committed, Done, NewTask, Op, Operation, Order, StateChange, Step, TakenMail, Wake,
};
use posse_protocol::{EntryKind, Takes, TaskId, TaskStatus};
use posse_testkit::model::{Fate, Flaw, HostNumber, Life, Model};
use posse_testkit::store_contract::{birth, entry};
use stateright::Property;

use super::property;
use super::sketch::{AGENTS, HOSTS, Sketch};
use super::words::{agent, idle, letter, number, operation, realm, step, words};

/// How much there is to explore.
#[derive(Clone, Copy)]
pub(super) struct World {
    pub(super) agents: usize,
    pub(super) hosts: usize,
    pub(super) tasks: u64,
    /// How many hosts are killed, and how many are taken for dead and go on.
    pub(super) crashes: u8,
    pub(super) stalls: u8,
    pub(super) flaw: Option<Flaw>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            agents: 2,
            hosts: 2,
            tasks: 2,
            crashes: 1,
            stalls: 1,
            flaw: None,
        }
    }
}

/// The store, and what the processes believe of it. Two states are one if their sketches are.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) model: Model,
    /// What the process of a host believes of an agent that it holds, or thinks it holds.
    pub(super) views: [[Option<View>; AGENTS]; HOSTS],
    pub(super) sent: [bool; AGENTS],
    /// Tasks whose completion was acknowledged, as bits.
    pub(super) done: u8,
    pub(super) crashes: u8,
    pub(super) stalls: u8,
    pub(super) sketch: Sketch,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.sketch == other.sketch
    }
}

impl std::hash::Hash for State {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.sketch.hash(state);
    }
}

/// An agent in the process of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Actor {
    pub(super) host: usize,
    pub(super) agent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    Deliver(usize),
    /// A host takes an agent that nobody holds who lives.
    Take(Actor),
    /// kill -9.
    Crash(usize),
    /// A host's heart is not heard; its process goes on.
    Stall(usize),
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
    /// Becomes idle, and says so, unless mail waits.
    End,
}

fn host(at: usize) -> HostNumber {
    HostNumber(at as u64)
}

impl State {
    /// What processes believe, and which process believes it.
    pub(super) fn views(&self) -> impl Iterator<Item = (Actor, View)> {
        let all = self.views.iter().enumerate();
        all.flat_map(|(host, views)| {
            let known = views.iter().enumerate();
            known.filter_map(move |(agent, view)| Some((Actor { host, agent }, (*view)?)))
        })
    }

    /// Whether nobody has taken the agent from the process that believes this.
    pub(super) fn is_current(&self, actor: Actor, view: View) -> bool {
        self.model
            .agent(agent(actor.agent))
            .is_some_and(|agent| agent.epoch == view.epoch)
    }
}

impl World {
    /// Who gets the message of an agent.
    pub(super) fn recipient(&self, sender: usize) -> usize {
        (sender + 1) % self.agents
    }

    fn word(&self, state: &State, actor: Actor, view: View, deed: Deed) -> Step {
        let worded = step(actor.agent, view.epoch);
        let op = match deed {
            Deed::Claim(id) => Op::Claim { team: None, id },
            Deed::ClaimNext => Op::ClaimNext {
                team: None,
                takes: Takes::Any,
            },
            Deed::Complete => operation(view.task.unwrap_or(TaskId(0)), TaskStatus::Completed),
            Deed::Send => letter(actor.agent, self.recipient(actor.agent)),
            Deed::Show => return show(&state.model, actor, worded),
            Deed::Idle => return idle(worded),
            Deed::End => {
                let op = letter(actor.agent, self.recipient(actor.agent));
                return idle(Step {
                    operations: vec![Operation { call: None, op }],
                    ..worded
                });
            }
        };
        let operations = vec![Operation { call: None, op }];
        Step {
            operations,
            state: Some(StateChange::To(AgentState::Running)),
            ..worded
        }
    }

    /// Commits a step, so that nothing but what it did is left of it.
    pub(super) fn commit(
        &self,
        state: &State,
        model: &mut Model,
        (actor, view): (Actor, View),
        deed: Deed,
    ) -> Result<Committed, Fate> {
        let worded = self.word(state, actor, view, deed);
        let committed = model.commit(host(actor.host), &worded);
        model.forget_step(agent(actor.agent));
        committed
    }

    /// What an agent would do now, as far as it knows.
    fn deeds(&self, state: &State, actor: Actor, view: View) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if view.asleep {
            return deeds;
        }
        if !state.is_current(actor, view) {
            // Whatever it does is refused, as a property says, and it stops.
            return vec![Deed::Idle];
        }
        if view.task.is_some() {
            deeds.push(Deed::Complete);
        } else {
            // What it was told is done it does not ask for.
            let open = (1..=self.tasks).filter(|id| state.done & 1 << id == 0);
            deeds.extend(open.map(|id| Deed::Claim(TaskId(id))));
            deeds.extend([Deed::ClaimNext, Deed::Idle]);
        }
        if !state.sent[actor.agent] {
            deeds.push(Deed::Send);
            deeds.extend(view.task.is_none().then_some(Deed::End));
        }
        if state.model.mail_waiting(realm(), agent(actor.agent)) > 0 {
            deeds.push(Deed::Show);
        }
        deeds
    }

    fn step(&self, state: &State, next: &mut State, actor: Actor, deed: Deed) -> Option<()> {
        let view = state.views[actor.host][actor.agent]?;
        let believed = &mut next.views[actor.host][actor.agent];
        let Ok(committed) = self.commit(state, &mut next.model, (actor, view), deed) else {
            // Whoever is fenced stops.
            *believed = None;
            return Some(());
        };
        let believed = believed.as_mut()?;
        match (deed, committed.results.first()) {
            (Deed::Claim(_) | Deed::ClaimNext, Some(Ok(Done::Claimed(task)))) => {
                believed.task = Some(task.id);
            }
            // Nothing has changed but that it asked.
            (Deed::Claim(_) | Deed::ClaimNext, _) => return None,
            (Deed::Complete, result) => {
                let task = believed
                    .task
                    .take()
                    .filter(|_| matches!(result, Some(Ok(_))));
                next.done |= task.map_or(0, |task| 1 << task.0);
            }
            (Deed::Send, _) => next.sent[actor.agent] = true,
            (Deed::End, _) => {
                believed.asleep = !committed.mail_waits;
                next.sent[actor.agent] = !committed.mail_waits;
            }
            (Deed::Idle, _) => believed.asleep = !committed.mail_waits,
            (Deed::Show, _) => {}
        }
        Some(())
    }

    fn deliver(&self, next: &mut State, at: usize) {
        for wake in next.model.woken(host(at)) {
            let views = &mut next.views[at];
            match wake {
                Wake::Mail(to) => {
                    let view = views[number(to)].as_mut();
                    view.into_iter().for_each(|view| view.asleep = false);
                }
                Wake::Fenced => *views = [None; AGENTS],
                Wake::Tasks(_) | Wake::Died(_) => {}
            }
        }
    }

    /// Hears at once what no race is about: deaths, which nobody here does anything about, and tasks that
    /// have become claimable.
    fn hear(&self, next: &mut State, at: usize) {
        if next.model.hear_of_tasks(host(at)) {
            next.views[at]
                .iter_mut()
                .flatten()
                .for_each(|view| view.asleep = false);
        }
    }

    /// Does one thing; none if it is refused, and so has changed nothing.
    fn act(&self, state: &State, next: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Step(actor, deed) => self.step(state, next, actor, deed)?,
            Action::Deliver(host) => self.deliver(next, host),
            Action::Take(Actor {
                host: at,
                agent: of,
            }) => {
                let epoch = next.model.take(host(at), agent(of)).ok()?.0;
                next.views[at][of] = Some(View {
                    epoch,
                    task: None,
                    asleep: false,
                });
            }
            Action::Crash(at) => {
                next.model.die(host(at));
                drop(next.model.woken(host(at)));
                next.views[at] = [None; AGENTS];
                next.crashes += 1;
            }
            Action::Stall(at) => {
                next.model.stall(host(at));
                next.stalls += 1;
            }
        }
        Some(())
    }
}

/// Shows the oldest message that waits, in an entry that says in which epoch.
fn show(model: &Model, actor: Actor, mut worded: Step) -> Step {
    let id = agent(actor.agent);
    let next = model.agent(id).map_or(0, |agent| agent.own.len() as u64);
    if let Some(mail) = model.waiting(realm(), id).next() {
        let text = format!("in epoch {}: {}", worded.epoch.0, mail.body);
        worded.entries.push(entry(next, EntryKind::Prompt, &text));
        worded.mail.push(TakenMail {
            number: mail.number,
            entry: next,
        });
    }
    worded.state = Some(StateChange::To(AgentState::Running));
    worded
}

impl stateright::Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut model = self.flaw.map_or_else(Model::default, Model::flawed);
        let hosts: Vec<HostNumber> = (0..self.hosts).map(|_| model.open()).collect();
        let mut views = [[None; AGENTS]; HOSTS];
        for (of, at) in (0..self.agents).map(|of| (of, of % self.hosts)) {
            let mut born = Step {
                birth: birth(1).birth,
                ..step(of, 1)
            };
            born.birth
                .iter_mut()
                .for_each(|birth| birth.path = words(of).to_owned());
            born.state = Some(StateChange::To(AgentState::Running));
            assert!(model.commit(hosts[at], &born).is_ok());
            model.forget_step(agent(of));
            views[at][of] = Some(View {
                epoch: 1,
                task: None,
                asleep: false,
            });
        }
        let task = |id| NewTask {
            // The third waits for the first.
            blocked_by: (id == 3).then_some(TaskId(1)).into_iter().collect(),
            ..NewTask::default()
        };
        let ops = (1..=self.tasks)
            .map(|id| Op::CreateTask {
                team: None,
                task: Box::new(task(id)),
            })
            .collect();
        assert!(
            model
                .operate(&Order {
                    realm: realm(),
                    ops,
                    at_ms: 0
                })
                .iter()
                .all(Result::is_ok)
        );
        hosts.iter().for_each(|host| drop(model.woken(*host)));
        let (sent, sketch) = ([false; AGENTS], Sketch::default());
        let first = State {
            model,
            views,
            sent,
            done: 0,
            crashes: 0,
            stalls: 0,
            sketch,
        };
        vec![State {
            sketch: Sketch::of(self, &first),
            ..first
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (actor, view) in state.views() {
            let deeds = self.deeds(state, actor, view);
            actions.extend(deeds.into_iter().map(|deed| Action::Step(actor, deed)));
        }
        for at in 0..self.hosts {
            let life = state.model.life(host(at));
            if life != Life::Dead && state.model.news(host(at)).next().is_some() {
                actions.push(Action::Deliver(at));
            }
            if life != Life::Dead && state.crashes < self.crashes {
                actions.push(Action::Crash(at));
            }
            if life != Life::Alive {
                continue;
            }
            if state.stalls < self.stalls {
                actions.push(Action::Stall(at));
            }
            let lost = |of: &usize| {
                let holder = state.model.agent(agent(*of)).and_then(|agent| agent.holder);
                holder.is_none_or(|holder| state.model.life(holder) == Life::Stalled)
            };
            let lost = (0..self.agents).filter(lost);
            actions.extend(lost.map(|agent| Action::Take(Actor { host: at, agent })));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.act(state, &mut next, action)?;
        (0..self.hosts).for_each(|at| self.hear(&mut next, at));
        next.sketch = Sketch::of(self, &next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all(self)
    }
}
