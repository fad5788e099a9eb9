//! Accounts: what each agent of a session has used, and the worst case of its next call.
//!
//! Accounts form a tree, as agents do. Before a call, its worst case is reserved in every budget
//! that encloses it, in all or in none; afterwards the actual cost is booked. So agents that call
//! at the same time cannot exceed together what each of them alone would keep to.
//!
//! Costs are booked in the account and in every account above it at once. An account that nobody
//! holds and that has none below it is gone; its costs stay in the sums above.

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

/// One account, and the way up to the session's.
#[derive(Debug)]
struct Node {
    parent: Option<Arc<Node>>,
    /// Time when it was opened; budgets of time count from here.
    opened: Duration,
    /// Locked from the agent up to the root, never downwards, so that two agents cannot deadlock.
    sums: Mutex<Sums>,
    /// Notified when any call of the session is over; one for the whole session.
    freed: Arc<Notify>,
}

/// What an account has spent and reserved.
#[derive(Debug)]
struct Sums {
    /// The agent's own calls.
    alone: BudgetLedger,
    /// The agent's calls and those of all below it.
    subtree: BudgetLedger,
    /// What the agent used and missed in the cache since the root last reported.
    recent: Recent,
    /// What was booked below the root since it last reported; used by the root only.
    below: Below,
}

/// A model call to reserve for.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// Maximum number of input tokens.
    pub input: u64,
    /// Requested cap on the output.
    pub output: u32,
    /// Lowest cap that is of any use.
    pub least: u32,
    /// Returns the maximum cost of N input and M output tokens; none if the price is unknown. More
    /// tokens never cost less.
    pub price: &'a dyn Fn(u64, u32) -> Option<Cost>,
}

impl Account {
    /// Opens the account of a session, which is also its main agent's. The main agent's subtree
    /// budget is the session's.
    pub fn session(budgets: Budgets, now: Duration) -> Self {
        Self::new(None, budgets, now, Arc::default())
    }

    /// Opens an account below this one, for an agent that this one's agent starts.
    pub(crate) fn open(&self, budgets: Budgets, now: Duration) -> Self {
        Self::new(
            Some(Arc::clone(&self.0)),
            budgets,
            now,
            Arc::clone(&self.0.freed),
        )
    }

    /// Opens an account for a revived agent: what it used before counts against its own budgets.
    pub(crate) fn reopen(&self, budgets: Budgets, now: Duration, used: &[Charge]) -> Self {
        let account = self.open(budgets, now);
        let mut own = sums(&account.0);
        // Not in the accounts above: they have it if this process saw it spent, and a session's
        // budget counts from now on if not.
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

    /// Reserves the worst case of a call, with the highest cap on its output that every budget has
    /// room for. Refused, with nothing reserved, if that is lower than the lowest useful cap.
    pub fn reserve(&self, ask: &Ask<'_>, now: Duration) -> Result<Reservation, Exceeded> {
        // The whole chain stays locked: between the check and the reservation nobody else may
        // reserve.
        let mut chain = self.lock();
        let output = self.fitting(&chain, ask, now)?;
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

    /// Returns the cap on its output that a call would get now. Reserves nothing.
    pub(crate) fn affords(&self, ask: &Ask<'_>, now: Duration) -> Result<u32, Exceeded> {
        self.fitting(&self.lock(), ask, now)
    }

    /// Returns the highest cap on the output that every budget has room for.
    fn fitting(&self, chain: &Chain<'_>, ask: &Ask<'_>, now: Duration) -> Result<u32, Exceeded> {
        let ages = self.nodes().map(|node| now.saturating_sub(node.opened));
        let ages: Vec<_> = ages.collect();
        each(chain, |level, ledger| ledger.open(ages[level]))?;
        let least = ask.least.min(ask.output);
        let left = room(chain, ask.tokens(least), (ask.price)(ask.input, least))?;
        Ok(ask.highest(least, left))
    }

    /// Waits until a call of the session is over. Counts from when it is called, not from when it
    /// is first polled: call it, try to reserve, then wait.
    pub(crate) fn freed(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.0.freed).notified_owned()
    }

    /// Returns what the agent itself has used, by model.
    pub fn own(&self) -> Vec<Spent> {
        sums(&self.0).alone.spent.clone()
    }

    /// Returns what the agent and all below it have used, by model.
    pub fn subtree(&self) -> Vec<Spent> {
        sums(&self.0).subtree.spent.clone()
    }

    /// Returns the money that the tightest budget of those above the agent has left beside what is
    /// reserved; none if no budget limits money.
    pub(crate) fn left(&self) -> Option<Cost> {
        room(&self.lock(), 0, Some(Cost::ZERO)).map_or(Some(Cost::ZERO), |left| left.cost)
    }

    /// Returns what all agents but the main agent have used and missed in the cache since the last
    /// time this was asked.
    pub(crate) fn take_below(&self) -> (Vec<Spent>, Misses) {
        let Some(root) = self.nodes().last() else {
            return Default::default();
        };
        sums(root).below.take()
    }

    /// Returns the accounts from this one up to the root.
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        successors(Some(&*self.0), |node| node.parent.as_deref())
    }

