//! Random trees, random budgets, random calls: against the same thing said as plainly as possible.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

/// What can happen to a tree of accounts. Which account or call is meant is counted among all there are.
#[derive(Clone, Debug)]
enum Deed {
    Wait {
        time: Duration,
    },
    Open {
        parent: usize,
        budgets: Budgets,
    },
    Forget {
        account: usize,
    },
    Reserve {
        account: usize,
        input: u64,
        output: u32,
        least: u32,
        model: usize,
    },
    Again {
        call: usize,
    },
    Settle {
        call: usize,
        percent: u64,
    },
    Drop {
        call: usize,
    },
}

/// Numbers drawn from one large one: a strategy for each of them would take longer than all the rest.
struct Dice(u128);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        let drawn = self.0 % u128::from(end);
        self.0 /= u128::from(end);
        drawn as u64
    }

    fn maybe_below(&mut self, end: u64) -> Option<u64> {
        (self.below(3) == 0).then(|| self.below(end))
    }

    fn budget(&mut self) -> Budget {
        Budget {
            tokens: self.maybe_below(400),
            cost: self.maybe_below(3_000).map(Cost::from_pico_usd),
            turns: self.maybe_below(6).map(|turns| turns as u32),
            time: self.maybe_below(60).map(Duration::from_secs),
        }
    }

    fn budgets(&mut self) -> Budgets {
        Budgets {
            alone: self.budget(),
            subtree: self.budget(),
        }
    }

    fn deed(&mut self) -> Deed {
        let kind = self.below(23);
        let which = self.below(60) as usize;
        match kind {
            0 => Deed::Wait {
                time: Duration::from_secs(self.below(20)),
            },
            1..=4 => Deed::Open {
                parent: which,
                budgets: self.budgets(),
            },
            5 => Deed::Forget { account: which },
            6..=13 => Deed::Reserve {
                account: which,
                input: self.below(100),
                output: self.below(100) as u32,
                least: self.below(40) as u32,
                model: self.below(3) as usize,
            },
            14..=15 => Deed::Again { call: which },
            16..=21 => Deed::Settle {
                call: which,
                percent: self.below(101),
            },
            _ => Deed::Drop { call: which },
        }
    }
}

const MODELS: [&str; 3] = ["cheap", "dear", "unknown"];

fn price_of(model: usize, input: u64, output: u32) -> Option<Cost> {
    let (each_in, each_out) = [Some((1, 5)), Some((7, 20)), None][model]?;
    Some(Cost::from_pico_usd(
        input * each_in + u64::from(output) * each_out,
    ))
}

/// An account as the plain model has it.
struct Member {
    parent: Option<usize>,
    opened: Duration,
    budgets: Budgets,
    account: Option<Account>,
}

/// A call as the plain model has it.
struct Call {
    member: usize,
    model: usize,
    input: u64,
    output: u32,
    attempts: u64,
    fate: Fate,
}

enum Fate {
    Open(Reservation),
    Settled(Vec<Charge>),
    Dropped,
}

/// What calls come to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    tokens: u64,
    cost: Cost,
    turns: u32,
}

impl Sum {
    fn fits(self, budget: Budget) -> bool {
        budget.tokens.is_none_or(|most| self.tokens <= most)
            && budget.cost.is_none_or(|most| self.cost <= most)
            && budget.turns.is_none_or(|most| self.turns <= most)
    }
}

/// The plain model: all calls that ever were, added up anew whenever somebody asks.
struct World {
    now: Duration,
    members: Vec<Member>,
    calls: Vec<Call>,
    refused: usize,
}

impl World {
    fn new(budgets: Budgets) -> Self {
        let account = Some(Account::session(budgets, NOW));
        let root = Member {
            parent: None,
            opened: NOW,
            budgets,
            account,
        };
        Self {
            now: NOW,
            members: vec![root],
            calls: Vec::new(),
            refused: 0,
        }
    }

    fn is_below(&self, mut member: usize, top: usize) -> bool {
        while member != top {
            let Some(parent) = self.members[member].parent else {
                return false;
            };
            member = parent;
        }
        true
    }

    /// Every budget that encloses a member's calls: whose it is, the budget, when it was given, and
    /// the members that share it.
    fn enclosing(&self, member: usize) -> Vec<(Whose, Budget, Duration, Vec<usize>)> {
        let at = |member: usize| &self.members[member];
        let mut all = vec![(
            Whose::Alone,
            at(member).budgets.alone,
            at(member).opened,
            vec![member],
        )];
        let mut next = Some(member);
        let mut levels = 0;
        while let Some(top) = next {
            next = at(top).parent;
            let whose = match levels {
                _ if next.is_none() => Whose::Session,
                0 => Whose::Subtree,
                levels => Whose::Above(levels),
            };
            let sharing = (0..self.members.len())
                .filter(|member| self.is_below(*member, top))
                .collect();
            all.push((whose, at(top).budgets.subtree, at(top).opened, sharing));
            levels += 1;
        }
        all
    }

