//! Single rules of the throttle.

use std::time::Duration;

use posse_port::model::{Allowance, CallPriority, RateLimits, Standing};
use posse_protocol::Usage;

use crate::governor::limits::AccountLimits;
use crate::governor::queue::Ticket;
use crate::governor::throttle::{Ask, CallWait, Head, Throttle, Turn};
use crate::retry::{RetryPolicy, StopFacts};

const NOTHING: RateLimits = RateLimits {
    requests: None,
    input_tokens: None,
    output_tokens: None,
    tokens: None,
};

fn throttle(limits: &AccountLimits) -> Throttle {
    let policy = RetryPolicy {
        random: || 1.0,
        ..RetryPolicy::default()
    };
    Throttle::new(policy, limits)
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Returns what a call asks that waits for nothing by itself.
fn asking(standing: &Standing, prompt: u64) -> Ask<'_> {
    Ask {
        standing,
        prompt,
        wait: Duration::ZERO,
        place: None,
        demoted: false,
        limits_cached: false,
    }
}

fn ask(throttle: &mut Throttle, now: f64) -> Ticket {
    let standing = Standing::default();
    let ask = asking(&standing, 100);
    throttle.ask(seconds(now), ask)
}

fn sent(throttle: &mut Throttle, now: f64) -> Vec<Ticket> {
    throttle.poll(seconds(now)).admitted
}

fn head(throttle: &mut Throttle, now: f64, ticket: Ticket, status: u16, retry_after: Option<f64>) {
    let head = Head {
        status,
        limits: &NOTHING,
        retry_after: retry_after.map(seconds),
    };
    throttle.head(seconds(now), ticket, &head);
}

fn failed(throttle: &mut Throttle, now: f64, ticket: Ticket, retryable: bool) -> Option<StopFacts> {
    throttle.failed(seconds(now), ticket, &Usage::default(), retryable)
}

// proves GV-07 (part: idle)
#[test]
fn nothing_waits_until_something_is_known_and_nothing_looks_at_the_clock() {
    let mut throttle = throttle(&AccountLimits::default());
    for _ in 0..1000 {
        ask(&mut throttle, 0.0);
    }
    let turn = throttle.poll(Duration::ZERO);
    assert_eq!((turn.admitted.len(), turn.next), (1000, None));
    assert_eq!(throttle.poll(seconds(1.0)), Turn::default());
}

// proves GV-02 (part: all wait; one probe; slow start)
#[test]
fn after_a_429_all_wait_then_one_goes_and_then_ever_more() {
    let mut throttle = throttle(&AccountLimits::default());
    let first = ask(&mut throttle, 0.0);
    let second = ask(&mut throttle, 0.0);
    assert_eq!(sent(&mut throttle, 0.0), [first, second]);
    head(&mut throttle, 1.0, first, 429, Some(10.0));
    // It was sent before: it extends the wait, but is no failed probe.
    head(&mut throttle, 2.0, second, 429, Some(10.0));
    let met = failed(&mut throttle, 2.0, second, true).unwrap();
    assert_eq!((met.wait, met.too_long), (seconds(10.0), false));
    let waiting: Vec<_> = (0..10).map(|_| ask(&mut throttle, 2.0)).collect();
    assert_eq!(throttle.reason(seconds(2.0), None).0, CallWait::RetryAfter);
    let turn = throttle.poll(seconds(11.9));
    assert_eq!((turn.admitted.len(), turn.next), (0, Some(seconds(12.0))));
    assert_eq!(sent(&mut throttle, 12.0), waiting[..1], "one probe");
    assert_eq!(sent(&mut throttle, 15.0), [], "until it is answered");
    head(&mut throttle, 15.0, waiting[0], 200, None);
    assert_eq!(sent(&mut throttle, 15.0), waiting[1..3]);
    head(&mut throttle, 16.0, waiting[1], 200, None);
    assert_eq!(sent(&mut throttle, 16.0), waiting[3..5]);
    head(&mut throttle, 16.0, waiting[2], 200, None);
    head(&mut throttle, 16.0, waiting[3], 200, None);
    assert_eq!(sent(&mut throttle, 16.0), waiting[5..9]);
}

