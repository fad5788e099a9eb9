//! Budgets one by one; `property.rs` has all of them at once.

mod property;

use posse_protocol::{AgentMisses, Purpose, Usage};

use super::*;
use crate::govern::Budget;

const NOW: Duration = Duration::from_secs(1_000);

/// A pico-dollar for a token of input, five for one of output.
fn price(input: u64, output: u32) -> Option<Cost> {
    Some(Cost::from_pico_usd(input + 5 * u64::from(output)))
}

fn ask(input: u64, output: u32, least: u32) -> Ask<'static> {
    Ask {
        input,
        output,
        least,
        price: &price,
    }
}

fn charge(model: &str, input: u64, output: u32) -> Charge {
    let usage = Usage {
        input,
        output: u64::from(output),
        ..Usage::default()
    };
    Charge {
        model: model.into(),
        usage,
        cost: price(input, output),
        purpose: Purpose::Work,
        missed: 0,
    }
}

fn spent(model: &str, input: u64, output: u32) -> Spent {
    let Charge {
        model, usage, cost, ..
    } = charge(model, input, output);
    Spent { model, usage, cost }
}

fn tokens(tokens: u64) -> Budget {
    Budget {
        tokens: Some(tokens),
        ..Budget::default()
    }
}

fn dollars(pico: u64) -> Budget {
    Budget {
        cost: Some(Cost::from_pico_usd(pico)),
        ..Budget::default()
    }
}

fn alone(alone: Budget) -> Budgets {
    Budgets {
        alone,
        ..Budgets::default()
    }
}

fn subtree(subtree: Budget) -> Budgets {
    Budgets {
        subtree,
        ..Budgets::default()
    }
}

/// Three agents, one below the other.
fn line(budgets: [Budgets; 3]) -> [Account; 3] {
    let root = Account::session(budgets[0], NOW);
    let child = root.open(budgets[1], NOW);
    let grandchild = child.open(budgets[2], NOW);
    [root, child, grandchild]
}

fn output(account: &Account, ask: &Ask<'_>) -> Result<u32, Whose> {
    account
        .reserve(ask, NOW)
        .map(|given| given.output)
        .map_err(|exceeded| exceeded.whose)
}

#[test]
fn every_enclosing_budget_counts_and_is_named() {
    let none = Budgets::default();
    let cases = [
        ([none, none, alone(tokens(100))], Whose::Alone),
        ([none, none, subtree(tokens(100))], Whose::Subtree),
        ([none, subtree(tokens(100)), none], Whose::Above(1)),
        ([subtree(tokens(100)), none, none], Whose::Session),
    ];
    for (budgets, whose) in cases {
        let [.., agent] = line(budgets);
        assert_eq!(output(&agent, &ask(91, 50, 10)), Err(whose));
        assert_eq!(
            output(&agent, &ask(90, 50, 10)),
            Ok(10),
            "lowered to what {whose} has room for"
        );
        assert_eq!(
            output(&agent, &ask(10, 50, 10)),
            Ok(50),
            "never more than wanted"
        );
    }
    let [.., agent] = line([alone(tokens(1)), alone(tokens(1)), none]);
    assert_eq!(
        output(&agent, &ask(10, 50, 10)),
        Ok(50),
        "what others may use alone is not for this one"
    );
}

#[test]
fn money_lowers_the_cap_as_tokens_do() {
    let [.., agent] = line([
        subtree(dollars(1_000)),
        alone(dollars(503)),
        subtree(dollars(502)),
    ]);
    assert_eq!(
        output(&agent, &ask(100, 5_000, 1)),
        Ok(80),
        "502 - 100 pay for 80 at 5"
    );
    assert_eq!(output(&agent, &ask(100, 5_000, 81)), Err(Whose::Subtree));
    assert_eq!(
        output(&agent, &ask(100, 80, 500)),
        Ok(80),
        "more than is wanted is not needed"
    );
}

#[test]
fn calls_at_the_same_time_cannot_exceed_together() {
    let [root, child, _] = line([subtree(tokens(100)), Budgets::default(), Budgets::default()]);
    let first = root.reserve(&ask(50, 10, 10), NOW).unwrap();
    let refused = child.reserve(&ask(50, 10, 10), NOW).unwrap_err();
    let short = Short::Tokens {
        budget: 100,
        used: 0,
        held: 60,
        need: 60,
    };
    assert_eq!(
        refused,
        Exceeded {
            whose: Whose::Session,
            short
        }
    );
    assert!(refused.may_pass(), "it would fit once the first is settled");
    first.settle(&[charge("m", 30, 2)]);
    assert_eq!(
        output(&child, &ask(50, 30, 10)),
        Ok(18),
        "what the first did not use is free again"
    );
    assert_eq!(output(&child, &ask(69, 30, 0)), Err(Whose::Session));
    assert!(!child.reserve(&ask(69, 30, 0), NOW).unwrap_err().may_pass());
}

