//! `posse team show`.

use std::collections::HashMap;
use std::process::ExitCode;

use posse_port::store::{
    AgentFilter, AgentRecord, OpenRequest, Page, QuestionRecord, Store, TaskFilter,
};
use posse_protocol::{AgentId, Cost, Member, Name, Note, Task, TaskStatus, Team};
use serde_json::{Value, json};

use super::{list, requests};
use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{minute, moment, now_ms};
use crate::output::transcript::fitted;
use crate::output::{in_words, json_line, print, tame, width};
use crate::present::agents::pid;
use crate::present::{question, sessions, tasks};
use crate::select::tasks::list_of;
use crate::select::{members, questions, teams};

/// Columns of the table of members.
const COLUMNS: [Column; 8] = [
    needed("MEMBER"),
    needed("STATE"),
    spare("MAIL", 2).right(),
    spare("COST", 3).right(),
    spare("TYPE", 4),
    spare("MODEL", 6),
    spare("HELD BY", 5),
    spare("TASK", 1),
];

/// Show a team: its members, tasks, open requests and notes.
#[derive(clap::Args)]
pub(super) struct ShowTeam {
    /// Team to show [default: the only one]
    name: Option<Name>,
    #[command(flatten)]
    session: teams::SessionArg,
    /// Show the texts of its notes
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object, with everything
    #[arg(long)]
    json: bool,
}

/// A team and everything that is shown of it.
struct TeamView {
    team: Team,
    /// The agents of its realm.
    agents: HashMap<AgentId, AgentRecord>,
    tasks: Vec<Task>,
    requests: Vec<OpenRequest>,
    /// Questions of its members to a person.
    asks: HashMap<AgentId, QuestionRecord>,
    notes: Vec<Note>,
    /// Agents of former members, as far as they are known.
    former: HashMap<Name, AgentRecord>,
}

