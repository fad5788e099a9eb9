//! What matters of a state, in one number: states with the same sketch go on in the same way.
//!
//! Left out is what nothing that is done here looks at: versions, who lost a task, how high an epoch is
//! (only whether a process has the current one; and, until mail was shown after a take-over, whether it is
//! the first), and what a process believes that has an old one. What is the same but for
//! the names of hosts, or for where the ring of agents begins, is the same.

use posse_port::store::{AgentState, Wake};
use posse_protocol::TaskStatus;
use posse_testkit::model::{HostNumber, Life};

use super::words::{agent, list, number, realm};
use super::world::{State, World};

/// The most that there can be.
pub(super) const AGENTS: usize = 3;
pub(super) const HOSTS: usize = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sketch(u128);

/// The parts of a sketch, each a few bits, before anything has its place.
struct Parts {
    /// By agent; without its holder.
    agents: [u8; AGENTS],
    holders: [Option<usize>; AGENTS],
    /// By host; without who has mail there.
    hosts: [u8; HOSTS],
    mail: [[bool; AGENTS]; HOSTS],
    views: [[u8; AGENTS]; HOSTS],
    /// By task: the status, and the owner.
    tasks: [(u8, Option<usize>); 3],
    rest: u8,
}

impl Sketch {
    /// Of all places where the ring can begin, the one that gives the lowest number.
    pub(super) fn of(world: &World, state: &State) -> Self {
        let parts = Parts::of(world, state);
        let mut least = u128::MAX;
        let mut first = [u8::MAX; AGENTS];
        for turn in 0..world.agents {
            let turned = parts.turned(world, turn);
            if turned <= first {
                least = if turned < first { u128::MAX } else { least };
                (first, least) = (turned, least.min(parts.packed(world, turn, turned)));
            }
        }
        Self(least)
    }
}

impl Parts {
    fn of(world: &World, state: &State) -> Self {
        let mut parts = Self {
            agents: [0; AGENTS],
            holders: [None; AGENTS],
            hosts: [0; HOSTS],
            mail: [[false; AGENTS]; HOSTS],
            views: [[0; AGENTS]; HOSTS],
            tasks: [(0, None); 3],
            rest: state.crashes << 6 | state.stalls << 4 | state.done >> 1,
        };
        let known = || state.model.agents().map(|(_, known)| known);
        let mut entries = known().flat_map(|known| &known.own);
        let late = entries.any(|entry| !entry.bytes.starts_with(b"in epoch 1:"));
        for (at, known) in known().enumerate() {
            let waiting = state.model.waiting(realm(), agent(at)).count().min(3) as u8;
            let shown = known.own.len().min(3) as u8;
            parts.agents[at] = waiting << 6
                | shown << 4
                | u8::from(late) << 3
                | u8::from(known.epoch == 1 && !late) << 2
                | u8::from(known.state.0 == AgentState::Idle) << 1
                | u8::from(state.sent[at]);
            parts.holders[at] = known.holder.map(|host| host.0 as usize);
            for host in 0..world.hosts {
                let Some(view) = state.views[host][at] else {
                    continue;
                };
                let current = view.epoch == known.epoch;
                let task = view.task.filter(|_| current).map_or(0, |task| task.0 as u8);
                parts.views[host][at] =
                    1 | u8::from(current) << 1 | u8::from(view.asleep) << 2 | task << 3;
            }
        }
        parts.look_at_hosts(world, state);
        let tasks = state.model.rights(&list());
        for (place, (status, owner)) in parts.tasks.iter_mut().zip(tasks) {
            let status = match status {
                TaskStatus::Pending => 0,
                TaskStatus::InProgress => 1,
                TaskStatus::Completed => 2,
                TaskStatus::Deleted => 3,
            };
            *place = (status, owner.and_then(|owner| owner.agent).map(number));
        }
        parts
    }

    fn look_at_hosts(&mut self, world: &World, state: &State) {
        for at in 0..world.hosts {
            let host = HostNumber(at as u64);
            let mut told = match state.model.life(host) {
                Life::Alive => 0,
                Life::Stalled => 1,
                Life::Fenced => 2,
                Life::Dead => 3,
            };
            for wake in state.model.news(host) {
                match wake {
                    Wake::Mail(to) => self.mail[at][number(*to)] = true,
                    Wake::Fenced => told |= 4,
                    Wake::Tasks(_) | Wake::Died(_) => {}
                }
            }
            self.hosts[at] = told;
        }
    }

    /// The agents with the ring turned by so many places.
    fn turned(&self, world: &World, turn: usize) -> [u8; AGENTS] {
        let mut turned = [0; AGENTS];
        for at in 0..world.agents {
            turned[(at + turn) % world.agents] = self.agents[at];
        }
        turned
    }

    /// All in one number, with the ring turned, and the hosts sorted by all that is theirs.
    fn packed(&self, world: &World, turn: usize, turned: [u8; AGENTS]) -> u128 {
        let mut packed = u128::from(self.rest);
        for agent in turned {
            packed = packed << 8 | u128::from(agent);
        }
        for (status, owner) in self.tasks {
            let owner = owner.map_or(0, |owner| (owner + turn) % world.agents + 1);
            packed = packed << 4 | u128::from(status) << 2 | owner as u128;
        }
        let mut hosts = [0_u32; HOSTS];
        for (host, word) in hosts.iter_mut().enumerate().take(world.hosts) {
            *word = u32::from(self.hosts[host]);
            for at in 0..world.agents {
                let held = u32::from(self.holders[at] == Some(host));
                let theirs = held << 6
                    | u32::from(self.mail[host][at]) << 5
                    | u32::from(self.views[host][at]);
                *word |= theirs << (4 + 7 * ((at + turn) % world.agents));
            }
        }
        hosts.sort_unstable();
        hosts
            .into_iter()
            .fold(packed, |packed, word| packed << 25 | u128::from(word))
    }
}