#[test]
fn a_reservation_that_is_dropped_was_never_there() {
    let budget = Budget {
        turns: Some(1),
        ..tokens(100)
    };
    let [root, child, _] = line([subtree(budget), Budgets::default(), Budgets::default()]);
    drop(child.reserve(&ask(90, 10, 10), NOW).unwrap());
    assert_eq!((root.subtree(), child.own()), (vec![], vec![]));
    let again = child.reserve(&ask(90, 10, 10), NOW).unwrap();
    assert_eq!(again.output, 10);
    again.settle(&[]);
    let short = child.reserve(&ask(1, 1, 1), NOW).unwrap_err().short;
    assert_eq!(
        short,
        Short::Turns { budget: 1, used: 1 },
        "a call that came to nothing was a turn"
    );
}

#[test]
fn another_attempt_is_paid_for_before_it_is_made() {
    let budget = Budget {
        turns: Some(1),
        tokens: Some(250),
        ..dollars(450)
    };
    let [root, child, _] = line([subtree(budget), Budgets::default(), Budgets::default()]);
    let mut call = child.reserve(&ask(90, 10, 10), NOW).unwrap();
    assert!(call.again(), "280 of 450, in the same turn");
    assert!(!call.again(), "300 tokens are too many");
    call.settle(&[charge("m", 90, 3), charge("m", 90, 10)]);
    assert_eq!(root.subtree(), [spent("m", 180, 13)]);
    let sums = child.lock();
    assert!(
        sums.iter()
            .all(|sums| sums.subtree.held == HeldAmount::default() && sums.subtree.turns == 1)
    );
}

#[test]
fn time_that_is_over_refuses_calls_from_then_on() {
    let time = Duration::from_secs(60);
    let root = Account::session(Budgets::default(), NOW);
    let child = root.open(
        subtree(Budget {
            time: Some(time),
            ..Budget::default()
        }),
        NOW,
    );
    let late = child.open(Budgets::default(), NOW + time);
    let before = NOW + time - Duration::from_nanos(1);
    assert!(child.reserve(&ask(1, 1, 1), before).is_ok());
    for (account, whose) in [(&child, Whose::Subtree), (&late, Whose::Above(1))] {
        let refused = account.reserve(&ask(1, 1, 1), NOW + time).unwrap_err();
        assert_eq!(
            refused,
            Exceeded {
                whose,
                short: Short::Time { budget: time }
            }
        );
    }
    assert!(root.reserve(&ask(1, 1, 1), NOW + time).is_ok());
}

#[test]
fn what_has_no_price_is_refused_where_money_is_limited() {
    let unknown = Ask {
        input: 1,
        output: 1,
        least: 1,
        price: &|_, _| None,
    };
    let [root, child, _] = line([alone(dollars(9)), Budgets::default(), Budgets::default()]);
    let budget = Cost::from_pico_usd(9);
    let refused = Exceeded {
        whose: Whose::Alone,
        short: Short::Price { budget },
    };
    assert_eq!(root.reserve(&unknown, NOW).unwrap_err(), refused);
    child.reserve(&unknown, NOW).unwrap().settle(&[Charge {
        cost: None,
        ..charge("m", 1, 1)
    }]);
    assert_eq!(
        child.own(),
        [Spent {
            cost: None,
            ..spent("m", 1, 1)
        }]
    );

    let known = root.reserve(&ask(1, 1, 1), NOW).unwrap();
    known.settle(&[Charge {
        cost: None,
        ..charge("other", 1, 1)
    }]);
    let after = root.reserve(&ask(1, 1, 1), NOW).unwrap_err();
    assert_eq!(after, refused, "what was spent is not known any more");
}

#[test]
fn a_refusal_is_said_in_words() {
    let cost = |pico: u64| Cost::from_pico_usd(pico * 1_000_000_000_000);
    let cases = [
        (
            Whose::Session,
            Short::Cost {
                budget: cost(5),
                used: cost(4),
                held: cost(0),
                need: cost(2),
            },
            "the session is limited to $5.00; $4.00 is spent, and the next call could cost $2.00, \
             which is more than is left",
        ),
        (
            Whose::Above(2),
            Short::Tokens {
                budget: 10,
                used: 3,
                held: 5,
                need: 4,
            },
            "the agent's ancestor 2 levels up with all it started is limited to 10 tokens; 3 are \
             used, and the next call could use 4, which together with the calls in progress is \
             more than is left",
        ),
        (
            Whose::Subtree,
            Short::Price { budget: cost(1) },
            "the agent with all it started is limited to $1.00, and the cost of a call is unknown: \
             its model has no price",
        ),
        (
            Whose::Alone,
            Short::Turns { budget: 3, used: 3 },
            "the agent itself is limited to 3 model calls, and all are used",
        ),
        (
            Whose::Above(1),
            Short::Time {
                budget: Duration::from_millis(1_500),
            },
            "the agent's parent with all it started is limited to 1.5 seconds, and they have \
             passed",
        ),
    ];
    for (whose, short, words) in cases {
        assert_eq!(Exceeded { whose, short }.to_string(), words);
    }
}

