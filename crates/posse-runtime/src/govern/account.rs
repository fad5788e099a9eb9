//! Accounts: what each agent of a session has used, and the worst that its next call could use.
//!
//! Accounts are a tree, as the agents are. Before a call its worst case is set aside in every budget that
//! encloses it, in all or in none; after it the truth is booked. So agents that call at the same time
//! cannot exceed together what each of them alone would keep to.
//!
//! What is booked is added up in the account and in every one above it at once. An account that nobody
//! holds any more, and that has none below it, is gone; what it came to stays in the sums above.

#[cfg(test)]
mod tests;

use std::iter::successors;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posse_protocol::{AgentId, Cost, Missed, Misses, Spent};
use tokio::sync::Notify;

use crate::govern::below::{Below, Miss, Recent};
use crate::govern::ledger::{BudgetLedger, HeldAmount, Remaining};
use crate::govern::{Budgets, Exceeded, Short, Whose};
use posse_port::store::Charge;

/// An agent's account. Cheap to clone; all clones are the same account.
#[derive(Clone, Debug)]
pub struct Account(Arc<Node>);

#[derive(Debug)]
struct Node {
    parent: Option<Arc<Node>>,
    opened: Duration,
    /// Locked from the agent up to the root, never downwards: so nobody waits in a circle.
    sums: Mutex<Sums>,
    freed: Arc<Notify>,
}

#[derive(Debug)]
struct Sums {
    alone: BudgetLedger,
    subtree: BudgetLedger,
    /// What the agent used, and missed in the cache, since the root was told last.
    recent: Recent,
    /// Of the root only: what was booked below it and is not told yet.
    below: Below,
}

/// A model call that somebody wants to make.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The most tokens that its input can be.
    pub input: u64,
    /// The cap on its output that is wanted.
    pub output: u32,
    /// The lowest cap that is of any use.
    pub least: u32,
    /// What so many tokens of input and of output cost at most; none when that is not known. More
    /// tokens never cost less.
    pub price: &'a dyn Fn(u64, u32) -> Option<Cost>,
}

impl Account {
    /// The account of a session, which is its root agent's too. What the root may use with all it starts
    /// is what the session may use.
    pub fn session(budgets: Budgets, now: Duration) -> Self {
        Self::new(None, budgets, now, Arc::default())
    }

    /// An account below this one, for an agent that this one's starts.
    pub fn open(&self, budgets: Budgets, now: Duration) -> Self {
        Self::new(
            Some(Arc::clone(&self.0)),
            budgets,
            now,
            Arc::clone(&self.0.freed),
        )
    }

    /// The same for an agent that was here before: what it had used counts for its own budgets.
    pub fn reopen(&self, budgets: Budgets, now: Duration, used: &[Charge]) -> Self {
        let account = self.open(budgets, now);
        let mut own = sums(&account.0);
        own.alone.recall(used);
        own.subtree.recall(used);
        drop(own);
        account
    }

    fn new(parent: Option<Arc<Node>>, budgets: Budgets, now: Duration, freed: Arc<Notify>) -> Self {
        let (alone, subtree) = (
            BudgetLedger::new(budgets.alone),
            BudgetLedger::new(budgets.subtree),
        );
        let sums = Mutex::new(Sums {
            alone,
            subtree,
            recent: Recent::default(),
            below: Below::default(),
        });
        Self(Arc::new(Node {
            parent,
            opened: now,
            sums,
            freed,
        }))
    }

    /// Sets aside what a call could use at worst, with the highest cap on its output that every budget
    /// has room for. Refused, with nothing set aside, if that is lower than what is of use.
    pub fn reserve(&self, ask: &Ask<'_>, now: Duration) -> Result<Reservation, Exceeded> {
        let mut chain = self.lock();
        let ages = self.nodes().map(|node| now.saturating_sub(node.opened));
        let ages: Vec<_> = ages.collect();
        each(&chain, |level, ledger| ledger.open(ages[level]))?;
        let least = ask.least.min(ask.output);
        let left = room(&chain, ask.tokens(least), (ask.price)(ask.input, least))?;
        let output = ask.highest(least, left);
        let (tokens, cost) = (ask.tokens(output), (ask.price)(ask.input, output));
        let held = HeldAmount {
            tokens,
            cost: cost.unwrap_or_default(),
            turns: 1,
        };
        hold(&mut chain, held);
        drop(chain);
        Ok(Reservation {
            output,
            account: self.clone(),
            tokens,
            cost,
            held,
            miss: None,
        })
    }

    /// Waits until a call of the session that is under way now, or begins later, is over. Counts from
    /// when it was asked for, not from when it is first polled: ask for it, try to reserve, then wait.
    pub fn freed(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.0.freed).notified_owned()
    }

    /// What the agent itself has used, by model.
    pub fn own(&self) -> Vec<Spent> {
        sums(&self.0).alone.spent.clone()
    }

    /// What the agent and all below it have used, by model.
    pub fn subtree(&self) -> Vec<Spent> {
        sums(&self.0).subtree.spent.clone()
    }

    /// What all agents of the session but the root have used, and missed in the cache, since the last time
    /// that this was asked.
    pub fn take_below(&self) -> (Vec<Spent>, Misses) {
        let Some(root) = self.nodes().last() else {
            return Default::default();
        };
        sums(root).below.take()
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        successors(Some(&*self.0), |node| node.parent.as_deref())
    }

    fn lock(&self) -> Chain<'_> {
        self.nodes().map(sums).collect()
    }
}

