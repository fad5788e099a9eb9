//! `posse agents ps`.

use std::process::ExitCode;

use posse_runtime::port::store::{AgentFilter, AgentState, Session, Store};
use serde_json::{Value, json};

use crate::commands::sessions::{find, shown_ids};
use crate::moment::{age, moment, now_ms};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::table::{Column, needed, spare, table};

const COLUMNS: [Column; 8] = [
    needed("ID"),
    spare("PATH", 2),
    needed("STATE"),
    spare("PROCESS", 1),
    spare("USED", 3).right(),
    spare("MODEL", 4),
    spare("MODE", 6),
    spare("DIRECTORY", 5),
];

/// List the agents that live processes hold now.
#[derive(clap::Args)]
pub(super) struct Ps {
    /// Every agent of a session, held or not; without --session that of this directory used last
    #[arg(long)]
    all: bool,
    /// Only those of this session; the beginning of its id will do
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// One JSON object per agent
    #[arg(long)]
    json: bool,
}

impl Ps {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let realm = match (&self.session, self.all) {
            (None, false) => None,
            (session, _) => Some(find::meant(store, session.as_deref()).await?.realm),
        };
        let agents = store.agents(AgentFilter { realm, held: !self.all }, usize::MAX).await?;
        if self.json {
            for agent in &agents {
                print(json_line(&object(agent)).as_bytes())?;
            }
        } else if agents.is_empty() {
            say_to_person("no live process holds an agent");
        } else {
            print(readable(&agents, now_ms(), width()).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What an agent is doing, in a word.
fn state(agent: &Session) -> &'static str {
    match (agent.holder.is_some(), agent.state) {
        (true, AgentState::Running) => "working",
        (_, AgentState::Idle) => "idle",
        (_, AgentState::Paused) => "paused",
        // Its process has died under it.
        (false, AgentState::Running) => "broken",
    }
}

fn object(agent: &Session) -> Value {
    json!({
        "agent_id": agent.agent, "path": agent.path, "parent": agent.parent, "state": state(agent),
        "held_by": agent.holder, "permission_mode": agent.mode, "model": agent.model,
        "cwd": agent.cwd.to_string_lossy(), "created_at": moment(agent.created_ms),
        "used_at": moment(agent.used_ms),
    })
}

fn readable(agents: &[Session], now: i64, columns: Option<usize>) -> String {
    let ids = shown_ids(agents.iter().map(|agent| agent.agent));
    let row = |(agent, id): (&Session, String)| {
        vec![
            id,
            tame(&agent.path),
            state(agent).to_owned(),
            agent.holder.clone().unwrap_or_else(|| "–".into()),
            age(now.saturating_sub(agent.used_ms)),
            tame(&agent.model),
            agent.mode.to_string(),
            tame(&agent.cwd.to_string_lossy()),
        ]
    };
    table(&COLUMNS, &agents.iter().zip(ids).map(row).collect::<Vec<_>>(), columns)
}