// proves GV-05 (part: growing waits; another probe)
#[test]
fn waits_of_an_outage_grow_by_probes_and_each_call_may_be_the_probe() {
    let mut throttle = throttle(&AccountLimits::default());
    let mut now = 0.0;
    ask(&mut throttle, now);
    ask(&mut throttle, now);
    let begun = sent(&mut throttle, now);
    for ticket in &begun {
        throttle.unreachable(seconds(now), *ticket, false);
        failed(&mut throttle, now, *ticket, true).unwrap();
        ask(&mut throttle, now);
    }
    let (mut waits, mut probes) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let next = throttle.poll(seconds(now)).next.unwrap().as_secs_f64();
        waits.push(next - now);
        now = next;
        let probe = sent(&mut throttle, now);
        let [probe] = probe[..] else {
            panic!("{probe:?}")
        };
        head(&mut throttle, now, probe, 503, None);
        let met = failed(&mut throttle, now, probe, true).unwrap();
        assert_eq!((met.number, met.place), (1, None));
        probes.push(probe);
        ask(&mut throttle, now);
    }
    assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
    // The other one had its turn before the first one's next.
    assert!(probes.windows(2).all(|pair| pair[1] == next_of(pair[0])));
}

// proves GV-05 (part: growing waits)
#[test]
fn short_waits_that_are_asked_for_again_and_again_grow_all_the_same() {
    let mut throttle = throttle(&AccountLimits::default());
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    let mut probe = ask(&mut throttle, 0.0);
    assert_eq!(throttle.poll(now).admitted, [probe]);
    for _ in 0..10 {
        let head = Head {
            status: 503,
            limits: &NOTHING,
            retry_after: Some(Duration::from_millis(1)),
        };
        throttle.head(now, probe, &head);
        throttle.failed(now, probe, &Usage::default(), true);
        probe = ask(&mut throttle, now.as_secs_f64());
        let next = throttle.poll(now).next.unwrap();
        waits.push((next - now).as_millis());
        now = next;
        assert_eq!(throttle.poll(now).admitted, [probe]);
    }
    assert_eq!(waits, [1, 1, 1, 1, 1, 1, 1, 1, 30_000, 30_000]);
}

fn next_of(ticket: Ticket) -> Ticket {
    Ticket(ticket.0 + 1)
}

// proves GV-05 (part: too long)
#[test]
fn an_outage_that_is_too_long_ends_all_that_wait_and_the_next_call_tries_again() {
    let mut throttle = throttle(&AccountLimits::default());
    let mut now = 0.0;
    let mut probe = ask(&mut throttle, now);
    assert_eq!(sent(&mut throttle, now), [probe]);
    let mut waits = ask(&mut throttle, now);
    let mut probes = 1;
    loop {
        head(&mut throttle, now, probe, 500, None);
        if failed(&mut throttle, now, probe, true).unwrap().too_long {
            break;
        }
        let again = ask(&mut throttle, now);
        now = throttle.poll(seconds(now)).next.unwrap().as_secs_f64();
        assert_eq!(sent(&mut throttle, now), [waits], "they take turns");
        (probe, waits) = (waits, again);
        probes += 1;
    }
    assert_eq!((now, probes), (871.5, 35));
    let turn = throttle.poll(seconds(now));
    assert_eq!((turn.admitted, turn.refused), (vec![], vec![waits]));
    let later = ask(&mut throttle, now + 1.0);
    assert_eq!(sent(&mut throttle, now + 1.0), [later]);
}

// proves GV-06 (part: a wait that is too long)
#[test]
fn a_wait_that_is_too_long_is_refused_at_once_until_it_is_short() {
    let mut throttle = throttle(&AccountLimits::default());
    let first = ask(&mut throttle, 0.0);
    sent(&mut throttle, 0.0);
    head(&mut throttle, 0.0, first, 429, Some(3600.0));
    assert!(failed(&mut throttle, 0.0, first, true).unwrap().too_long);
    let second = ask(&mut throttle, 1.0);
    let turn = throttle.poll(seconds(1.0));
    assert_eq!((turn.refused, turn.next), (vec![second], None));
    let third = ask(&mut throttle, 3400.0);
    assert_eq!(throttle.poll(seconds(3400.0)).next, Some(seconds(3600.0)));
    assert_eq!(sent(&mut throttle, 3600.0), [third]);
}

