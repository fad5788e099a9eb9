//! `posse team list`.

use std::process::ExitCode;

use posse_port::store::{Page, Store, TaskFilter};
use posse_protocol::{TaskStatus, Team};
use serde_json::{Value, json};

use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, moment, now_ms};
use crate::output::{json_line, print, say, say_to_person, tame, width};
use crate::present::sessions::shown_ids;
use crate::select::tasks::list_of;

/// Number of teams shown to people by default.
const SHOWN: usize = 20;

const COLUMNS: [Column; 6] = [
    needed("TEAM"),
    spare("AGE", 2).right(),
    spare("MEMBERS", 3).right(),
    needed("OPEN").right(),
    spare("SESSION", 4),
    spare("DESCRIPTION", 1),
];

/// List teams, newest first.
#[derive(clap::Args)]
pub(super) struct ListTeams {
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
        let mut teams = store
            .teams(None, Page::first(most.saturating_add(1)))
            .await?;
        let more = teams.len() > most;
        teams.truncate(most);
        let mut rows = Vec::new();
        for team in &teams {
            let open = open_tasks(store, team).await?;
            if self.json {
                print(json_line(&object(team, open)).as_bytes())?;
            }
            rows.push((team, open));
        }
        if self.json {
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            say_to_person("there is no team; `posse team run NAME` starts a declared one");
        } else {
            print(readable(&rows, now_ms(), width()).as_bytes())?;
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

/// Returns the number of tasks that are neither completed nor deleted.
async fn open_tasks(store: &dyn Store, team: &Team) -> anyhow::Result<usize> {
    let mut open = 0;
    for status in [TaskStatus::Pending, TaskStatus::InProgress] {
        let filter = TaskFilter {
            status: Some(status),
            ..TaskFilter::default()
        };
        open += store.tasks(list_of(team), filter, Page::all()).await?.len();
    }
    Ok(open)
}

/// Returns a team for programs; also the head of `show --json`.
pub(super) fn object(team: &Team, open_tasks: usize) -> Value {
    json!({
        "team": team.name, "session_id": team.session(), "description": team.description,
        "members": team.members.len(), "open_tasks": open_tasks, "created_at": moment(team.created_ms),
    })
}

fn readable(teams: &[(&Team, usize)], now: i64, columns: Option<usize>) -> String {
    let ids = shown_ids(teams.iter().map(|(team, _)| team.session()));
    let rows: Vec<Vec<String>> = teams
        .iter()
        .zip(ids)
        .map(|((team, open), id)| {
            vec![
                team.name.to_string(),
                age(now.saturating_sub(team.created_ms)),
                team.members.len().to_string(),
                open.to_string(),
                id,
                tame(team.description.lines().next().unwrap_or_default()),
            ]
        })
        .collect();
    table(&COLUMNS, &rows, columns)
}
