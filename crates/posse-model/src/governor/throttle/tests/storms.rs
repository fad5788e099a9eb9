//! Throughput, fairness and obedience of a thousand agents, undisturbed and in storms.

use posse_port::model::CallPriority;
use proptest::prelude::*;

use super::provider::{Disturbance, Provider, Trouble};
use super::simulation::{MINUTE, SECOND, Simulation, jain};
use crate::governor::limits::AccountLimits;

/// Agents of ten subtrees.
const SIZES: [usize; 10] = [1, 2, 4, 8, 16, 50, 100, 150, 250, 419];
const RPM: u64 = 50;
const TPM: u64 = 400_000;

/// What a run came to.
#[derive(Debug)]
struct Figures {
    /// Accepted requests, as a part of what the limits allow.
    throughput: f64,
    jain: f64,
    /// Requests that were one too many.
    over: u64,
}

fn crowd(seed: u64, tokens: (u64, u64), limits: &AccountLimits) -> Simulation {
    let mut simulation = Simulation::new(seed, Provider::new(RPM, TPM), limits);
    simulation.tokens = tokens;
    for (subtree, size) in SIZES.into_iter().enumerate() {
        for _ in 0..size {
            simulation.agent(0, "one", subtree, CallPriority::Usual, false);
        }
    }
    simulation
}

/// Runs for an hour with disturbances. `lost` is the time in which nothing could be sent, beyond
/// what refills later.
fn run(mut simulation: Simulation, disturbances: &[Disturbance], lost: u64) -> Figures {
    simulation.provider.disturbances = disturbances.to_vec();
    let hour = 60 * MINUTE;
    simulation.run(hour);
    assert_eq!(simulation.violations, 0, "inside a retry-after");
    assert_eq!(simulation.refused, 0);
    let provider = &simulation.provider;
    let size = provider.accepted_tokens as f64 / provider.accepted as f64;
    let mut shares = [0; SIZES.len()];
    for agent in &simulation.agents {
        shares[agent.subtree] += agent.accepted;
    }
    let figures = Figures {
        throughput: provider.accepted as f64 / provider.allows(hour, lost, size),
        jain: jain(&shares),
        over: provider.over,
    };
    println!("{figures:?} {shares:?}");
    figures
}

fn check(figures: &Figures) {
    assert!(figures.throughput >= 0.95, "{figures:?}");
    assert!(figures.jain >= 0.95, "{figures:?}");
}

fn disturbance(from: u64, seconds: u64, trouble: Trouble) -> Disturbance {
    Disturbance {
        from: from * MINUTE,
        to: from * MINUTE + seconds * SECOND,
        trouble,
    }
}

const SMALL: (u64, u64) = (1_000, 3_000);
const LARGE: (u64, u64) = (10_000, 40_000);

// proves GV-01 (part: told by the provider)
// proves GV-04 (part: sizes)
// proves LI-02 (part: requests and tokens)
#[test]
fn a_thousand_agents_use_what_the_headers_allow_and_no_more() {
    for tokens in [SMALL, LARGE] {
        // Beside the first burst, before anything is known.
        let figures = run(crowd(7, tokens, &AccountLimits::default()), &[], 0);
        check(&figures);
        // The first burst, before anything is known, and the probes after it.
        assert!(figures.over < 1_100, "{figures:?}");
    }
}

// proves GV-01 (part: configured)
#[test]
fn a_thousand_agents_use_what_is_configured_and_no_more() {
    let limits = AccountLimits {
        requests: Some(RPM),
        input_tokens: Some(TPM),
        ..AccountLimits::default()
    };
    for tokens in [SMALL, LARGE] {
        for tells in [true, false] {
            let mut simulation = crowd(7, tokens, &limits);
            simulation.provider.tells = tells;
            let figures = run(simulation, &[], 0);
            check(&figures);
            // It knows the sizes of the prompts only roughly.
            assert!(figures.over <= 100, "{figures:?}");
        }
    }
}