    /// What the calls of these members came to, and what those that are open could come to.
    fn worst(&self, members: &[usize]) -> Sum {
        let mut sum = self.real(members);
        for call in self
            .calls
            .iter()
            .filter(|call| members.contains(&call.member))
        {
            if let Fate::Open(_) = call.fate {
                let cost = price_of(call.model, call.input, call.output).unwrap_or_default();
                sum.tokens += call.attempts * (call.input + u64::from(call.output));
                sum.cost += Cost::from_pico_usd(call.attempts * cost.pico_usd());
                sum.turns += 1;
            }
        }
        sum
    }

    fn real(&self, members: &[usize]) -> Sum {
        let mut sum = Sum::default();
        for call in self
            .calls
            .iter()
            .filter(|call| members.contains(&call.member))
        {
            if let Fate::Settled(charges) = &call.fate {
                sum.turns += 1;
                for charge in charges {
                    sum.tokens += charge.usage.input + charge.usage.output;
                    sum.cost += charge.cost.unwrap_or_default();
                }
            }
        }
        sum
    }

    fn spent(&self, members: &[usize]) -> Vec<Spent> {
        let charges = |model: usize| {
            let calls = self.calls.iter().filter(move |call| call.model == model);
            let settled = calls
                .filter(|call| members.contains(&call.member))
                .filter_map(|call| match &call.fate {
                    Fate::Settled(charges) => Some(charges),
                    _ => None,
                });
            settled.flatten()
        };
        let used = (0..MODELS.len()).filter(|model| charges(*model).next().is_some());
        let spent = used.map(|model| Spent {
            model: MODELS[model].into(),
            usage: charges(model).fold(Usage::default(), |sum, charge| sum + charge.usage),
            cost: charges(model).map(|charge| charge.cost).sum(),
        });
        spent.collect()
    }

    /// Whether one more attempt of so much fits into the budget, with or without another turn.
    fn fits(
        &self,
        scope: &(Whose, Budget, Duration, Vec<usize>),
        attempt: (u64, Option<Cost>, u32),
    ) -> bool {
        let (_, budget, opened, members) = scope;
        let (tokens, cost, turns) = attempt;
        let mut sum = self.worst(members);
        sum = Sum {
            tokens: sum.tokens + tokens,
            cost: sum.cost + cost.unwrap_or_default(),
            turns: sum.turns + turns,
        };
        let in_time = turns == 0 || budget.time.is_none_or(|time| *opened + time > self.now);
        in_time && (cost.is_some() || budget.cost.is_none()) && sum.fits(*budget)
    }

    fn reserve(&mut self, member: usize, input: u64, wanted: u32, least: u32, model: usize) {
        let Some(account) = &self.members[member].account else {
            return;
        };
        let price = |input: u64, output: u32| price_of(model, input, output);
        let given = account.reserve(
            &Ask {
                input,
                output: wanted,
                least,
                price: &price,
            },
            self.now,
        );
        let scopes = self.enclosing(member);
        let fits = |output: u32| {
            let attempt = (input + u64::from(output), price_of(model, input, output), 1);
            scopes
                .iter()
                .filter(|scope| !self.fits(scope, attempt))
                .map(|scope| scope.0)
                .collect::<Vec<_>>()
        };
        let least = least.min(wanted);
        match given {
            Ok(reservation) => {
                let output = reservation.output;
                assert!(least <= output && output <= wanted);
                assert_eq!(fits(output), [], "no budget can be exceeded");
                assert!(
                    output == wanted || !fits(output + 1).is_empty(),
                    "the cap is as high as can be"
                );
                let fate = Fate::Open(reservation);
                self.calls.push(Call {
                    member,
                    model,
                    input,
                    output,
                    attempts: 1,
                    fate,
                });
            }
            Err(exceeded) => {
                assert!(fits(least).contains(&exceeded.whose), "{exceeded} is true");
                self.refused += 1;
            }
        }
    }

    fn again(&mut self, which: usize) {
        let Some(at) = self.open_call(which) else {
            return;
        };
        let Call {
            member,
            model,
            input,
            output,
            ..
        } = self.calls[at];
        let attempt = (input + u64::from(output), price_of(model, input, output), 0);
        let fits = self
            .enclosing(member)
            .iter()
            .all(|scope| self.fits(scope, attempt));
        let call = &mut self.calls[at];
        let Fate::Open(reservation) = &mut call.fate else {
            return;
        };
        assert_eq!(reservation.again(), fits);
        call.attempts += u64::from(fits);
    }

