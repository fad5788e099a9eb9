//! Sub-agents and background commands that have not ended.

use std::collections::BTreeMap;

use posse_protocol::{AgentId, MemberUpdate, RunChange, RunFacts, RunKind, RunUpdate};
use uuid::Uuid;

use crate::output::transcript::shortened;

/// Maximum length of a description, in characters.
const LONGEST: usize = 60;

/// The known runs, oldest first.
#[derive(Default)]
pub(crate) struct Runs {
    live: BTreeMap<Uuid, LiveRun>,
    /// Names of team members, which are not runs.
    members: BTreeMap<AgentId, String>,
}

struct LiveRun {
    facts: RunFacts,
    background: bool,
}

impl Runs {
    /// Notes a change of a run. One that is not known was started by an earlier process, and
    /// nobody waits for it.
    pub(crate) fn news(&mut self, news: &RunUpdate) {
        let facts = &news.run;
        if matches!(news.what, RunChange::Ended(_)) {
            self.live.remove(&facts.task);
            return;
        }
        let live = self.live.entry(facts.task).or_insert_with(|| LiveRun {
            facts: facts.clone(),
            background: true,
        });
        match news.what {
            RunChange::Started { background, .. } => live.background = background,
            RunChange::Detached => live.background = true,
            RunChange::Progress { .. } | RunChange::Ended(_) => {}
        }
    }

    /// Notes a member of a team, whose end is not waited for.
    pub(crate) fn member(&mut self, agent: AgentId, news: &MemberUpdate) {
        // Its run may have been reported before it was known to be a member.
        self.live.remove(&agent.uuid());
        self.members.entry(agent).or_insert_with(|| address(news));
    }

    /// Returns true if this is the run of a member of a team.
    pub(crate) fn is_member(&self, task: Uuid) -> bool {
        self.members.contains_key(&AgentId::from(task))
    }

    /// Returns true if there are team members.
    pub(crate) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns the number of runs.
    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns the runs in the background.
    pub(crate) fn background(&self) -> impl Iterator<Item = &RunFacts> {
        self.live
            .values()
            .filter(|live| live.background)
            .map(|live| &live.facts)
    }

    /// Returns an agent's name for people.
    pub(crate) fn called(&self, agent: AgentId) -> String {
        let run = self.live.get(&agent.uuid()).map(|live| called(&live.facts));
        run.or_else(|| self.members.get(&agent).cloned())
            .unwrap_or_else(|| agent.to_string())
    }
}

/// Returns a member's address, `name@team`.
pub(crate) fn address(news: &MemberUpdate) -> String {
    format!("{}@{}", news.name, news.team)
}

/// Returns a run's name for people, or its type and description.
pub(crate) fn called(facts: &RunFacts) -> String {
    match (&facts.name, facts.kind) {
        (Some(name), _) => name.to_string(),
        (None, RunKind::Agent) => format!("{} ({})", facts.agent_type, described(facts)),
        (None, RunKind::Shell) => described(facts),
    }
}

/// Returns a run's description, shortened.
pub(crate) fn described(facts: &RunFacts) -> String {
    shortened(&facts.description, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headless::fixtures::{detached, run, run_ended, started};

    #[test]
    fn what_has_started_goes_on_until_it_ends() {
        let mut runs = Runs::default();
        let tasks = |runs: &Runs| {
            runs.background()
                .map(|facts| facts.task)
                .collect::<Vec<_>>()
        };
        runs.news(&started(run(2), true));
        runs.news(&started(run(1), false));
        assert_eq!((runs.len(), tasks(&runs)), (2, vec![run(2).task]));
        runs.news(&detached(run(1)));
        assert_eq!(tasks(&runs), [run(1).task, run(2).task]);
        runs.news(&run_ended(run(2)));
        runs.news(&run_ended(run(1)));
        assert_eq!((runs.len(), tasks(&runs)), (0, vec![]));
    }

    #[test]
    fn an_agent_is_called_by_its_name_or_by_what_it_does() {
        let mut runs = Runs::default();
        let named = RunFacts {
            name: Some("scout".parse().unwrap()),
            ..run(2)
        };
        runs.news(&started(run(1), true));
        runs.news(&started(named, true));
        assert_eq!(runs.called(run(1).task.into()), "Explore (find callers)");
        assert_eq!(runs.called(run(2).task.into()), "scout");
        assert_eq!(runs.called(run(3).task.into()), run(3).task.to_string());
    }
}
