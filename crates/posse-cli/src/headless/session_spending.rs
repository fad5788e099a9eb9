//! What a session has spent since this process began, as the store has it: with members of teams
//! that work in other processes.

use std::sync::Arc;
use std::time::Duration;

use posse_port::store::Store;
use posse_protocol::{AgentId, Cost, Purpose, Spent, Usage};

use crate::present::costs::Tally;

/// Time that the store has to answer.
const PATIENT: Duration = Duration::from_secs(5);

/// What a session has spent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionSpent {
    /// Spent since this process began, by model.
    pub(crate) spent: Vec<Spent>,
    /// The highest cost of calls in flight, also from before this process began; `None` if a price
    /// is unknown.
    pub(crate) uncertain: Option<Cost>,
}

/// Reads what a session has spent.
pub(crate) struct SessionSpending {
    store: Arc<dyn Store>,
    main: AgentId,
    /// Spent before this process began, by model; `None` for a new session.
    before: Option<Vec<Spent>>,
}

impl SessionSpending {
    /// Begins to count for a new session.
    pub(crate) fn of_new(store: Arc<dyn Store>, main: AgentId) -> Self {
        let before = None;
        Self {
            store,
            main,
            before,
        }
    }

    /// Begins to count for a session that is continued. `None` if the store cannot be read: then
    /// only what this process knows of is reported.
    pub(crate) async fn of_continued(store: Arc<dyn Store>, main: AgentId) -> Option<Self> {
        let before = read(&*store, main).await?.spent;
        Some(Self {
            before: Some(before),
            ..Self::of_new(store, main)
        })
    }

    /// Returns true if an earlier process worked on the session.
    pub(crate) fn is_continued(&self) -> bool {
        self.before.is_some()
    }

    /// Returns what all agents of the session have spent since this process began.
    pub(crate) async fn now(&self) -> Option<SessionSpent> {
        let now = read(&*self.store, self.main).await?;
        let before = self.before.as_deref().unwrap_or_default();
        Some(SessionSpent {
            spent: without(&now.spent, before),
            ..now
        })
    }
}

/// Reads what a session has spent in all; `None` if the store does not answer soon: a run must not
/// wait for its bill.
async fn read(store: &dyn Store, main: AgentId) -> Option<SessionSpent> {
    let spending = tokio::time::timeout(PATIENT, store.spending(vec![main]));
    let spending = spending.await.ok()?.ok()?;
    let charges = spending.into_iter().next()?.charges;
    let uncertain = Tally::of(&charges).uncertain;
    let known = charges
        .into_iter()
        .filter(|charge| charge.purpose != Purpose::InFlight);
    let spent = known.map(|charge| Spent {
        model: charge.model,
        usage: charge.usage,
        cost: charge.cost,
    });
    Some(SessionSpent {
        spent: together(spent),
        uncertain,
    })
}

/// Adds up what was spent, per model.
pub(crate) fn together(spent: impl IntoIterator<Item = Spent>) -> Vec<Spent> {
    let mut all: Vec<Spent> = Vec::new();
    for spent in spent {
        match all.iter_mut().find(|known| known.model == spent.model) {
            Some(known) => {
                known.usage += spent.usage;
                known.cost = known.cost.zip(spent.cost).map(|(one, other)| one + other);
            }
            None => all.push(spent),
        }
    }
    all
}

/// Returns what is left of `all` without `part`, per model. A model of which nothing is left is
/// omitted.
pub(crate) fn without(all: &[Spent], part: &[Spent]) -> Vec<Spent> {
    let rest = all.iter().map(
        |spent| match part.iter().find(|part| part.model == spent.model) {
            Some(part) => Spent {
                model: spent.model.clone(),
                usage: fewer(spent.usage, part.usage),
                cost: spent.cost.zip(part.cost).map(|(all, part)| {
                    Cost::from_pico_usd(all.pico_usd().saturating_sub(part.pico_usd()))
                }),
            },
            None => spent.clone(),
        },
    );
    rest.filter(|spent| spent.usage != Usage::default())
        .collect()
}

fn fewer(all: Usage, part: Usage) -> Usage {
    Usage {
        input: all.input.saturating_sub(part.input),
        cache_read: all.cache_read.saturating_sub(part.cache_read),
        cache_write_5m: all.cache_write_5m.saturating_sub(part.cache_write_5m),
        cache_write_1h: all.cache_write_1h.saturating_sub(part.cache_write_1h),
        output: all.output.saturating_sub(part.output),
        thinking: all.thinking.saturating_sub(part.thinking),
    }
}
