//! `posse agents ps`.

use std::collections::{BTreeSet, HashMap};
use std::process::ExitCode;

use posse_port::store::{AgentFilter, AgentRecord, Page, QuestionRecord, Store};
use posse_protocol::{AgentId, Name, RealmId};
use serde_json::{Value, json};

use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, moment, now_ms};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::present::agents::{pid, state};
use crate::present::question;
use crate::present::sessions::shown_ids;
use crate::select::{questions, sessions};

/// Columns of the table.
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

/// Extra columns if there are sub-agents, inserted after the path.
const OF_SUB_AGENTS: [Column; 2] = [spare("TYPE", 4), spare("NAME", 3)];

/// List running agents.
#[derive(clap::Args)]
pub(super) struct ListLiveAgents {
    /// Include every agent of the session, running or not; without --session, of the last one used
    /// in this directory
    #[arg(long)]
    all: bool,
    /// Show only agents of this session; a unique prefix of its ID is enough
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print one JSON object per agent
    #[arg(long)]
    json: bool,
}

impl ListLiveAgents {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let realm = match (&self.session, self.all) {
            (None, false) => None,
            (session, _) => Some(sessions::meant(store, session.as_deref()).await?.realm),
        };
        let agents = store
            .agents(
                AgentFilter {
                    realm,
                    held: !self.all,
                    ..AgentFilter::default()
                },
                Page::all(),
            )
            .await?;
        let asks = questions::oldest_by_agent(store, realm).await?;
        if self.json {
            let roots = SessionRoots::of(store, &agents).await?;
            for agent in &agents {
                print(
                    json_line(&object(
                        agent,
                        roots.of_agent(agent),
                        asks.get(&agent.agent),
                    ))
                    .as_bytes(),
                )?;
            }
        } else if agents.is_empty() {
            say_to_person("no agents are running");
        } else {
            print(readable(&agents, &asks, now_ms(), width()).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The parent of each agent.
struct SessionRoots(HashMap<AgentId, Option<AgentId>>);

impl SessionRoots {
    /// Reads the parents of all agents in the realms concerned: they need not be among those
    /// shown.
    async fn of(store: &dyn Store, agents: &[AgentRecord]) -> anyhow::Result<Self> {
        let children = agents.iter().filter(|agent| agent.origin.is_some());
        let realms: BTreeSet<RealmId> = children.map(|agent| agent.realm).collect();
        let mut parents = HashMap::new();
        for realm in realms {
            let all = store
                .agents(
                    AgentFilter {
                        realm: Some(realm),
                        ..AgentFilter::default()
                    },
                    Page::all(),
                )
                .await?;
            parents.extend(all.into_iter().map(|agent| (agent.agent, parent(&agent))));
        }
        Ok(Self(parents))
    }

    /// Returns the session of an agent.
    fn of_agent(&self, agent: &AgentRecord) -> AgentId {
        let (mut id, mut parent) = (agent.agent, parent(agent));
        // Bounded, so that a damaged store with a cycle does not hang the command.
        for _ in 0..=self.0.len() {
            let Some(next) = parent else { break };
            (id, parent) = (next, self.0.get(&next).copied().flatten());
        }
        id
    }
}

fn parent(agent: &AgentRecord) -> Option<AgentId> {
    agent.origin.as_ref().map(|origin| origin.parent)
}

fn object(agent: &AgentRecord, session: AgentId, asks: Option<&QuestionRecord>) -> Value {
    let origin = agent.origin.as_deref();
    json!({
        "agent_id": agent.agent, "session_id": session, "pid": agent.holder.as_deref().and_then(pid),
        "path": agent.path, "parent": parent(agent), "state": state(agent),
        "agent_type": origin.map(|origin| &origin.agent_type),
        "name": origin.and_then(|origin| origin.name.as_ref()),
        "description": origin.map(|origin| &origin.description),
        "permission_mode": agent.mode, "model": agent.model,
        "cwd": agent.cwd.to_string_lossy(), "created_at": moment(agent.created_ms),
        "used_at": moment(agent.used_ms), "asks": question::object(asks),
    })
}

fn readable(
    agents: &[AgentRecord],
    asks: &HashMap<AgentId, QuestionRecord>,
    now: i64,
    columns: Option<usize>,
) -> String {
    let ids = shown_ids(agents.iter().map(|agent| agent.agent));
    let nested = agents.iter().any(|agent| agent.origin.is_some());
    let nothing = || "–".to_owned();
    let row = |(agent, id): (&AgentRecord, String)| {
        let mut row = vec![
            id,
            tame(&agent.path),
            question::state(state(agent), asks.get(&agent.agent), now),
            agent.holder.clone().unwrap_or_else(nothing),
            age(now.saturating_sub(agent.used_ms)),
            tame(&agent.model),
            agent.mode.to_string(),
            tame(&agent.cwd.to_string_lossy()),
        ];
        if nested {
            let origin = agent.origin.as_ref();
            let kind = origin.map_or_else(nothing, |origin| tame(&origin.agent_type));
            let name = origin
                .and_then(|origin| origin.name.as_ref())
                .map_or_else(nothing, Name::to_string);
            row.splice(2..2, [kind, name]);
        }
        row
    };
    let mut shown = COLUMNS.to_vec();
    if nested {
        shown.splice(2..2, OF_SUB_AGENTS);
    }
    table(
        &shown,
        &agents.iter().zip(ids).map(row).collect::<Vec<_>>(),
        columns,
    )
}

#[cfg(test)]
mod tests {
    use posse_port::store::{AgentState, CallKey, Origin};

    use super::*;
    use crate::present::fixtures::session;

    fn child() -> AgentRecord {
        let origin = Origin {
            parent: session().agent,
            call: CallKey { seq: 1, ordinal: 0 },
            call_id: "toolu_1".into(),
            agent_type: "Explore".into(),
            name: Some("ann".parse().unwrap()),
            description: "find the parser".into(),
            terms: String::new(),
        };
        let agent = "0197f0aa-0000-7100-8000-000000000002".parse().unwrap();
        let (origin, path) = (Some(Box::new(origin)), "/main/ann".into());
        AgentRecord {
            agent,
            origin,
            path,
            state: AgentState::Waiting,
            holder: Some("pid 7".into()),
            ..session()
        }
    }

    #[test]
    fn of_sub_agents_type_and_name_are_shown() {
        let roots = readable(&[session()], &HashMap::new(), 61_000, None);
        assert!(!roots.contains("TYPE"), "{roots}");
        let all = readable(&[session(), child()], &HashMap::new(), 61_000, None);
        let rows: Vec<Vec<&str>> = all
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0][..5], ["ID", "PATH", "TYPE", "NAME", "STATE"]);
        assert_eq!(rows[1][1..5], ["/main", "–", "–", "idle"]);
        assert_eq!(
            rows[2][1..7],
            ["/main/ann", "Explore", "ann", "waiting", "pid", "7"]
        );
        for width in [40, 60, 80] {
            let narrow = readable(&[session(), child()], &HashMap::new(), 61_000, Some(width));
            assert!(
                narrow.lines().all(|line| line.chars().count() <= width),
                "{narrow}"
            );
        }
        let told = object(&child(), session().agent, None);
        assert_eq!(
            (&told["agent_type"], &told["name"]),
            (&"Explore".into(), &"ann".into())
        );
        assert_eq!(
            (&told["parent"], &told["state"]),
            (&json!(session().agent), &"waiting".into())
        );
        assert_eq!(
            object(&session(), session().agent, None)["name"],
            Value::Null
        );
    }
}
