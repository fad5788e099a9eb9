//! Usage and cost of a session's agents, in the order of their tree.

use std::collections::{BTreeMap, HashMap};

use posse_port::store::{AgentRecord, Charge};
use posse_protocol::{AgentId, Cost, Purpose, Usage};
use serde_json::{Value, json};

use super::agents::{name, state};
use super::usage::usage;
use crate::output::{grouped, in_words, tame};

/// Usage, cache misses, and cost; `None` if a price is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Cost>,
    pub(crate) missed: u64,
    /// The highest cost of calls in flight, which is part of nothing above; `None` if a price is
    /// unknown.
    pub(crate) uncertain: Option<Cost>,
}

impl Tally {
    pub(crate) fn nothing() -> Self {
        Self {
            usage: Usage::default(),
            cost: Some(Cost::ZERO),
            missed: 0,
            uncertain: Some(Cost::ZERO),
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.usage += more.usage;
        let sum = |(sum, more): (Cost, Cost)| sum + more;
        self.cost = self.cost.zip(more.cost).map(sum);
        self.uncertain = self.uncertain.zip(more.uncertain).map(sum);
        self.missed = self.missed.saturating_add(more.missed);
    }

    pub(crate) fn of<'a>(charges: impl IntoIterator<Item = &'a Charge>) -> Self {
        let mut sum = Self::nothing();
        for charge in charges {
            sum.add(match charge.purpose {
                Purpose::InFlight => Self {
                    uncertain: charge.cost,
                    ..Self::nothing()
                },
                _ => Self {
                    usage: charge.usage,
                    cost: charge.cost,
                    missed: charge.missed,
                    ..Self::nothing()
                },
            });
        }
        sum
    }

    /// Returns the sums of groups of charges.
    pub(crate) fn by<'a, K: Ord>(
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

    /// Returns the cost for people, with that of calls in flight apart.
    pub(crate) fn in_words(&self) -> String {
        let cost = in_words(self.cost);
        match uncertain(self.uncertain) {
            Some(more) => format!("{cost} and {more}"),
            None => cost,
        }
    }

    /// Tokens in and out.
    pub(crate) fn figures(&self) -> [String; 2] {
        [grouped(self.usage.prompt()), grouped(self.usage.output)]
    }

    /// Tokens read from the cache, written to it, and missed there.
    pub(crate) fn cache(&self) -> [String; 3] {
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
        .map(grouped)
    }

    /// Returns the sums of one agent, model or purpose for programs.
    pub(crate) fn object(&self) -> Value {
        json!({
            "cost_usd": self.cost.map(Cost::usd), "usage": usage(&self.usage), "missed_tokens": self.missed,
            "thinking_tokens": self.usage.thinking, "uncertain_cost_usd": self.uncertain.map(Cost::usd),
        })
    }

    /// Returns the sums of a whole session for programs.
    pub(crate) fn total(&self) -> Value {
        json!({
            "total_cost_usd": self.cost.map(Cost::usd), "usage": usage(&self.usage),
            "missed_tokens": self.missed, "thinking_tokens": self.usage.thinking,
            "uncertain_cost_usd": self.uncertain.map(Cost::usd),
        })
    }
}

/// Returns the cost of calls in flight for people; `None` if there are none.
pub(crate) fn uncertain(cost: Option<Cost>) -> Option<String> {
    match cost {
        Some(Cost::ZERO) => None,
        Some(cost) => Some(format!("at most {cost} for calls in flight")),
        None => Some("an unknown cost for calls in flight".into()),
    }
}

/// An agent with its cost.
pub(crate) struct AgentCost<'a> {
    pub(crate) agent: &'a AgentRecord,
    pub(crate) depth: usize,
    pub(crate) own: Tally,
    pub(crate) subtree: Tally,
}

/// Returns `root` and all agents below it, each followed by those it started, by age.
pub(crate) fn tree(root: AgentId, agents: &[AgentRecord]) -> Vec<AgentCost<'_>> {
    let mut children: HashMap<AgentId, Vec<&AgentRecord>> = HashMap::new();
    for agent in agents {
        if let Some(origin) = &agent.origin {
            children.entry(origin.parent).or_default().push(agent);
        }
    }
    let mut lines: Vec<AgentCost<'_>> = Vec::new();
    // A stack instead of recursion: the next agents with the index of their parent's line and
    // their depth.
    let mut next: Vec<(&AgentRecord, Option<usize>, usize)> = Vec::new();
    next.extend(
        agents
            .iter()
            .find(|agent| agent.agent == root)
            .map(|root| (root, None, 0)),
    );
    let mut parents = Vec::new();
    while let Some((agent, parent, depth)) = next.pop() {
        let own = Tally::of(agent.with_reserved());
        let at = lines.len();
        lines.push(AgentCost {
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
    // Backwards, since every agent comes after its parent: a subtree is complete when it is
    // added.
    for (at, parent) in parents.into_iter().enumerate().rev() {
        if let Some(parent) = parent {
            let more = lines[at].subtree;
            lines[parent].subtree.add(more);
        }
    }
    lines
}

/// Returns an agent's identity for programs.
pub(crate) fn about(agent: &AgentRecord) -> Value {
    let origin = agent.origin.as_deref();
    json!({
        "agent_id": agent.agent, "path": agent.path, "parent": origin.map(|origin| origin.parent),
        "agent_type": origin.map(|origin| &origin.agent_type),
        "name": origin.and_then(|origin| origin.name.as_ref()),
        "description": origin.map(|origin| &origin.description), "state": state(agent),
    })
}

/// Returns an agent's name and description, indented by its depth.
pub(crate) fn called(line: &AgentCost<'_>) -> String {
    let indent = "  ".repeat(line.depth);
    let agent = line.agent;
    let (name, last) = (name(agent), agent.path.rsplit('/').next());
    let shown = match agent.origin.as_deref() {
        None => name.to_owned(),
        // A member of a team is described by its name.
        Some(origin) if origin.description.starts_with(&format!("{name} of team ")) => {
            name.to_owned()
        }
        Some(origin) => {
            // Others without a name have a number.
            let name = origin.name.as_ref().map(ToString::to_string);
            let name = name.unwrap_or_else(|| last.unwrap_or_default().to_owned());
            format!("{name}: {}", origin.description)
        }
    };
    format!("{indent}{}", tame(&shown).replace('\n', " "))
}

/// Adds the fields of one object to another.
pub(crate) fn add(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// Returns an amount with a fixed number of digits, so that columns can be added up.
pub(crate) fn money(tally: Tally) -> String {
    tally
        .cost
        .map_or_else(|| "?".to_owned(), |cost| format!("${:.4}", cost.usd()))
}