// proves GV-02 (part: a storm)
// proves GV-03
#[test]
fn storms_of_429_cost_no_more_than_they_last() {
    let trouble = [
        disturbance(5, 40, Trouble::Asks(17)),
        disturbance(15, 40, Trouble::Busy),
        disturbance(25, 30, Trouble::Asks(45)),
        disturbance(35, 10, Trouble::Busy),
    ];
    for tokens in [SMALL, LARGE] {
        check(&run(
            crowd(3, tokens, &AccountLimits::default()),
            &trouble,
            0,
        ));
    }
}

// proves GV-05 (part: an outage)
#[test]
fn an_outage_of_five_minutes_fails_nothing() {
    let outage = [disturbance(20, 300, Trouble::Overloaded)];
    for tokens in [SMALL, LARGE] {
        let simulation = crowd(5, tokens, &AccountLimits::default());
        check(&run(simulation, &outage, 4 * MINUTE));
    }
}

#[test]
fn during_an_outage_one_probe_goes_at_a_time() {
    let mut simulation = crowd(5, SMALL, &AccountLimits::default());
    simulation.provider.disturbances = vec![disturbance(20, 300, Trouble::Overloaded)];
    simulation.run(26 * MINUTE);
    let probes = |from: u64, to: u64| {
        let sent = simulation.sent.iter();
        sent.filter(|at| (from..to).contains(at)).count()
    };
    // Those that were under way when it began, and then 0.5 s doubling to 30 s, × 0.875.
    assert!(probes(20 * MINUTE, 20 * MINUTE + 2 * SECOND) <= 8);
    assert_eq!(probes(21 * MINUTE, 25 * MINUTE), 9);
}

// proves GV-04 (part: newcomers)
#[test]
fn a_new_session_is_served_within_two_refills() {
    for (tokens, interval) in [(SMALL, MINUTE / RPM), (LARGE, 40_000 * MINUTE / TPM)] {
        for priority in [CallPriority::Person, CallPriority::Usual] {
            let mut simulation = crowd(11, tokens, &AccountLimits::default());
            let mut newcomers = Vec::new();
            for number in 0..20_u64 {
                let at = 10 * MINUTE + number * 97 * SECOND;
                let session = format!("new {number}");
                newcomers.push(simulation.agent(at, &session, 0, priority, true));
            }
            simulation.run(60 * MINUTE);
            for number in newcomers {
                // Until the head of the response: 2.05 s after it was sent at most.
                let wait = simulation.agents[number].first_wait.unwrap();
                let admitted = wait.saturating_sub(2 * SECOND + SECOND / 20);
                assert!(admitted <= 2 * interval, "{priority:?} {admitted}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_storm_is_obeyed_and_survived(
        seed in any::<u64>(),
        starts in proptest::collection::vec((3_u64..50, 1_u64..90, 0_u8..3, 1_u64..120), 0..5),
        large in any::<bool>(),
    ) {
        let trouble: Vec<_> = starts
            .into_iter()
            .map(|(from, seconds, kind, asks)| {
                let trouble = match kind {
                    0 => Trouble::Asks(asks),
                    1 => Trouble::Busy,
                    _ => Trouble::Overloaded,
                };
                disturbance(from, seconds, trouble)
            })
            .collect();
        // A wait that is asked for may outlast the storm, and what refills is a minute's worth.
        let lost: u64 = trouble
            .iter()
            .map(|it| match it.trouble {
                Trouble::Asks(asks) => it.to - it.from + asks * SECOND,
                _ => it.to - it.from + 30 * SECOND,
            })
            .map(|whole| whole.saturating_sub(MINUTE))
            .sum();
        let tokens = if large { LARGE } else { SMALL };
        check(&run(crowd(seed, tokens, &AccountLimits::default()), &trouble, lost));
    }
}