#[test]
fn what_is_below_is_told_once() {
    let [root, child, grandchild] = line([Budgets::default(); 3]);
    root.reserve(&ask(1, 1, 1), NOW)
        .unwrap()
        .settle(&[charge("m", 1, 1)]);
    assert_eq!(root.take_below().0, []);
    child
        .reserve(&ask(9, 9, 9), NOW)
        .unwrap()
        .settle(&[charge("m", 2, 2)]);
    grandchild
        .reserve(&ask(9, 9, 9), NOW)
        .unwrap()
        .settle(&[charge("m", 3, 3), charge("n", 4, 4)]);
    drop((child, grandchild));
    assert_eq!(root.take_below().0, [spent("m", 5, 5), spent("n", 4, 4)]);
    assert_eq!(root.take_below().0, []);
    assert_eq!(root.subtree(), [spent("m", 6, 6), spent("n", 4, 4)]);
}

// proves FK-08 (part: per agent)
#[test]
fn what_is_missed_below_reaches_the_root_once() {
    let [root, child, grandchild] = line([Budgets::default(); 3]);
    let missed = |tokens, why: &str| Missed {
        tokens,
        why: why.into(),
    };
    let [one, two] = [1, 2].map(|id| AgentId::from(uuid::Uuid::from_u128(id)));
    let call = |account: &Account, agent, miss: Option<Missed>| {
        let mut call = account.reserve(&ask(9, 9, 9), NOW).unwrap();
        miss.into_iter()
            .for_each(|miss| call.miss(agent, "/a", miss));
        call.settle(&[charge("m", 3, 2)]);
    };
    let named = |agent, calls: u64, missed: &[Missed]| AgentMisses {
        agent,
        path: "/a".into(),
        usage: Usage {
            input: 3 * calls,
            output: 2 * calls,
            ..Usage::default()
        },
        missed: missed.to_vec(),
    };
    call(&root, one, Some(missed(99, "expired")));
    call(&child, one, None);
    call(&child, one, Some(missed(5, "expired")));
    call(&grandchild, two, Some(missed(7, "tools_changed")));
    call(&child, one, Some(missed(4, "expired")));
    call(&grandchild, two, None);
    let expected = Misses {
        missed: vec![missed(9, "expired"), missed(7, "tools_changed")],
        agents: vec![
            named(one, 3, &[missed(9, "expired")]),
            named(two, 2, &[missed(7, "tools_changed")]),
        ],
        others: 0,
    };
    assert_eq!(
        root.take_below().1,
        expected,
        "the root tells of its own misses itself"
    );
    assert_eq!(root.take_below().1, Misses::default());
    call(&child, one, None);
    call(&grandchild, two, Some(missed(1, "expired")));
    drop((child, grandchild));
    let later = vec![named(two, 1, &[missed(1, "expired")])];
    assert_eq!(
        root.take_below().1,
        Misses {
            missed: vec![missed(1, "expired")],
            agents: later,
            others: 0
        }
    );
}

#[test]
fn accounts_that_are_gone_leave_their_sums_and_nothing_else() {
    let root = Account::session(subtree(tokens(1_000_000)), NOW);
    for _ in 0..1_000 {
        let child = root.open(Budgets::default(), NOW);
        let grandchild = child.open(Budgets::default(), NOW);
        drop(child);
        let call = grandchild.reserve(&ask(9, 9, 9), NOW).unwrap();
        drop(grandchild);
        assert_eq!(
            Arc::strong_count(&root.0),
            2,
            "the child is there as long as its own child calls"
        );
        call.settle(&[charge("m", 3, 2)]);
        assert_eq!(Arc::strong_count(&root.0), 1);
    }
    assert_eq!(root.subtree(), [spent("m", 3_000, 2_000)]);
    assert_eq!(root.own(), []);
}

#[tokio::test]
async fn whoever_waits_for_room_is_told_of_it() {
    let [root, child, _] = line([subtree(tokens(100)), Budgets::default(), Budgets::default()]);
    let first = root.reserve(&ask(50, 10, 10), NOW).unwrap();
    let freed = child.freed();
    assert!(child.reserve(&ask(50, 10, 10), NOW).unwrap_err().may_pass());
    first.settle(&[charge("m", 30, 2)]);
    freed.await;
    assert_eq!(output(&child, &ask(50, 10, 10)), Ok(10));
}
