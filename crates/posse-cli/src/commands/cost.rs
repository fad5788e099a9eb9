//! `posse cost`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use posse_port::store::{AgentRecord, Charge};
use posse_protocol::{AgentId, Cost, Purpose};
use serde_json::{Value, json};

use crate::config::store::StoreArgs;
use crate::output::table::{Column, needed, spare, table};
use crate::output::transcript::folded;
use crate::output::{count, grouped, in_words, json_line, print, tame, width};
use crate::present::agents::state;
use crate::present::costs::{AgentCost, Tally, about, add, called, money, tree, uncertain};
use crate::present::sessions::short;
use crate::present::usage::usage;
use crate::select::sessions;

/// Columns of the list of agents.
const AGENTS: [Column; 5] = [
    needed("COST").right(),
    spare("IN", 2).right(),
    spare("OUT", 1).right(),
    spare("STATE", 3),
    needed("AGENT"),
];
/// Columns of the table of agents with those below them.
const SUBTREES: [Column; 7] = [
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
/// Lists what each agent has used itself, and the total. Input tokens are everything that was sent,
/// cached or not. With --verbose, tables show each agent with all below it; how much was read from
/// the prompt cache, written to it, and missed there, by each agent alone and, as ALL, with all below
/// it; each model; and each purpose.
#[derive(clap::Args)]
pub(crate) struct CostCommand {
    /// Session; a unique prefix of its ID is enough [default: the last one used in this directory]
    session: Option<String>,
    /// Show subtrees, the prompt cache, models and purposes, too
    #[arg(short, long)]
    verbose: bool,
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
                let tables = if self.verbose {
                    bill.tables(width())
                } else {
                    bill.list(width())
                };
                format!("{tables}\n{}", bill.summary(width()))
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

    /// Returns a line for each agent.
    fn list(&self, columns: Option<usize>) -> String {
        let rows = self.lines.iter().map(|line| {
            let [input, output] = line.own.figures();
            let state = state(line.agent).to_owned();
            vec![money(line.own), input, output, state, called(line)]
        });
        table(&AGENTS, &rows.collect::<Vec<_>>(), columns)
    }

    /// Returns everything in tables.
    fn tables(&self, columns: Option<usize>) -> String {
        let rows = self.lines.iter().map(|line| {
            let [input, output] = line.own.figures();
            let origin = line.agent.origin.as_ref();
            let kind = origin.map_or("", |origin| origin.agent_type.as_str());
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
        let mut tables = vec![table(&SUBTREES, &rows.collect::<Vec<_>>(), columns)];
        let rows = self.lines.iter().map(|line| {
            let figures = line.own.cache().into_iter().chain(line.subtree.cache());
            figures.chain([called(line)]).collect()
        });
        tables.push(table(&CACHE, &rows.collect::<Vec<_>>(), columns));
        let row = |name: &str, tally: &Tally| {
            let [input, output] = tally.figures();
            vec![money(*tally), input, output, tame(name)]
        };
        let models = self.models.iter().map(|(model, tally)| row(model, tally));
        tables.push(table(&MODELS, &models.collect::<Vec<_>>(), columns));
        let mut purposes = self.purposes.keys();
        if purposes.any(|purpose| *purpose != Purpose::Work) {
            let purposes = self.purposes.iter();
            let purposes = purposes.map(|(purpose, tally)| row(purpose.as_str(), tally));
            tables.push(table(&PURPOSES, &purposes.collect::<Vec<_>>(), columns));
        }
        tables.join("\n")
    }

    /// Returns the last lines: the total, and remarks about it.
    fn summary(&self, columns: Option<usize>) -> String {
        let ([input, output], [read, written, _]) = (self.total.figures(), self.total.cache());
        let cost = self.total.cost;
        let total = format!(
            "total {}",
            cost.map_or_else(|| in_words(None), |_| money(self.total))
        );
        let agents = count(self.lines.len(), "agent");
        let mut remarks = vec![format!(
            "{total} · {input} tokens in ({read} from the cache, {written} written to it), {output} out · {agents}"
        )];
        if let (Some(root), 1..) = (self.lines.first(), self.total.missed) {
            remarks.push(format!(
                "{} tokens had been in the cache and were not found there: `posse cache {}` says why",
                grouped(self.total.missed),
                short(root.agent.agent),
            ));
        }
        if let Some(more) = uncertain(self.total.uncertain) {
            remarks.push(format!(
                "not included: {more}: {}",
                self.in_flight().in_words()
            ));
        }
        for (model, _) in self.models.iter().filter(|(_, tally)| tally.cost.is_none()) {
            remarks.push(format!(
                "the cost of {model} is unknown (?), and so is every sum that includes it: it has no \
                 price"
            ));
        }
        let lines = remarks.iter().flat_map(|line| folded(line, columns));
        let shown: String = lines.map(|line| format!("{line}\n")).collect();
        match shown.strip_prefix(&total) {
            Some(rest) => format!("\x1b[1m{total}\x1b[0m{rest}"),
            None => shown,
        }
    }

    /// Returns the calls whose replies are not stored.
    fn in_flight(&self) -> InFlightCalls {
        let mut calls = InFlightCalls::default();
        for AgentCost { agent, .. } in &self.lines {
            match (&agent.reserved, &agent.holder) {
                (Some(_), Some(_)) => calls.made += 1,
                (Some(_), None) => calls.cut_off += 1,
                (None, _) => {}
            }
            let in_flight = |charge: &Charge| charge.purpose == Purpose::InFlight;
            calls.agents_before += usize::from(agent.charges.iter().any(in_flight));
        }
        calls
    }

    fn object(&self) -> Value {
        let mut object = json!({"session_id": self.lines.first().map(|line| line.agent.agent)});
        add(&mut object, self.total.total());
        let InFlightCalls { made, cut_off, .. } = self.in_flight();
        object["calls_in_flight"] = json!(made + cut_off);
        object["models"] = list("model", &self.models);
        object["purposes"] = list("purpose", &self.purposes);
        object["agents"] = self.lines.iter().map(of_agent).collect();
        object
    }
}

/// Calls whose replies are not stored.
#[derive(Default)]
struct InFlightCalls {
    /// Calls that a process makes now.
    made: usize,
    /// Calls of agents that no process has taken since theirs died.
    cut_off: usize,
    /// Agents whose calls were cut off before they were taken again. The store has one sum for each.
    agents_before: usize,
}

impl InFlightCalls {
    fn in_words(&self) -> String {
        let are = |number: usize| if number == 1 { "is" } else { "are" };
        let were = |number: usize| if number == 1 { "was" } else { "were" };
        let calls = |number: usize| count(number, "call");
        let Self {
            made,
            cut_off,
            agents_before,
        } = *self;
        let made = (made > 0).then(|| format!("{} {} in flight", calls(made), are(made)));
        let cut_off = (cut_off > 0).then(|| {
            let calls = calls(cut_off);
            format!("{calls} {} in flight when the process died", were(cut_off))
        });
        let before = (agents_before > 0).then(|| {
            let agents = count(agents_before, "agent");
            format!("calls of {agents} were in flight when an earlier process died")
        });
        let parts: Vec<String> = [made, cut_off, before].into_iter().flatten().collect();
        parts.join("; ")
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
