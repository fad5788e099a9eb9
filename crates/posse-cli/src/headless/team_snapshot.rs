//! The state of a team at one moment.

use std::time::Duration;

use posse_protocol::{Cost, Name, Task, TaskId, TaskStatus, Team};
use posse_runtime::definition::team_plan;
use serde_json::{Value, json};

use super::panel::{Panel, PanelRow};
use crate::output::transcript::shortened;
use crate::output::{in_words, one_line};

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

/// How far a team has come with its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskProgress {
    /// Number of completed tasks.
    done: usize,
    /// Number and subject of those that are neither completed nor deleted.
    open: Vec<(TaskId, String)>,
    /// Members that are declared and could not be started.
    not_started: Vec<Name>,
}

impl TaskProgress {
    /// Returns true if tasks are open.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the number of all tasks but deleted ones.
    fn all(&self) -> usize {
        self.done + self.open.len()
    }

    /// Returns the progress in a line for people.
    pub(crate) fn line(&self) -> String {
        let all = self.all();
        let done = match all {
            1 => format!("{} of 1 task done", self.done),
            _ => format!("{} of {all} tasks done", self.done),
        };
        let done = match self.not_started.is_empty() {
            true => done,
            false => {
                let names: Vec<&str> = self.not_started.iter().map(Name::as_str).collect();
                format!("{done}, not started: {}", names.join(", "))
            }
        };
        if !self.is_open() {
            return done;
        }
        let named = self.open.iter().take(NAMED);
        let named = named.map(|(id, subject)| format!("#{id} {}", shortened(subject, 60)));
        let mut named: Vec<String> = named.collect();
        let more = self.open.len() - named.len();
        named.extend((more > 0).then(|| format!("{more} more")));
        let line = format!("{done}, {} open: {}", self.open.len(), named.join("; "));
        one_line(&line)
    }

    /// Returns the progress for programs.
    pub(crate) fn object(&self) -> Value {
        let open = self.open.iter();
        let open = open.map(|(id, subject)| json!({"id": id, "subject": subject}));
        json!({
            "done": self.done, "open": open.collect::<Vec<_>>(), "not_started": self.not_started,
        })
    }
}

/// Number of open tasks that are named in a line.
const NAMED: usize = 5;

impl TeamSnapshot {
    /// Returns how far the team has come.
    pub(crate) fn progress(&self) -> TaskProgress {
        let is_done = |task: &&Task| task.status == TaskStatus::Completed;
        let open = self.tasks.iter().filter(|task| !task.status.is_settled());
        let team = &self.team;
        let is_there = |name: &Name| {
            team.former.contains(name) || team.members.iter().any(|member| member.name == *name)
        };
        let declared = team_plan::declared_members(team);
        TaskProgress {
            not_started: declared
                .into_iter()
                .filter(|name| !is_there(name))
                .collect(),
            done: self.tasks.iter().filter(is_done).count(),
            open: open.map(|task| (task.id, task.subject.clone())).collect(),
        }
    }

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
        let progress = self.progress();
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
            done: progress.done,
            tasks: progress.all(),
            requests: self.requests,
            cost: in_words(self.cost),
            elapsed,
        }
    }
}