    /// Locks the account and all above it, from the bottom up.
    fn lock(&self) -> Chain<'_> {
        self.nodes().map(sums).collect()
    }
}

impl Ask<'_> {
    /// Returns the worst case in tokens.
    fn tokens(&self, output: u32) -> u64 {
        self.input.saturating_add(u64::from(output))
    }

    /// Returns the highest cap that `left` has room for. `least` is known to fit.
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
        // A binary search works because more tokens never cost less.
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

/// Budget reserved for a call. Dropped without [`settle`](Self::settle), it is free again and no
/// call was made.
#[must_use]
#[derive(Debug)]
pub struct Reservation {
    /// Cap on the call's output that is paid for.
    pub output: u32,
    account: Account,
    /// Worst case of one attempt.
    tokens: u64,
    cost: Option<Cost>,
    /// Reserved for all attempts together.
    held: HeldAmount,
    miss: Option<Miss>,
}

impl Reservation {
    /// Reserves the same again for another attempt: the previous one may have to be paid for.
    /// Returns false, with nothing more reserved, if a budget has no room for it.
    pub(crate) fn again(&mut self) -> bool {
        let mut chain = self.account.lock();
        if room(&chain, self.tokens, self.cost).is_err() {
            return false;
        }
        let more = HeldAmount {
            tokens: self.tokens,
            cost: self.cost.unwrap_or_default(),
            // All attempts are one turn.
            turns: 0,
        };
        hold(&mut chain, more);
        self.held.add(more);
        true
    }

    /// Notes that the call missed something that had been in the cache. Booked with the call.
    pub(crate) fn miss(&mut self, agent: AgentId, path: &str, missed: Missed) {
        self.miss = Some(Miss {
            agent,
            path: path.to_owned(),
            missed,
        });
    }

    /// Ends the call: frees the reservation and books what it really cost.
    pub fn settle(mut self, charges: &[Charge]) {
        self.close(Some(charges));
    }

    /// Frees the reservation, and books the charges if a call was made.
    fn close(&mut self, charges: Option<&[Charge]>) {
        let held = take(&mut self.held);
        let mut chain = self.account.lock();
        each_mut(&mut chain, |ledger| {
            ledger.held.subtract(held);
            if let Some(charges) = charges {
                ledger.book(charges);
            }
        });
        // The first account is the agent's, the last the root's; a root alone has nobody below.
        if let (Some(charges), [own, .., root]) = (charges, &mut chain[..]) {
            root.below.book(&mut own.recent, charges, self.miss.take());
        }
        drop(chain);
        // After the locks are released: a waiter that wakes up tries to reserve at once.
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

/// Locked sums of an agent, its parent, and so on up to the root.
type Chain<'a> = Vec<MutexGuard<'a, Sums>>;

fn sums(node: &Node) -> MutexGuard<'_, Sums> {
    // A poisoned lock is safe to use: only a price can panic, and it is asked before any change.
    node.sums.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what every enclosing budget has room for, or the one that has too little.
fn room(chain: &Chain<'_>, tokens: u64, cost: Option<Cost>) -> Result<Remaining, Exceeded> {
    let mut all = Remaining::default();
    each(chain, |_, ledger| {
        all = all.and(ledger.left(tokens, cost)?);
        Ok(())
    })?;
    Ok(all)
}

/// Reserves in every ledger of the chain.
fn hold(chain: &mut Chain<'_>, more: HeldAmount) {
    each_mut(chain, |ledger| ledger.held.add(more));
}

/// Visits every budget that encloses a call, from the agent's own up to the session's.
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

/// Changes every budget that encloses a call.
fn each_mut(chain: &mut Chain<'_>, mut change: impl FnMut(&mut BudgetLedger)) {
    for (level, sums) in chain.iter_mut().enumerate() {
        if level == 0 {
            change(&mut sums.alone);
        }
        change(&mut sums.subtree);
    }
}
