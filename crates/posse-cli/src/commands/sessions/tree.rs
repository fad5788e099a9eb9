//! `posse sessions tree`.

use std::process::ExitCode;

use posse_protocol::Cost;
use serde_json::{Value, json};

use crate::config::store::StoreArgs;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, tame, width};
use crate::present::agents::state;
use crate::present::costs::{AgentCost, about, add, called, money, tree};
use crate::present::sessions::shown_ids;
use crate::present::usage::usage;
use crate::select::sessions;

/// Columns of the table.
const COLUMNS: [Column; 6] = [
    needed("ID"),
    spare("STATE", 2),
    needed("COST").right(),
    spare("TOTAL", 3).right(),
    spare("TYPE", 1),
    needed("AGENT"),
];

/// Show the agents of a session, each below the one that started it.
///
/// Includes sub-agents that have ended and members that have left their team. COST is what an agent
/// used itself, TOTAL includes all agents below it. `posse sessions show ID` shows what one of them
/// did.
#[derive(clap::Args)]
pub(super) struct SessionTree {
    /// Session; a unique prefix of its ID is enough [default: the last one used in this directory]
    id: Option<String>,
    /// Print one JSON object, with the agents that each agent started in `children`
    #[arg(long)]
    json: bool,
}

impl SessionTree {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let store = crate::assemble::store::look_into_store(store)?;
        let (root, agents) =
            sessions::meant_with_agents(store.as_ref(), self.id.as_deref()).await?;
        let lines = tree(root.agent, &agents);
        let shown = if self.json {
            json_line(&nested(&lines))
        } else {
            readable(&lines, width())
        };
        print(shown.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a row per agent.
fn readable(lines: &[AgentCost<'_>], columns: Option<usize>) -> String {
    let ids = shown_ids(lines.iter().map(|line| line.agent.agent));
    let rows = lines.iter().zip(ids).map(|(line, id)| {
        let origin = line.agent.origin.as_ref();
        let kind = origin.map_or("", |origin| origin.agent_type.as_str());
        vec![
            id,
            state(line.agent).to_owned(),
            money(line.own),
            money(line.subtree),
            tame(kind),
            called(line),
        ]
    });
    table(&COLUMNS, &rows.collect::<Vec<_>>(), columns)
}

/// Returns the first agent with the others nested below it.
fn nested(lines: &[AgentCost<'_>]) -> Value {
    // From the end: when an agent is reached, everything below it is complete, and is what was
    // collected at the next depth.
    let mut children: Vec<Vec<Value>> = Vec::new();
    for line in lines.iter().rev() {
        children.resize_with(children.len().max(line.depth + 2), Vec::new);
        let mut below = std::mem::take(&mut children[line.depth + 1]);
        below.reverse();
        let mut object = about(line.agent);
        add(&mut object, line.own.object());
        object["subtree_cost_usd"] = json!(line.subtree.cost.map(Cost::usd));
        object["subtree_usage"] = usage(&line.subtree.usage);
        object["children"] = below.into();
        children[line.depth].push(object);
    }
    let root = children.first_mut().and_then(Vec::pop);
    root.unwrap_or_default()
}
