//! Waits of single calls, and what counts as a failure.

use super::*;

fn policy() -> RetryPolicy {
    RetryPolicy {
        random: || 1.0,
        ..RetryPolicy::default()
    }
}

fn cut() -> ModelError {
    ModelError::Cut {
        received: 1,
        source: None,
    }
}

#[test]
fn waits_double_up_to_the_cap_and_spread() {
    let policy = policy();
    let mut tries = Tries::default();
    let waits: Vec<f64> = std::iter::from_fn(|| tries.failed(&cut(), None, &policy))
        .map(|wait| wait.as_secs_f64())
        .collect();
    assert_eq!(waits, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
    let least = RetryPolicy {
        random: || 0.0,
        ..policy
    };
    assert_eq!(least.back_off(1), Duration::from_millis(375));
    assert!(
        (0..1000)
            .map(|_| random())
            .all(|number| (0.0..1.0).contains(&number))
    );
}

#[test]
fn probes_of_one_outage_count_once() {
    let policy = RetryPolicy {
        retries: 2,
        ..policy()
    };
    let met = |number| {
        Some(StopFacts {
            number,
            wait: Duration::from_secs(1),
            too_long: false,
            place: None,
            probed: false,
        })
    };
    let mut tries = Tries::default();
    for _ in 0..100 {
        assert_eq!(tries.failed(&cut(), met(1), &policy), Some(Duration::ZERO));
    }
    assert_eq!(tries.failed(&cut(), met(2), &policy), Some(Duration::ZERO));
    assert_eq!(tries.failed(&cut(), met(3), &policy), None, "its own fault");
}

#[test]
fn nothing_listens_here_or_elsewhere() {
    let refused = |endpoint: &str| ModelError::Connect {
        endpoint: endpoint.into(),
        source: Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)),
    };
    assert!(is_refused_here(&refused("http://127.0.0.1:1")));
    assert!(!is_refused_here(&refused("https://host")));
    assert!(!is_refused_here(&cut()));
}
