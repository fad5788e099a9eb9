//! `posse team list`.

use std::process::ExitCode;

use posse_port::store::{Page, Store, TaskFilter};
use posse_protocol::{TaskStatus, Team};
use serde_json::{Value, json};

use crate::config::environment::working_directory;
use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, moment, now_ms};
use crate::output::{count, json_line, print, say, say_to_person, tame, width};
use crate::present::sessions::shown_ids;
use crate::select::tasks::list_of;
use crate::select::team_choice::{is_held, place, runs_in};

/// Number of teams shown to people by default.
const SHOWN: usize = 20;

const HERE: [Column; 6] = [
    needed("TEAM"),
    needed("STATE"),
    spare("MEMBERS", 3).right(),
    needed("TASKS"),
    spare("AGE", 2).right(),
    spare("DESCRIPTION", 1),
];
const EVERYWHERE: [Column; 7] = [
    needed("TEAM"),
    needed("STATE"),
    spare("MEMBERS", 4).right(),
    spare("TASKS", 2),
    spare("AGE", 1).right(),
    spare("SESSION", 3),
    needed("DIRECTORY"),
];

/// List the teams that run in this directory, newest first.
#[derive(clap::Args)]
pub(super) struct ListTeams {
    /// List the teams of all directories, also those that do not run
    #[arg(long, conflicts_with = "declared")]
    all: bool,
    /// Maximum number to list [default: 20; with --json all]
    #[arg(short, value_name = "N")]
    number: Option<usize>,
    /// List the teams declared in .posse/teams, which can be run here
    #[arg(long, conflicts_with = "number")]
    declared: bool,
    /// Print one JSON object per team
    #[arg(long)]
    json: bool,
}

impl ListTeams {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        if self.declared {
            return super::declared::list(self.json);
        }
        let most = self
            .number
            .unwrap_or(if self.json { usize::MAX } else { SHOWN });
        let all = store.teams(None, Page::all()).await?;
        let known = all.len();
        let here = working_directory()?;
        let is_meant = |team: &Team| self.all || runs_in(team, &here);
        let mut teams: Vec<Team> = all.into_iter().filter(is_meant).collect();
        let others = known - teams.len();
        let more = teams.len() > most;
        teams.truncate(most);
        let mut rows = Vec::new();
        for team in teams {
            let done = TasksDone::of(store, &team).await?;
            rows.push((team, done));
        }
        if self.json {
            for (team, done) in &rows {
                let mut object = object(team, done.open);
                object["state"] = json!(state(team, done));
                object["completed_tasks"] = json!(done.completed);
                object["cwd"] = json!(place(team).map(|place| place.to_string_lossy()));
                print(json_line(&object).as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            say_to_person(&match others {
                0 => "there is no team; `posse team run NAME` starts a declared one".to_owned(),
                others => format!(
                    "no team runs in this directory; --all shows {}",
                    count(others, "team")
                ),
            });
        } else {
            let shown = readable(&rows, now_ms(), (self.all, width()));
            print(shown.as_bytes())?;
        }
        if more {
            say(&format!(
                "there are more; see them with -n {}",
                most.max(SHOWN).saturating_mul(5)
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// How far a team's tasks are.
struct TasksDone {
    completed: usize,
    /// Number of tasks that are neither completed nor deleted.
    open: usize,
}

impl TasksDone {
    async fn of(store: &dyn Store, team: &Team) -> anyhow::Result<Self> {
        let tasks = store.tasks(list_of(team), TaskFilter::default(), Page::all());
        let (mut completed, mut open) = (0, 0);
        for task in tasks.await? {
            completed += usize::from(task.status == TaskStatus::Completed);
            open += usize::from(!task.status.is_settled());
        }
        Ok(Self { completed, open })
    }

    fn in_words(&self) -> String {
        match self.completed + self.open {
            0 => "none".to_owned(),
            all => format!("{} of {all} done", self.completed),
        }
    }
}

/// Returns a team's state in one word.
fn state(team: &Team, tasks: &TasksDone) -> &'static str {
    match (is_held(team), tasks) {
        (true, _) => "running",
        (false, TasksDone { open: 0, completed }) if *completed > 0 => "done",
        // Its process has ended, or died, before its tasks were.
        (false, _) => "stopped",
    }
}

/// Returns a team for programs; also the head of `show --json`.
pub(super) fn object(team: &Team, open_tasks: usize) -> Value {
    json!({
        "team": team.name, "session_id": team.session(), "description": team.description,
        "members": team.members.len(), "open_tasks": open_tasks, "created_at": moment(team.created_ms),
    })
}

/// Returns a row per team; those of all directories with the directory.
fn readable(
    teams: &[(Team, TasksDone)],
    now: i64,
    (everywhere, columns): (bool, Option<usize>),
) -> String {
    let ids = shown_ids(teams.iter().map(|(team, _)| team.session()));
    let rows = teams.iter().zip(ids).map(|((team, tasks), id)| {
        let mut row = vec![
            team.name.to_string(),
            state(team, tasks).to_owned(),
            team.members.len().to_string(),
            tasks.in_words(),
            age(now.saturating_sub(team.created_ms)),
        ];
        match everywhere {
            true => {
                let place = place(team).map(|place| place.to_string_lossy().into_owned());
                row.extend([id, tame(&place.unwrap_or_default())]);
            }
            false => row.push(tame(team.description.lines().next().unwrap_or_default())),
        }
        row
    });
    let titles = if everywhere { &EVERYWHERE[..] } else { &HERE };
    table(titles, &rows.collect::<Vec<_>>(), columns)
}