impl Ask<'_> {
    fn tokens(&self, output: u32) -> u64 {
        self.input.saturating_add(u64::from(output))
    }

    /// The highest cap that `left` has room for. `least` is known to fit.
    fn highest(&self, least: u32, left: Remaining) -> u32 {
        let fits = |output: u32| {
            left.tokens.is_none_or(|left| self.tokens(output) <= left)
                && left.cost.is_none_or(|left| {
                    (self.price)(self.input, output).is_some_and(|cost| cost <= left)
                })
        };
        if fits(self.output) {
            return self.output;
        }
        let (mut fitting, mut exceeding) = (least, self.output);
        while exceeding - fitting > 1 {
            let middle = fitting + (exceeding - fitting) / 2;
            if fits(middle) {
                fitting = middle
            } else {
                exceeding = middle
            }
        }
        fitting
    }
}

/// What is set aside for a call. Dropped, it is free again, and no call was made.
#[must_use]
#[derive(Debug)]
pub struct Reservation {
    /// The cap on the call's output that is paid for.
    pub output: u32,
    account: Account,
    /// What one attempt could use, and cost.
    tokens: u64,
    cost: Option<Cost>,
    /// What is set aside for all attempts.
    held: HeldAmount,
    miss: Option<Miss>,
}

impl Reservation {
    /// Sets the same aside once more, for another attempt: the one before may have to be paid for. False,
    /// with nothing set aside, if a budget has no room for it.
    pub fn again(&mut self) -> bool {
        let mut chain = self.account.lock();
        if room(&chain, self.tokens, self.cost).is_err() {
            return false;
        }
        let more = HeldAmount {
            tokens: self.tokens,
            cost: self.cost.unwrap_or_default(),
            turns: 0,
        };
        hold(&mut chain, more);
        self.held.add(more);
        true
    }

    /// The call missed something in the cache that had been there. It is booked when the call is settled.
    pub fn miss(&mut self, agent: AgentId, path: &str, missed: Missed) {
        self.miss = Some(Miss {
            agent,
            path: path.to_owned(),
            missed,
        });
    }

    /// The call is over: what was set aside is free, and what it really took is booked.
    pub fn settle(mut self, charges: &[Charge]) {
        self.close(Some(charges));
    }

    fn close(&mut self, charges: Option<&[Charge]>) {
        let held = take(&mut self.held);
        let mut chain = self.account.lock();
        each_mut(&mut chain, |ledger| {
            ledger.held.subtract(held);
            if let Some(charges) = charges {
                ledger.book(charges);
            }
        });
        // The first is the agent's, the last is the root's.
        if let (Some(charges), [own, .., root]) = (charges, &mut chain[..]) {
            root.below.book(&mut own.recent, charges, self.miss.take());
        }
        drop(chain);
        self.account.0.freed.notify_waiters();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.held != HeldAmount::default() {
            self.close(None);
        }
    }
}

/// The sums of an agent, of its parent, and so on up to the root, all locked.
type Chain<'a> = Vec<MutexGuard<'a, Sums>>;

fn sums(node: &Node) -> MutexGuard<'_, Sums> {
    // Only a price can panic in here, and it is asked before anything is changed.
    node.sums.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every budget that encloses a call has room for; or which of them has too little.
fn room(chain: &Chain<'_>, tokens: u64, cost: Option<Cost>) -> Result<Remaining, Exceeded> {
    let mut all = Remaining::default();
    each(chain, |_, ledger| {
        all = all.and(ledger.left(tokens, cost)?);
        Ok(())
    })?;
    Ok(all)
}

fn hold(chain: &mut Chain<'_>, more: HeldAmount) {
    each_mut(chain, |ledger| ledger.held.add(more));
}

/// Looks at every budget that encloses a call, from the agent's own up to the session's.
fn each(
    chain: &Chain<'_>,
    mut look: impl FnMut(usize, &BudgetLedger) -> Result<(), Short>,
) -> Result<(), Exceeded> {
    let exceeded = |whose| move |short| Exceeded { whose, short };
    for (level, sums) in chain.iter().enumerate() {
        if level == 0 {
            look(level, &sums.alone).map_err(exceeded(Whose::Alone))?;
        }
        let whose = match level {
            _ if level + 1 == chain.len() => Whose::Session,
            0 => Whose::Subtree,
            levels => Whose::Above(levels),
        };
        look(level, &sums.subtree).map_err(exceeded(whose))?;
    }
    Ok(())
}

/// The same, to change it.
fn each_mut(chain: &mut Chain<'_>, mut change: impl FnMut(&mut BudgetLedger)) {
    for (level, sums) in chain.iter_mut().enumerate() {
        if level == 0 {
            change(&mut sums.alone);
        }
        change(&mut sums.subtree);
    }
}