// proves GV-06 (part: own errors)
#[test]
fn an_error_that_is_the_requests_own_holds_up_nobody() {
    let mut throttle = throttle(&AccountLimits::default());
    let first = ask(&mut throttle, 0.0);
    sent(&mut throttle, 0.0);
    // Its body says that a spending cap is reached: no wait helps.
    head(&mut throttle, 0.0, first, 429, None);
    let second = ask(&mut throttle, 0.0);
    assert_eq!(sent(&mut throttle, 0.0), []);
    assert_eq!(failed(&mut throttle, 0.1, first, false), None);
    assert_eq!(sent(&mut throttle, 0.1), [second]);
    head(&mut throttle, 0.2, second, 400, None);
    assert_eq!(failed(&mut throttle, 0.2, second, false), None);
    let third = ask(&mut throttle, 0.3);
    assert_eq!(sent(&mut throttle, 0.3), [third]);
    // It broke after its head: the account has answered.
    head(&mut throttle, 0.4, third, 200, None);
    throttle.unreachable(seconds(0.5), third, false);
    assert_eq!(failed(&mut throttle, 0.5, third, true), None);
    assert_eq!(throttle.reason(seconds(0.5), None).0, CallWait::Limit);
}

// proves GV-01 (part: concurrency)
// proves LI-02 (part: concurrency)
#[test]
fn no_more_are_sent_at_once_than_is_configured() {
    let mut throttle = throttle(&AccountLimits {
        concurrent: Some(2),
        ..AccountLimits::default()
    });
    let all: Vec<_> = (0..5).map(|_| ask(&mut throttle, 0.0)).collect();
    assert_eq!(sent(&mut throttle, 0.0), all[..2]);
    throttle.done(seconds(1.0), all[0], &Usage::default());
    assert_eq!(sent(&mut throttle, 1.0), all[2..3]);
    // Dropped: one that waits, and one that was sent.
    throttle.leave(all[3]);
    throttle.leave(all[1]);
    assert_eq!(sent(&mut throttle, 2.0), all[4..]);
}

#[test]
fn a_probe_that_hangs_or_leaves_is_followed_by_another() {
    let mut throttle = throttle(&AccountLimits::default());
    let first = ask(&mut throttle, 0.0);
    sent(&mut throttle, 0.0);
    head(&mut throttle, 0.0, first, 529, None);
    failed(&mut throttle, 0.0, first, true);
    let all: Vec<_> = (0..3).map(|_| ask(&mut throttle, 0.0)).collect();
    assert_eq!(sent(&mut throttle, 0.5), all[..1]);
    throttle.leave(all[0]);
    assert_eq!(sent(&mut throttle, 0.6), all[1..2]);
    let turn = throttle.poll(seconds(0.7));
    assert_eq!((turn.admitted, turn.next), (vec![], Some(seconds(45.6))));
    assert_eq!(sent(&mut throttle, 45.6), all[2..]);
}

#[test]
fn a_call_that_waits_for_itself_holds_up_nobody() {
    let mut throttle = throttle(&AccountLimits::default());
    let standing = Standing::default();
    let later = Ask {
        wait: seconds(4.0),
        ..asking(&standing, 1)
    };
    let later = throttle.ask(Duration::ZERO, later);
    let now = ask(&mut throttle, 0.0);
    let turn = throttle.poll(Duration::ZERO);
    assert_eq!((turn.admitted, turn.next), (vec![now], Some(seconds(4.0))));
    assert_eq!(sent(&mut throttle, 4.0), [later]);
}

// proves GV-01 (part: the cache)
#[test]
fn what_is_cached_counts_where_the_provider_counts_it() {
    let mut throttle = throttle(&AccountLimits {
        tokens: Some(10_000),
        ..AccountLimits::default()
    });
    let warm = Standing {
        cached: 9_900,
        ..Standing::default()
    };
    let mut ask = || {
        let ask = Ask {
            limits_cached: true,
            ..asking(&warm, 10_000)
        };
        throttle.ask(Duration::ZERO, ask)
    };
    let all = [ask(), ask()];
    assert_eq!(sent(&mut throttle, 0.0), all[..1]);
}

// proves GV-01 (part: the cache)
#[test]
fn what_is_cached_does_not_count() {
    let mut throttle = throttle(&AccountLimits {
        input_tokens: Some(1_000),
        ..AccountLimits::default()
    });
    let warm = Standing {
        cached: 9_900,
        ..Standing::default()
    };
    let all: Vec<_> = (0..11)
        .map(|_| {
            let ask = asking(&warm, 10_000);
            throttle.ask(Duration::ZERO, ask)
        })
        .collect();
    assert_eq!(sent(&mut throttle, 0.0), all[..10]);
    // It used less than was estimated: there is room for another.
    let usage = Usage {
        input: 0,
        cache_read: 10_000,
        ..Usage::default()
    };
    throttle.done(Duration::ZERO, all[0], &usage);
    assert_eq!(sent(&mut throttle, 0.0), all[10..]);
}

