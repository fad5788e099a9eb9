//! `posse agents ps`.

use std::collections::{BTreeSet, HashMap};
use std::process::ExitCode;

use posse_protocol::{AgentId, RealmId};
use posse_runtime::port::store::{AgentFilter, AgentState, Session, Store};
use serde_json::{Value, json};

use super::pid;
use crate::commands::sessions::{find, shown_ids};
use crate::moment::{age, moment, now_ms};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::table::{Column, needed, spare, table};

const COLUMNS: [Column; 8] = [
    needed("ID"),
    spare("PATH", 2),
    needed("STATE"),
    needed("PROCESS"),
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
            let roots = Roots::of(store, &agents).await?;
            for agent in &agents {
                print(json_line(&object(agent, roots.of_agent(agent))).as_bytes())?;
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

/// Who has whom for a parent.
struct Roots(HashMap<AgentId, Option<AgentId>>);

impl Roots {
    /// Parents need not be among those that are shown.
    async fn of(store: &dyn Store, agents: &[Session]) -> anyhow::Result<Self> {
        let children = agents.iter().filter(|agent| agent.parent.is_some());
        let realms: BTreeSet<RealmId> = children.map(|agent| agent.realm).collect();
        let mut parents = HashMap::new();
        for realm in realms {
            let all = store.agents(AgentFilter { realm: Some(realm), held: false }, usize::MAX).await?;
            parents.extend(all.into_iter().map(|agent| (agent.agent, agent.parent)));
        }
        Ok(Self(parents))
    }

    /// The session that an agent belongs to.
    fn of_agent(&self, agent: &Session) -> AgentId {
        let (mut id, mut parent) = (agent.agent, agent.parent);
        // A chain is no longer than there are agents.
        for _ in 0..=self.0.len() {
            let Some(next) = parent else { break };
            (id, parent) = (next, self.0.get(&next).copied().flatten());
        }
        id
    }
}

fn object(agent: &Session, session: AgentId) -> Value {
    json!({
        "agent_id": agent.agent, "session_id": session, "pid": agent.holder.as_deref().and_then(pid),
        "path": agent.path, "parent": agent.parent, "state": state(agent),
        "permission_mode": agent.mode, "model": agent.model,
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
