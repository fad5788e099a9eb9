//! The state of a team at one moment.

use std::time::Duration;

use posse_protocol::{Cost, Task, TaskStatus, Team};

use super::panel::{Panel, PanelRow};
use crate::output::in_words;
use crate::output::transcript::shortened;

/// The state of a team.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TeamSnapshot {
    pub(crate) team: Team,
    pub(crate) tasks: Vec<Task>,
    /// Tasks that have changed since the last snapshot.
    pub(crate) changed: Vec<Task>,
    /// Number of members' plans that wait for approval.
    pub(crate) requests: usize,
    /// What the whole session has cost; `None` if a price is unknown.
    pub(crate) cost: Option<Cost>,
}

impl TeamSnapshot {
    /// Returns the colour of a task's owner.
    pub(crate) fn color(&self, task: &Task) -> Option<&str> {
        let owner = task.owner.as_ref()?;
        let member = self
            .team
            .members
            .iter()
            .find(|member| Some(member.agent) == owner.agent)?;
        Some(&member.color)
    }

    /// Returns the panel for people who watch.
    pub(crate) fn panel(&self, elapsed: Duration) -> Panel {
        let of = |is_it: fn(TaskStatus) -> bool| {
            self.tasks.iter().filter(|task| is_it(task.status)).count()
        };
        let rows = self.team.members.iter().map(|member| {
            let doing = |task: &&Task| {
                let is_its = task
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.agent == Some(member.agent));
                is_its && task.status == TaskStatus::InProgress
            };
            let task = self.tasks.iter().find(doing);
            PanelRow {
                name: member.name.to_string(),
                color: member.color.clone(),
                state: member.state,
                task: task.map(|task| format!("#{} {}", task.id, shortened(&task.subject, 200))),
            }
        });
        Panel {
            team: self.team.name.to_string(),
            members: rows.collect(),
            done: of(|status| status == TaskStatus::Completed),
            tasks: of(|status| status != TaskStatus::Deleted),
            requests: self.requests,
            cost: in_words(self.cost),
            elapsed,
        }
    }
}
