//! `posse cost`.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;

use posse_protocol::{AgentId, Cost, Usage};
use posse_runtime::port::store::{AgentFilter, Charge, Session};
use serde_json::{Value, json};

use crate::commands::agents::state;
use crate::commands::sessions::find;
use crate::output::{in_words, json_line, print, tame, width};
use crate::store::StoreArgs;
use crate::table::{Column, needed, spare, table};

const AGENTS: [Column; 7] = [
    needed("COST").right(),
    needed("WITH BELOW").right(),
    spare("IN", 2).right(),
    spare("OUT", 2).right(),
    spare("TYPE", 1),
    spare("STATE", 3),
    needed("AGENT"),
];
const MODELS: [Column; 4] =
    [needed("COST").right(), needed("IN").right(), needed("OUT").right(), needed("MODEL")];

/// Show what a session has cost.
///
/// Each agent by itself and with all below it, each model, and everything together. Tokens in are the
/// whole of what was sent, cached or not.
#[derive(clap::Args)]
pub(crate) struct CostCommand {
    /// The session; the beginning of its id will do [default: the one of this directory used last]
    session: Option<String>,
    /// One JSON object, with exact sums
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl CostCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        super::runtime()?.block_on(async {
            let store = crate::session::look_into_store(&self.store)?;
            let root = find::meant(store.as_ref(), self.session.as_deref()).await?;
            // All at once: a sum of agents that are read one after the other would be of no moment.
            let filter = AgentFilter { realm: Some(root.realm), ..AgentFilter::default() };
            let agents = store.agents(filter, usize::MAX).await?;
            let bill = Bill::of(root.agent, &agents);
            let shown = if self.json { json_line(&bill.object()) } else { bill.readable(width()) };
            print(shown.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// What was used, and what that cost; none if the price of any of it is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tally {
    usage: Usage,
    cost: Option<Cost>,
}

impl Tally {
    fn nothing() -> Self {
        Self { usage: Usage::default(), cost: Some(Cost::ZERO) }
    }

    fn add(&mut self, usage: Usage, cost: Option<Cost>) {
        self.usage += usage;
        self.cost = self.cost.zip(cost).map(|(sum, more)| sum + more);
    }

    fn of(charges: &[Charge]) -> Self {
        let mut sum = Self::nothing();
        for charge in charges {
            sum.add(charge.usage, charge.cost);
        }
        sum
    }
}

/// An agent of the session.
struct Line<'a> {
    agent: &'a Session,
    depth: usize,
    own: Tally,
    subtree: Tally,
}

/// What a session has cost.
struct Bill<'a> {
    /// Each agent, before those that it started.
    lines: Vec<Line<'a>>,
    models: BTreeMap<&'a str, Tally>,
    total: Tally,
}

impl<'a> Bill<'a> {
    /// The bill of `root` and all below it; other sessions of the same realm may be among `agents`.
    fn of(root: AgentId, agents: &'a [Session]) -> Self {
        let lines = tree(root, agents);
        let (mut models, mut total) = (BTreeMap::new(), Tally::nothing());
        for line in &lines {
            total.add(line.own.usage, line.own.cost);
            for charge in &line.agent.charges {
                let model = models.entry(charge.model.as_str()).or_insert_with(Tally::nothing);
                model.add(charge.usage, charge.cost);
            }
        }
        Self { lines, models, total }
    }

    fn readable(&self, columns: Option<usize>) -> String {
        let figures = |Tally { usage, .. }: &Tally| [usage.prompt().to_string(), usage.output.to_string()];
        let rows = self.lines.iter().map(|line| {
            let [input, output] = figures(&line.own);
            let kind = line.agent.origin.as_ref().map_or("", |origin| origin.agent_type.as_str());
            let state = state(line.agent).to_owned();
            vec![money(line.own), money(line.subtree), input, output, tame(kind), state, called(line)]
        });
        let mut shown = table(&AGENTS, &rows.collect::<Vec<_>>(), columns);
        let models = self.models.iter().map(|(model, tally)| {
            let [input, output] = figures(tally);
            vec![money(*tally), input, output, tame(model)]
        });
        shown.push_str(&format!("\n{}\n", table(&MODELS, &models.collect::<Vec<_>>(), columns)));
        let [input, output] = figures(&self.total);
        let agents = if self.lines.len() == 1 { "agent" } else { "agents" };
        shown.push_str(&format!(
            "\x1b[1mtotal {}\x1b[0m · {input} tokens in, {output} out · {} {agents}\n",
            self.total.cost.map_or_else(|| in_words(None), |_| money(self.total)),
            self.lines.len(),
        ));
        for (model, _) in self.models.iter().filter(|(_, tally)| tally.cost.is_none()) {
            shown.push_str(&format!(
                "what {} cost is not known (?), nor is any sum that it is part of: there was no price for it\n",
                tame(model)
            ));
        }
        shown
    }

