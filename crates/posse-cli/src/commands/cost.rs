//! `posse cost`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use posse_port::store::AgentRecord;
use posse_protocol::{AgentId, Cost, Purpose};
use serde_json::{Value, json};

use crate::config::store::StoreArgs;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{grouped, in_words, json_line, print, tame, width};
use crate::present::agents::state;
use crate::present::costs::{AgentCost, Tally, about, add, called, money, tree, uncertain};
use crate::present::sessions::short;
use crate::present::usage::usage;
use crate::select::sessions;

/// Columns of the table of agents.
const AGENTS: [Column; 7] = [
    needed("COST").right(),
    needed("WITH BELOW").right(),
    spare("IN", 2).right(),
    spare("OUT", 2).right(),
    spare("TYPE", 1),
    spare("STATE", 3),
    needed("AGENT"),
];
/// Columns of the table of models.
const MODELS: [Column; 4] = [
    needed("COST").right(),
    needed("IN").right(),
    needed("OUT").right(),
    needed("MODEL"),
];

/// Columns of the table about the prompt cache.
const CACHE: [Column; 7] = [
    needed("READ").right(),
    needed("WRITTEN").right(),
    needed("MISSED").right(),
    spare("ALL READ", 2).right(),
    spare("ALL WRITTEN", 3).right(),
    spare("ALL MISSED", 1).right(),
    needed("AGENT"),
];
/// Columns of the table of purposes.
const PURPOSES: [Column; 4] = [
    needed("COST").right(),
    needed("IN").right(),
    needed("OUT").right(),
    needed("FOR"),
];

/// Show what a session has cost.
///
/// Lists each agent alone and with all agents below it, each model, and the total. Input tokens are
/// everything that was sent, cached or not; a second table shows how much of it was read from the
/// prompt cache, written to it, and missed there, by each agent alone and, as ALL, with all below
/// it.
#[derive(clap::Args)]
pub(crate) struct CostCommand {
    /// Session; a unique prefix of its ID is enough [default: the last one used in this directory]
    session: Option<String>,
    /// Print one JSON object, with exact sums
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl CostCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        crate::config::runtime()?.block_on(async {
            let store = crate::assemble::store::look_into_store(&self.store)?;
            let (root, agents) =
                sessions::meant_with_agents(store.as_ref(), self.session.as_deref()).await?;
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

/// What a session has cost.
struct Bill<'a> {
    /// Each agent, followed by those it started.
    lines: Vec<AgentCost<'a>>,
    models: BTreeMap<&'a str, Tally>,
    purposes: BTreeMap<Purpose, Tally>,
    total: Tally,
}

impl<'a> Bill<'a> {
    /// Returns the bill of `root` and all agents below it; `agents` may include other sessions of
    /// the same realm.
    fn of(root: AgentId, agents: &'a [AgentRecord]) -> Self {
        let lines = tree(root, agents);
        let charges = || lines.iter().flat_map(|line| &line.agent.charges);
        let known = || charges().filter(|charge| charge.purpose != Purpose::InFlight);
        let models = Tally::by(known(), |charge| charge.model.as_str());
        let purposes = Tally::by(known(), |charge| charge.purpose);
        let total = lines
            .first()
            .map_or_else(Tally::nothing, |root| root.subtree);
        Self {
            lines,
            models,
            purposes,
            total,
        }
    }

    /// Returns the tables for people.
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

    /// Returns the last lines: the total, and remarks about it.
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
                grouped(self.total.missed),
                short(root.agent.agent),
            ));
        }
        if let Some(more) = uncertain(self.total.uncertain) {
            shown.push_str(&format!(
                "not included: {more}; they are in progress, or were cut off when their process \
                 died\n"
            ));
        }
        for (model, _) in self.models.iter().filter(|(_, tally)| tally.cost.is_none()) {
            shown.push_str(&format!(
                "the cost of {} is unknown (?), and so is every sum that includes it: it has no \
                 price\n",
                tame(model)
            ));
        }
        shown
    }

    fn object(&self) -> Value {
        let mut object = json!({"session_id": self.lines.first().map(|line| line.agent.agent)});
        add(&mut object, self.total.total());
        object["models"] = list("model", &self.models);
        object["purposes"] = list("purpose", &self.purposes);
        object["agents"] = self.lines.iter().map(of_agent).collect();
        object
    }
}

/// Returns groups of charges as a list of objects.
fn list<K: serde::Serialize>(name: &str, groups: &BTreeMap<K, Tally>) -> Value {
    let object = |(group, tally): (&K, &Tally)| {
        let mut object = json!({name: group});
        add(&mut object, tally.object());
        object
    };
    groups.iter().map(object).collect()
}

fn of_agent(line: &AgentCost<'_>) -> Value {
    let AgentCost {
        agent,
        own,
        subtree,
        ..
    } = line;
    let mut object = about(agent);
    add(&mut object, own.object());
    object["subtree_cost_usd"] = json!(subtree.cost.map(Cost::usd));
    object["subtree_usage"] = usage(&subtree.usage);
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
