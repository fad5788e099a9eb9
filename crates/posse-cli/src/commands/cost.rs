//! `posse cost`.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;

use posse_port::store::{AgentFilter, Charge, Session};
use posse_protocol::{AgentId, Cost, Purpose, Usage};
use serde_json::{Value, json};

use super::agents::state;
use crate::assemble::session::short;
use crate::config::store::StoreArgs;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{in_words, json_line, print, tame, width};
use crate::select::sessions;

const AGENTS: [Column; 7] = [
    needed("COST").right(),
    needed("WITH BELOW").right(),
    spare("IN", 2).right(),
    spare("OUT", 2).right(),
    spare("TYPE", 1),
    spare("STATE", 3),
    needed("AGENT"),
];
const MODELS: [Column; 4] = [
    needed("COST").right(),
    needed("IN").right(),
    needed("OUT").right(),
    needed("MODEL"),
];

const CACHE: [Column; 7] = [
    needed("READ").right(),
    needed("WRITTEN").right(),
    needed("MISSED").right(),
    spare("ALL READ", 2).right(),
    spare("ALL WRITTEN", 3).right(),
    spare("ALL MISSED", 1).right(),
    needed("AGENT"),
];
const PURPOSES: [Column; 4] = [
    needed("COST").right(),
    needed("IN").right(),
    needed("OUT").right(),
    needed("FOR"),
];

/// Show what a session has cost.
///
/// Each agent by itself and with all below it, each model, and everything together. Tokens in are the
/// whole of what was sent, cached or not; a second table says how much of it was read from the prompt
/// cache, written to it, and missed there, by each agent alone and, as ALL, with all below it.
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
            let store = crate::assemble::session::look_into_store(&self.store)?;
            let root = sessions::meant(store.as_ref(), self.session.as_deref()).await?;
            // All at once: a sum of agents that are read one after the other would be of no moment.
            let filter = AgentFilter {
                realm: Some(root.realm),
                ..AgentFilter::default()
            };
            let agents = store.agents(filter, usize::MAX).await?;
            let bill = Bill::of(root.agent, &agents);
            let shown = if self.json {
                json_line(&bill.object())
            } else {
                bill.readable(width())
            };
            print(shown.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// What was used and missed in the cache, and what that cost; none if the price of any of it is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tally {
    pub(super) usage: Usage,
    cost: Option<Cost>,
    missed: u64,
}

impl Tally {
    fn nothing() -> Self {
        Self {
            usage: Usage::default(),
            cost: Some(Cost::ZERO),
            missed: 0,
        }
    }

    fn add(&mut self, more: Self) {
        self.usage += more.usage;
        self.cost = self.cost.zip(more.cost).map(|(sum, more)| sum + more);
        self.missed = self.missed.saturating_add(more.missed);
    }

    fn of<'a>(charges: impl IntoIterator<Item = &'a Charge>) -> Self {
        let mut sum = Self::nothing();
        for charge in charges {
            sum.add(Self {
                usage: charge.usage,
                cost: charge.cost,
                missed: charge.missed,
            });
        }
        sum
    }

    /// Each group of charges by itself.
    fn by<'a, K: Ord>(
        charges: impl IntoIterator<Item = &'a Charge>,
        group: impl Fn(&'a Charge) -> K,
    ) -> BTreeMap<K, Self> {
        let mut groups = BTreeMap::new();
        for charge in charges {
            groups
                .entry(group(charge))
                .or_insert_with(Self::nothing)
                .add(Self::of([charge]));
        }
        groups
    }

    /// Tokens in and out.
    fn figures(&self) -> [String; 2] {
        [
            self.usage.prompt().to_string(),
            self.usage.output.to_string(),
        ]
    }

    /// Tokens read from the cache, written to it, and missed there.
    fn cache(&self) -> [String; 3] {
        let Usage {
            cache_read,
            cache_write_5m,
            cache_write_1h,
            ..
        } = self.usage;
        [
            cache_read,
            cache_write_5m.saturating_add(cache_write_1h),
            self.missed,
        ]
        .map(|tokens| tokens.to_string())
    }

    fn object(&self) -> Value {
        json!({"cost_usd": self.cost.map(Cost::usd), "usage": self.usage, "missed_tokens": self.missed})
    }
}

