//! Which costs on a board are read, and when. What an agent costs is a sum over all agents below
//! it: while they spend, it is read at most once a second.

use std::collections::HashSet;
use std::time::Duration;

use posse_protocol::AgentId;

/// Time between two readings of costs that change.
const PERIOD: Duration = Duration::from_secs(1);

/// Costs that are to be read.
#[derive(Default)]
pub(super) struct StaleCosts {
    /// Agents whose costs were never read. They are read as soon as they are on the screen.
    unread: HashSet<AgentId>,
    /// Agents whose costs have changed since they were read.
    changed: HashSet<AgentId>,
    /// True if the sum of all sessions has changed.
    total: bool,
    /// True if an agent on the screen waits for its turn.
    has_waiting: bool,
    /// The time before which what has changed is not read.
    next_at: Duration,
}

/// Costs to read now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DueCosts {
    pub(super) agents: Vec<AgentId>,
    /// True if the sum of all sessions is to be read, too; `agents` has all their main agents.
    pub(super) total: bool,
}

impl StaleCosts {
    /// Adds agents that are new on the board.
    pub(super) fn add_new(&mut self, agents: impl IntoIterator<Item = AgentId>) {
        self.unread.extend(agents);
        self.total = true;
    }

    /// Adds agents that have spent something, or agents below them.
    pub(super) fn add_changed(&mut self, agents: impl IntoIterator<Item = AgentId>) {
        for agent in agents {
            self.changed.insert(agent);
            self.total = true;
        }
    }

    /// Returns what to read for a screen that shows `visible`, of a board with the main agents
    /// `sessions`. It counts as read from then on.
    pub(super) fn take(
        &mut self,
        visible: &[AgentId],
        sessions: impl Iterator<Item = AgentId>,
        now: Duration,
    ) -> DueCosts {
        let is_time = now >= self.next_at;
        let mut due = DueCosts {
            total: is_time && std::mem::take(&mut self.total),
            agents: Vec::new(),
        };
        if due.total {
            due.agents.extend(sessions);
        }
        for agent in visible {
            let is_unread = self.unread.contains(agent);
            let is_changed = is_time && self.changed.contains(agent);
            if (is_unread || is_changed) && !due.agents.contains(agent) {
                due.agents.push(*agent);
            }
        }
        for agent in &due.agents {
            self.unread.remove(agent);
            self.changed.remove(agent);
        }
        self.has_waiting = visible.iter().any(|agent| self.changed.contains(agent));
        if is_time && !due.agents.is_empty() {
            self.next_at = now + PERIOD;
        }
        due
    }

    /// Returns when something has to be read; none if nothing has changed.
    pub(super) fn due_at(&self) -> Option<Duration> {
        (self.total || self.has_waiting).then_some(self.next_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(5);

    fn agent(number: u128) -> AgentId {
        uuid::Uuid::from_u128(number).into()
    }

    fn taken(costs: &mut StaleCosts, visible: &[u128], now: Duration) -> (Vec<AgentId>, bool) {
        let visible: Vec<AgentId> = visible.iter().copied().map(agent).collect();
        let due = costs.take(&visible, [agent(1)].into_iter(), now);
        (due.agents, due.total)
    }

    #[test]
    fn what_is_on_the_screen_is_read_once() {
        let mut costs = StaleCosts::default();
        costs.add_new([1, 2, 3, 4].map(agent));
        assert_eq!(
            taken(&mut costs, &[1, 2], START),
            ([1, 2].map(agent).into(), true)
        );
        assert_eq!(taken(&mut costs, &[1, 2], START), (Vec::new(), false));
        assert_eq!(costs.due_at(), None);
        // Those that are scrolled to were never read, and wait for nothing.
        assert_eq!(taken(&mut costs, &[2, 3], START), (vec![agent(3)], false));
    }

    #[test]
    fn sums_that_change_are_read_once_in_a_period_and_never_forgotten() {
        let mut costs = StaleCosts::default();
        costs.add_new([1, 2].map(agent));
        taken(&mut costs, &[1, 2], START);
        let mut read = 0;
        for tenth in 1..=20 {
            costs.add_changed([2, 1].map(agent));
            let due = taken(&mut costs, &[1, 2], START + PERIOD / 10 * tenth);
            read += usize::from(due == ([1, 2].map(agent).into(), true));
        }
        assert_eq!(read, 2);
        costs.add_changed([2, 1].map(agent));
        assert_eq!(
            taken(&mut costs, &[1, 2], START + PERIOD * 2),
            (Vec::new(), false)
        );
        assert_eq!(costs.due_at(), Some(START + PERIOD * 3));
        let due = taken(&mut costs, &[1, 2], START + PERIOD * 3);
        assert_eq!(due, ([1, 2].map(agent).into(), true));
        assert_eq!(costs.due_at(), None);
    }

    #[test]
    fn an_agent_that_was_scrolled_to_waits_for_its_turn() {
        let mut costs = StaleCosts::default();
        costs.add_new([1, 2].map(agent));
        taken(&mut costs, &[1, 2], START);
        costs.add_changed([2, 1].map(agent));
        let later = START + PERIOD;
        assert_eq!(taken(&mut costs, &[1], later), (vec![agent(1)], true));
        assert_eq!(costs.due_at(), None);
        // What was changed and not read yet changes the sum each time.
        costs.add_changed([2, 1].map(agent));
        assert_eq!(costs.due_at(), Some(later + PERIOD));
        let due = taken(&mut costs, &[1], later + PERIOD);
        assert_eq!(due, (vec![agent(1)], true));
        let later = later + PERIOD;
        assert_eq!(taken(&mut costs, &[1, 2], later), (Vec::new(), false));
        assert_eq!(costs.due_at(), Some(later + PERIOD));
        let due = taken(&mut costs, &[1, 2], later + PERIOD);
        assert_eq!(due, (vec![agent(2)], false));
    }
}