// proves GV-05 (part: another probe)
#[test]
fn a_persons_request_that_fails_as_a_probe_goes_before_nobody() {
    let mut throttle = throttle(&AccountLimits::default());
    let persons = Standing {
        priority: CallPriority::Person,
        ..Standing::default()
    };
    let persons_ask = |throttle: &mut Throttle, now: f64, demoted| {
        let ask = Ask {
            demoted,
            ..asking(&persons, 1)
        };
        throttle.ask(seconds(now), ask)
    };
    let first = persons_ask(&mut throttle, 0.0, false);
    sent(&mut throttle, 0.0);
    head(&mut throttle, 0.0, first, 500, None);
    assert!(!failed(&mut throttle, 0.0, first, true).unwrap().probed);
    let again = persons_ask(&mut throttle, 0.0, false);
    let other = ask(&mut throttle, 0.0);
    assert_eq!(sent(&mut throttle, 0.5), [again]);
    head(&mut throttle, 0.5, again, 500, None);
    let met = failed(&mut throttle, 0.5, again, true).unwrap();
    assert!(met.probed);
    let again = persons_ask(&mut throttle, 0.5, met.probed);
    assert_eq!(sent(&mut throttle, 1.5), [other], "its turn is over");
    head(&mut throttle, 1.6, other, 200, None);
    assert_eq!(sent(&mut throttle, 1.6), [again]);
}

// proves GV-01 (part: configured)
#[test]
fn a_configured_limit_below_the_providers_is_charged_with_what_was_used() {
    let mut throttle = throttle(&AccountLimits {
        output_tokens: Some(1_000),
        ..AccountLimits::default()
    });
    let told = RateLimits {
        output_tokens: Some(Allowance {
            limit: 80_000,
            remaining: 80_000,
            reset_at_ms: None,
        }),
        ..RateLimits::default()
    };
    let first = ask(&mut throttle, 0.0);
    sent(&mut throttle, 0.0);
    let answer = Head {
        status: 200,
        limits: &told,
        retry_after: None,
    };
    throttle.head(seconds(0.1), first, &answer);
    let usage = Usage {
        output: 1_500,
        ..Usage::default()
    };
    throttle.done(seconds(1.0), first, &usage);
    ask(&mut throttle, 1.0);
    let turn = throttle.poll(seconds(1.0));
    assert_eq!(turn.admitted, []);
    assert!(turn.next.unwrap() > seconds(30.0), "{:?}", turn.next);
}

#[test]
fn what_was_cached_counts_once_the_cache_has_forgotten_it() {
    let mut throttle = throttle(&AccountLimits {
        input_tokens: Some(1_000),
        concurrent: Some(1),
        ..AccountLimits::default()
    });
    let warm = Standing {
        cached: 900,
        ..Standing::default()
    };
    let mut ask = |now| {
        let ask = asking(&warm, 1_000);
        throttle.ask(seconds(now), ask)
    };
    let all = [ask(0.0), ask(0.0), ask(0.0)];
    assert_eq!(sent(&mut throttle, 0.0), all[..1]);
    throttle.leave(all[0]);
    // It has waited for as long as the cache keeps anything: two of a thousand are too many.
    assert_eq!(sent(&mut throttle, 400.0), all[1..2]);
    throttle.leave(all[1]);
    assert_eq!(sent(&mut throttle, 400.0), []);
}

// proves GV-05 (part: too long)
#[test]
fn an_outage_without_answers_ends_too() {
    let mut throttle = throttle(&AccountLimits::default());
    let first = ask(&mut throttle, 0.0);
    sent(&mut throttle, 0.0);
    head(&mut throttle, 0.0, first, 503, None);
    failed(&mut throttle, 0.0, first, true);
    let mut waiting: Vec<_> = (0..40).map(|_| ask(&mut throttle, 0.0)).collect();
    let (mut now, mut probes) = (0.5, 0);
    loop {
        let turn = throttle.poll(seconds(now));
        probes += turn.admitted.len();
        waiting.retain(|ticket| !turn.admitted.contains(ticket));
        if !turn.refused.is_empty() {
            assert_eq!(turn.refused, waiting);
            break;
        }
        now = turn.next.unwrap().as_secs_f64();
        assert!(now < 1_000.0);
    }
    assert!((15..25).contains(&probes), "{probes}");
    assert!((900.0..901.0).contains(&now), "{now}");
}