/// An agent of the session.
pub(super) struct Line<'a> {
    pub(super) agent: &'a Session,
    pub(super) depth: usize,
    pub(super) own: Tally,
    subtree: Tally,
}

/// What a session has cost.
struct Bill<'a> {
    /// Each agent, before those that it started.
    lines: Vec<Line<'a>>,
    models: BTreeMap<&'a str, Tally>,
    purposes: BTreeMap<Purpose, Tally>,
    total: Tally,
}

impl<'a> Bill<'a> {
    /// The bill of `root` and all below it; other sessions of the same realm may be among `agents`.
    fn of(root: AgentId, agents: &'a [Session]) -> Self {
        let lines = tree(root, agents);
        let charges = || lines.iter().flat_map(|line| &line.agent.charges);
        let models = Tally::by(charges(), |charge| charge.model.as_str());
        let purposes = Tally::by(charges(), |charge| charge.purpose);
        let total = Tally::of(charges());
        Self {
            lines,
            models,
            purposes,
            total,
        }
    }

    fn readable(&self, columns: Option<usize>) -> String {
        let rows = self.lines.iter().map(|line| {
            let [input, output] = line.own.figures();
            let kind = line
                .agent
                .origin
                .as_ref()
                .map_or("", |origin| origin.agent_type.as_str());
            let state = state(line.agent).to_owned();
            vec![
                money(line.own),
                money(line.subtree),
                input,
                output,
                tame(kind),
                state,
                called(line),
            ]
        });
        let mut shown = table(&AGENTS, &rows.collect::<Vec<_>>(), columns);
        let rows = self.lines.iter().map(|line| {
            let figures = line.own.cache().into_iter().chain(line.subtree.cache());
            figures.chain([called(line)]).collect()
        });
        shown.push_str(&format!(
            "\n{}\n",
            table(&CACHE, &rows.collect::<Vec<_>>(), columns)
        ));
        let row = |name: &str, tally: &Tally| {
            let [input, output] = tally.figures();
            vec![money(*tally), input, output, tame(name)]
        };
        let models = self.models.iter().map(|(model, tally)| row(model, tally));
        shown.push_str(&format!(
            "{}\n",
            table(&MODELS, &models.collect::<Vec<_>>(), columns)
        ));
        if self
            .purposes
            .keys()
            .any(|purpose| *purpose != Purpose::Work)
        {
            let purposes = self
                .purposes
                .iter()
                .map(|(purpose, tally)| row(purpose.as_str(), tally));
            shown.push_str(&format!(
                "{}\n",
                table(&PURPOSES, &purposes.collect::<Vec<_>>(), columns)
            ));
        }
        shown.push_str(&self.summary());
        shown
    }

    /// The last lines: everything together, and what is to be known about it.
    fn summary(&self) -> String {
        let ([input, output], [read, written, _]) = (self.total.figures(), self.total.cache());
        let agents = if self.lines.len() == 1 {
            "agent"
        } else {
            "agents"
        };
        let mut shown = format!(
            "\x1b[1mtotal {}\x1b[0m · {input} tokens in ({read} from the cache, {written} written to it), {output} out · {} {agents}\n",
            self.total
                .cost
                .map_or_else(|| in_words(None), |_| money(self.total)),
            self.lines.len(),
        );
        if let (Some(root), 1..) = (self.lines.first(), self.total.missed) {
            shown.push_str(&format!(
                "{} tokens had been in the cache and were not found there: `posse cache {}` says why\n",
                self.total.missed,
                short(root.agent.agent),
            ));
        }
        for (model, _) in self.models.iter().filter(|(_, tally)| tally.cost.is_none()) {
            shown.push_str(&format!(
                "what {} cost is not known (?), nor is any sum that it is part of: there was no price for it\n",
                tame(model)
            ));
        }
        shown
    }