impl ShowTeam {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let team = teams::meant(store, self.name.as_ref(), &self.session).await?;
        let view = look(store, team).await?;
        if self.json {
            print(json_line(&view.object()).as_bytes())?;
        } else {
            print(view.readable(width(), self.verbose).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads everything about a team.
async fn look(store: &dyn Store, team: Team) -> anyhow::Result<TeamView> {
    let filter = AgentFilter {
        realm: Some(team.realm),
        ..AgentFilter::default()
    };
    let agents = store.agents(filter, Page::all()).await?;
    Ok(TeamView {
        tasks: store
            .tasks(list_of(&team), TaskFilter::default(), Page::all())
            .await?,
        notes: store.notes(list_of(&team), Page::all()).await?,
        requests: requests::open(store, &team).await?,
        asks: questions::oldest_by_agent(store, Some(team.realm)).await?,
        former: members::former(store, &team).await?,
        agents: agents
            .into_iter()
            .map(|agent| (agent.agent, agent))
            .collect(),
        team,
    })
}

impl TeamView {
    /// Returns the tasks that are not settled.
    fn open(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| !task.status.is_settled())
    }

    /// Returns a member's state, and the process that hosts it.
    fn state(&self, member: &Member) -> (&'static str, Option<&str>) {
        let holder = self
            .agents
            .get(&member.agent)
            .and_then(|agent| agent.holder.as_deref());
        (
            if holder.is_some() {
                member.state.as_str()
            } else {
                // The stored state is that of the last process: without a host nothing happens.
                "not running"
            },
            holder,
        )
    }

    /// Returns what a member itself has cost; `None` if it is unknown.
    fn cost(&self, member: &Member) -> Option<Cost> {
        self.agents.get(&member.agent).and_then(sessions::cost)
    }

    /// Returns the task that a member works on.
    fn doing(&self, member: &Member) -> Option<&Task> {
        let is_its = |task: &Task| {
            task.owner
                .as_ref()
                .is_some_and(|it| it.agent == Some(member.agent))
        };
        self.tasks
            .iter()
            .find(|task| task.status == TaskStatus::InProgress && is_its(task))
    }

    /// Returns the team for programs.
    fn object(&self) -> Value {
        let mut object = list::object(&self.team, self.open().count());
        let members = self.team.members.iter().map(|member| {
            let (state, holder) = self.state(member);
            json!({
                "name": member.name, "agent_id": member.agent, "agent_type": member.agent_type,
                "model": member.model, "color": member.color, "backend": member.backend,
                "cwd": member.cwd.to_string_lossy(), "prompt": member.prompt,
                "joined_at": moment(member.joined_ms), "state": state, "pid": holder.and_then(pid),
                "waiting_mail": member.waiting, "is_lead": member.agent == self.team.lead, "role": member.role,
                "task": self.doing(member).map(|task| task.id),
                "cost_usd": self.cost(member).map(Cost::usd),
                "asks": question::object(self.asks.get(&member.agent)),
            })
        });
        object["members"] = members.collect();
        object["former_members"] = json!(self.team.former);
        object["tasks"] = self.tasks.iter().map(tasks::object).collect();
        object["requests"] = self
            .requests
            .iter()
            .map(|it| requests::object(&self.team, it))
            .collect();
        let notes = self.notes.iter().map(|note| {
            json!({
                "name": note.name, "version": note.version, "author": note.author, "text": note.text,
                "written_at": moment(note.written_ms),
            })
        });
        object["notes"] = notes.collect();
        object
    }

    /// Returns the team for people.
    fn readable(&self, columns: Option<usize>, verbose: bool) -> String {
        let team = &self.team;
        let widest = columns.unwrap_or(usize::MAX);
        let mut out = format!("\x1b[1mteam {}\x1b[0m\n", team.name);
        out.push_str(&format!(
            "session {}\ncreated {}\n",
            team.session(),
            minute(team.created_ms)
        ));
        if !team.description.trim().is_empty() {
            out.push_str(&format!("{}\n", tame(team.description.trim_end())));
        }
        let rows: Vec<Vec<String>> = team
            .members
            .iter()
            .map(|member| {
                let (state, holder) = self.state(member);
                let task = self
                    .doing(member)
                    .map(|task| format!("#{} {}", task.id, tame(&task.subject)));
                let leads = member.agent == team.lead && member.name.as_str() != Name::LEAD;
                vec![
                    format!("{}{}", member.name, if leads { " (leads)" } else { "" }),
                    question::state(state, self.asks.get(&member.agent), now_ms()),
                    member.waiting.to_string(),
                    self.cost(member)
                        .map_or_else(|| "–".to_owned(), |cost| in_words(Some(cost))),
                    tame(&member.agent_type),
                    tame(&member.model),
                    holder.unwrap_or("–").to_owned(),
                    task.unwrap_or_else(|| "–".to_owned()),
                ]
            })
            .collect();
        out.push_str(&format!("\n{}", table(&COLUMNS, &rows, columns)));
        if !team.former.is_empty() {
            let cost = |name: &Name| self.former.get(name).and_then(sessions::cost);
            let names = team.former.iter().map(|name| match cost(name) {
                Some(cost) => format!("{name} ({})", in_words(Some(cost))),
                None => name.to_string(),
            });
            let names: Vec<String> = names.collect();
            out.push_str(&format!(
                "{}\n",
                fitted(&format!("have left: {}", names.join(", ")), widest)
            ));
        }
        out.push_str(&format!("\n{}\n", self.counts()));
        let open: Vec<Task> = self.open().cloned().collect();
        if !open.is_empty() {
            out.push_str(&tasks::rows(&open, columns));
        }
        if !self.requests.is_empty() {
            let waiting = requests::rows(team, &self.requests, columns);
            out.push_str(&format!(
                "\nrequests (`posse team approve` and `reject` answer plans)\n{waiting}"
            ));
        }
        if !self.notes.is_empty() {
            out.push_str("\nnotes\n");
        }
        for note in &self.notes {
            let (author, written) = (tame(&note.author), minute(note.written_ms));
            let line = format!(
                "  {}  version {} by {author}, {written}",
                note.name, note.version
            );
            out.push_str(&format!("{}\n", fitted(&line, widest)));
            if verbose {
                out.push_str(&format!(
                    "    {}\n",
                    tame(note.text.trim_end()).replace('\n', "\n    ")
                ));
            }
        }
        out
    }

    /// Returns the number of tasks by status, in words.
    fn counts(&self) -> String {
        let of = |status: TaskStatus| {
            self.tasks
                .iter()
                .filter(|task| task.status == status)
                .count()
        };
        let words = [
            (TaskStatus::InProgress, "in progress"),
            (TaskStatus::Pending, "pending"),
            (TaskStatus::Completed, "completed"),
        ];
        let counts = words.map(|(status, word)| (of(status), word));
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        if counts.is_empty() {
            "no tasks".into()
        } else {
            format!("tasks: {}", counts.join(", "))
        }
    }
}