    fn settle(&mut self, which: usize, percent: u64) {
        let Some(at) = self.open_call(which) else {
            return;
        };
        let call = &mut self.calls[at];
        let part = |whole: u64| whole * percent / 100;
        let charges = (0..call.attempts).map(|_| {
            let (input, output) = (part(call.input), part(u64::from(call.output)) as u32);
            let cost = price_of(call.model, input, output);
            Charge {
                cost,
                ..charge(MODELS[call.model], input, output)
            }
        });
        let charges: Vec<_> = charges.collect();
        let fate = std::mem::replace(&mut call.fate, Fate::Settled(charges.clone()));
        let Fate::Open(reservation) = fate else {
            return;
        };
        reservation.settle(&charges);
    }

    fn open_call(&self, which: usize) -> Option<usize> {
        let open = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| matches!(call.fate, Fate::Open(_)));
        let open: Vec<_> = open.map(|(at, _)| at).collect();
        (!open.is_empty()).then(|| open[which % open.len()])
    }

    fn act(&mut self, deed: Deed) {
        let any = |which: usize| which % self.members.len();
        match deed {
            Deed::Open { parent, budgets } => {
                let parent = any(parent);
                let Some(above) = &self.members[parent].account else {
                    return;
                };
                let account = Some(above.open(budgets, self.now));
                self.members.push(Member {
                    parent: Some(parent),
                    opened: self.now,
                    budgets,
                    account,
                });
            }
            // The root's is kept, to look at the sums.
            Deed::Forget { account } => {
                let member = any(account);
                if member != 0 {
                    self.members[member].account = None;
                }
            }
            Deed::Reserve {
                account,
                input,
                output,
                least,
                model,
            } => {
                self.reserve(any(account), input, output, least, model);
            }
            Deed::Again { call } => self.again(call),
            Deed::Settle { call, percent } => self.settle(call, percent),
            Deed::Drop { call } => {
                if let Some(at) = self.open_call(call) {
                    self.calls[at].fate = Fate::Dropped;
                }
            }
            Deed::Wait { time } => self.now += time,
        }
    }

    /// What was really used exceeds no budget, and every account has the right sums: its own calls, and
    /// the calls of all below it.
    fn check(&self) {
        for (
            member,
            Member {
                account, budgets, ..
            },
        ) in self.members.iter().enumerate()
        {
            let below: Vec<_> = (0..self.members.len())
                .filter(|other| self.is_below(*other, member))
                .collect();
            assert!(self.real(&[member]).fits(budgets.alone));
            assert!(self.real(&below).fits(budgets.subtree));
            let Some(account) = account else { continue };
            assert_eq!(by_model(account.own()), self.spent(&[member]));
            assert_eq!(by_model(account.subtree()), self.spent(&below));
        }
    }
}

fn by_model(mut spent: Vec<Spent>) -> Vec<Spent> {
    spent.sort_by(|one, other| one.model.cmp(&other.model));
    spent
}

// proves LI-01 (part: tokens; dollars; turns; wall time; per agent; per subtree)
// proves LI-04 (part: per agent; per subtree; per model)
// proves PE-04 (part: budget)
#[test]
fn no_call_can_exceed_a_budget_and_the_sums_agree() {
    let config = ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config);
    let plans = (
        any::<u128>().prop_map(|number| Dice(number).budgets()),
        prop::collection::vec(any::<u128>().prop_map(|number| Dice(number).deed()), 1..40),
    );
    let seen = Cell::new((0, 0, 0, 0));
    let result = runner.run(&plans, |(root, deeds)| {
        let mut world = World::new(root);
        for deed in deeds {
            world.act(deed);
            world.check();
        }
        let below: Vec<_> = (1..world.members.len()).collect();
        let told = world.members[0]
            .account
            .as_ref()
            .map(Account::take_below)
            .unwrap_or_default();
        assert_eq!(by_model(told.0), world.spent(&below));
        let levels = (0..world.members.len())
            .map(|member| world.enclosing(member).len() - 1)
            .max()
            .unwrap_or(0);
        let (trees, calls, refused, deepest) = seen.get();
        seen.set((
            trees + 1,
            calls + world.calls.len(),
            refused + world.refused,
            levels.max(deepest),
        ));
        Ok(())
    });
    let (trees, calls, refused, deepest) = seen.get();
    result.unwrap();
    assert_eq!(trees, 10_000);
    assert!(
        calls > 10_000 && refused > 10_000 && deepest >= 4,
        "{calls} calls, {refused} refused, {deepest} deep"
    );
}