    fn object(&self) -> Value {
        let mut object = json!({"session_id": self.lines.first().map(|line| line.agent.agent)});
        add(&mut object, self.total.object());
        object["models"] = list("model", &self.models);
        object["purposes"] = list("purpose", &self.purposes);
        object["agents"] = self.lines.iter().map(of_agent).collect();
        object
    }
}

/// Adds the fields of one object to another.
fn add(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// Groups of charges as a list of objects.
fn list<K: serde::Serialize>(name: &str, groups: &BTreeMap<K, Tally>) -> Value {
    let object = |(group, tally): (&K, &Tally)| {
        let mut object = json!({name: group});
        add(&mut object, tally.object());
        object
    };
    groups.iter().map(object).collect()
}

fn of_agent(line: &Line<'_>) -> Value {
    let Line {
        agent,
        own,
        subtree,
        ..
    } = line;
    let mut object = about(agent);
    add(&mut object, own.object());
    object["subtree_cost_usd"] = json!(subtree.cost.map(Cost::usd));
    object["subtree_usage"] = json!(subtree.usage);
    object["subtree_missed_tokens"] = subtree.missed.into();
    object["models"] = list(
        "model",
        &Tally::by(&agent.charges, |charge| charge.model.as_str()),
    );
    object["purposes"] = list(
        "purpose",
        &Tally::by(&agent.charges, |charge| charge.purpose),
    );
    object
}

/// Who an agent is.
pub(super) fn about(agent: &Session) -> Value {
    let origin = agent.origin.as_deref();
    json!({
        "agent_id": agent.agent, "path": agent.path, "parent": origin.map(|origin| origin.parent),
        "agent_type": origin.map(|origin| &origin.agent_type),
        "name": origin.and_then(|origin| origin.name.as_ref()),
        "description": origin.map(|origin| &origin.description), "state": state(agent),
    })
}

/// An amount with as many places as any other, so that a column can be added up.
fn money(tally: Tally) -> String {
    tally
        .cost
        .map_or_else(|| "?".to_owned(), |cost| format!("${:.4}", cost.usd()))
}

/// What an agent is called, and what it is for, in its place in the tree.
pub(super) fn called(line: &Line<'_>) -> String {
    let indent = "  ".repeat(line.depth);
    let origin = line.agent.origin.as_ref();
    let name = origin
        .and_then(|origin| origin.name.as_ref())
        .map(ToString::to_string);
    let name = name.unwrap_or_else(|| line.agent.path.clone());
    let what = origin
        .map(|origin| format!(": {}", origin.description))
        .unwrap_or_default();
    format!(
        "{indent}{}",
        tame(&format!("{name}{what}")).replace('\n', " ")
    )
}

/// `root` and all below it, each before those that it started, those by age.
pub(super) fn tree(root: AgentId, agents: &[Session]) -> Vec<Line<'_>> {
    let mut children: HashMap<AgentId, Vec<&Session>> = HashMap::new();
    for agent in agents {
        if let Some(origin) = &agent.origin {
            children.entry(origin.parent).or_default().push(agent);
        }
    }
    let mut lines: Vec<Line<'_>> = Vec::new();
    // Who is next, the number of its parent's line, and how deep it is.
    let mut next: Vec<(&Session, Option<usize>, usize)> = Vec::new();
    next.extend(
        agents
            .iter()
            .find(|agent| agent.agent == root)
            .map(|root| (root, None, 0)),
    );
    let mut parents = Vec::new();
    while let Some((agent, parent, depth)) = next.pop() {
        let own = Tally::of(&agent.charges);
        let at = lines.len();
        lines.push(Line {
            agent,
            depth,
            own,
            subtree: own,
        });
        parents.push(parent);
        let mut below = children.remove(&agent.agent).unwrap_or_default();
        below.sort_unstable_by_key(|child| std::cmp::Reverse((child.created_ms, child.agent)));
        next.extend(below.into_iter().map(|child| (child, Some(at), depth + 1)));
    }
    // The last have nobody below them, and everybody comes after its parent.
    for (at, parent) in parents.into_iter().enumerate().rev() {
        if let Some(parent) = parent {
            let more = lines[at].subtree;
            lines[parent].subtree.add(more);
        }
    }
    lines
}
