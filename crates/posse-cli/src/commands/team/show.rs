//! `posse team show`.

use std::collections::HashMap;
use std::process::ExitCode;

use posse_protocol::{AgentId, Member, Name, Note, Task, TaskStatus, Team};
use posse_runtime::port::store::{AgentFilter, AgentState, MailFilter, Session, Store, TaskFilter};
use serde_json::{Value, json};

use super::{find, list};
use crate::commands::agents::pid;
use crate::commands::task;
use crate::moment::{minute, moment};
use crate::output::{json_line, print, tame, width};
use crate::table::{Column, needed, spare, table};
use crate::transcript::fitted;

const COLUMNS: [Column; 6] = [
    needed("MEMBER"),
    spare("TYPE", 2),
    spare("MODEL", 3),
    needed("STATE"),
    needed("MAIL").right(),
    spare("HELD BY", 1),
];

/// Show a team: its members, what is to be done, the mail that waits, its notes.
#[derive(clap::Args)]
pub(super) struct Show {
    /// The team [default: the only one]
    name: Option<Name>,
    #[command(flatten)]
    session: find::SessionArg,
    /// With the texts of its notes
    #[arg(short, long)]
    verbose: bool,
    /// One JSON object, with everything
    #[arg(long)]
    json: bool,
}

/// A team and what there is to know of it.
struct View {
    team: Team,
    /// The agents of its realm.
    agents: HashMap<AgentId, Session>,
    /// How many messages wait, in the members' order.
    waiting: Vec<usize>,
    tasks: Vec<Task>,
    notes: Vec<Note>,
}

impl Show {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let team = find::meant(store, self.name.as_ref(), &self.session).await?;
        let view = look(store, team).await?;
        if self.json {
            print(json_line(&view.object()).as_bytes())?;
        } else {
            print(view.readable(width(), self.verbose).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn look(store: &dyn Store, team: Team) -> anyhow::Result<View> {
    let filter = AgentFilter { realm: Some(team.realm), ..AgentFilter::default() };
    let agents = store.agents(filter, usize::MAX).await?;
    let mut waiting = Vec::new();
    for member in &team.members {
        let filter = MailFilter { waiting: true, after: 0 };
        waiting.push(store.mail(team.realm, member.agent, filter, usize::MAX).await?.len());
    }
    Ok(View {
        tasks: store.tasks(task::list_of(&team), TaskFilter::default(), usize::MAX).await?,
        notes: store.notes(team.realm, team.name.clone()).await?,
        agents: agents.into_iter().map(|agent| (agent.agent, agent)).collect(),
        waiting,
        team,
    })
}

impl View {
    fn open(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| !task.status.is_settled())
    }

    /// What a member is doing, and who holds it.
    fn state(&self, member: &Member) -> (&'static str, Option<&str>) {
        let agent = self.agents.get(&member.agent);
        match agent.and_then(|agent| agent.holder.as_deref().map(|holder| (agent.state, holder))) {
            Some((AgentState::Running, holder)) => ("working", Some(holder)),
            Some((state, holder)) => (state.as_str(), Some(holder)),
            None => ("not running", None),
        }
    }

    fn object(&self) -> Value {
        let mut object = list::object(&self.team, self.open().count());
        let members = self.team.members.iter().zip(&self.waiting).map(|(member, waiting)| {
            let (state, holder) = self.state(member);
            json!({
                "name": member.name, "agent_id": member.agent, "agent_type": member.agent_type,
                "model": member.model, "color": member.color, "backend": member.backend,
                "cwd": member.cwd.to_string_lossy(), "prompt": member.prompt,
                "joined_at": moment(member.joined_ms), "state": state, "pid": holder.and_then(pid),
                "waiting_mail": waiting,
            })
        });
        object["members"] = members.collect();
        object["tasks"] = self.tasks.iter().map(task::object).collect();
        let notes = self.notes.iter().map(|note| {
            json!({
                "name": note.name, "version": note.version, "author": note.author, "text": note.text,
                "written_at": moment(note.written_ms),
            })
        });
        object["notes"] = notes.collect();
        object
    }

    fn readable(&self, columns: Option<usize>, verbose: bool) -> String {
        let team = &self.team;
        let widest = columns.unwrap_or(usize::MAX);
        let mut out = format!("\x1b[1mteam {}\x1b[0m\n", team.name);
        out.push_str(&format!("session {}\nmade {}\n", team.lead, minute(team.created_ms)));
        if !team.description.trim().is_empty() {
            out.push_str(&format!("{}\n", tame(team.description.trim_end())));
        }
        let rows: Vec<Vec<String>> = team
            .members
            .iter()
            .zip(&self.waiting)
            .map(|(member, waiting)| {
                let (state, holder) = self.state(member);
                vec![
                    member.name.to_string(),
                    tame(&member.agent_type),
                    tame(&member.model),
                    state.to_owned(),
                    waiting.to_string(),
                    holder.unwrap_or("–").to_owned(),
                ]
            })
            .collect();
        out.push_str(&format!("\n{}", table(&COLUMNS, &rows, columns)));
        out.push_str(&format!("\n{}\n", self.counts()));
        let open: Vec<Task> = self.open().cloned().collect();
        if !open.is_empty() {
            out.push_str(&task::rows(&open, columns));
        }
        if !self.notes.is_empty() {
            out.push_str("\nnotes\n");
        }
        for note in &self.notes {
            let (author, written) = (tame(&note.author), minute(note.written_ms));
            let line = format!("  {}  version {} by {author}, {written}", note.name, note.version);
            out.push_str(&format!("{}\n", fitted(&line, widest)));
            if verbose {
                out.push_str(&format!("    {}\n", tame(note.text.trim_end()).replace('\n', "\n    ")));
            }
        }
        out
    }

    /// How many tasks there are, in words.
    fn counts(&self) -> String {
        let of = |status: TaskStatus| self.tasks.iter().filter(|task| task.status == status).count();
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
        if counts.is_empty() { "no tasks".into() } else { format!("tasks: {}", counts.join(", ")) }
    }
}