    fn object(&self) -> Value {
        let models = self.models.iter().map(|(model, tally)| of_model(model, tally.usage, tally.cost));
        json!({
            "session_id": self.lines.first().map(|line| line.agent.agent),
            "cost_usd": self.total.cost.map(Cost::usd), "usage": self.total.usage,
            "models": models.collect::<Vec<_>>(),
            "agents": self.lines.iter().map(of_agent).collect::<Vec<_>>(),
        })
    }
}

fn of_model(model: &str, usage: Usage, cost: Option<Cost>) -> Value {
    json!({"model": model, "cost_usd": cost.map(Cost::usd), "usage": usage})
}

fn of_agent(line: &Line<'_>) -> Value {
    let Line { agent, own, subtree, .. } = line;
    let origin = agent.origin.as_deref();
    let models = agent.charges.iter().map(|charge| of_model(&charge.model, charge.usage, charge.cost));
    json!({
        "agent_id": agent.agent, "path": agent.path, "parent": origin.map(|origin| origin.parent),
        "agent_type": origin.map(|origin| &origin.agent_type),
        "name": origin.and_then(|origin| origin.name.as_ref()),
        "description": origin.map(|origin| &origin.description), "state": state(agent),
        "cost_usd": own.cost.map(Cost::usd), "usage": own.usage,
        "subtree_cost_usd": subtree.cost.map(Cost::usd), "subtree_usage": subtree.usage,
        "models": models.collect::<Vec<_>>(),
    })
}

/// An amount with as many places as any other, so that a column can be added up.
fn money(tally: Tally) -> String {
    tally.cost.map_or_else(|| "?".to_owned(), |cost| format!("${:.4}", cost.usd()))
}

/// What an agent is called, and what it is for, in its place in the tree.
fn called(line: &Line<'_>) -> String {
    let indent = "  ".repeat(line.depth);
    let origin = line.agent.origin.as_ref();
    let name = origin.and_then(|origin| origin.name.as_ref()).map(ToString::to_string);
    let name = name.unwrap_or_else(|| line.agent.path.clone());
    let what = origin.map(|origin| format!(": {}", origin.description)).unwrap_or_default();
    format!("{indent}{}", tame(&format!("{name}{what}")).replace('\n', " "))
}

/// `root` and all below it, each before those that it started, those by age.
fn tree(root: AgentId, agents: &[Session]) -> Vec<Line<'_>> {
    let mut children: HashMap<AgentId, Vec<&Session>> = HashMap::new();
    for agent in agents {
        if let Some(origin) = &agent.origin {
            children.entry(origin.parent).or_default().push(agent);
        }
    }
    let mut lines: Vec<Line<'_>> = Vec::new();
    // Who is next, the number of its parent's line, and how deep it is.
    let mut next: Vec<(&Session, Option<usize>, usize)> = Vec::new();
    next.extend(agents.iter().find(|agent| agent.agent == root).map(|root| (root, None, 0)));
    let mut parents = Vec::new();
    while let Some((agent, parent, depth)) = next.pop() {
        let own = Tally::of(&agent.charges);
        let at = lines.len();
        lines.push(Line { agent, depth, own, subtree: own });
        parents.push(parent);
        let mut below = children.remove(&agent.agent).unwrap_or_default();
        below.sort_unstable_by_key(|child| std::cmp::Reverse((child.created_ms, child.agent)));
        next.extend(below.into_iter().map(|child| (child, Some(at), depth + 1)));
    }
    // The last have nobody below them, and everybody comes after its parent.
    for (at, parent) in parents.into_iter().enumerate().rev() {
        if let Some(parent) = parent {
            let Tally { usage, cost } = lines[at].subtree;
            lines[parent].subtree.add(usage, cost);
        }
    }
    lines
}
