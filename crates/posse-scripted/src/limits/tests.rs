//! Decisions about requests, with exact numbers.

use super::*;
use crate::script::Script;

const SONNET: &str = "claude-sonnet-5-5";
const OPUS: &str = "claude-opus-5-5";

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A limiter, and what is in flight.
struct Scene {
    limiter: RateLimiter,
    in_flight: Vec<Admission>,
}

impl Scene {
    fn new(script: &str) -> Self {
        Self {
            limiter: RateLimiter::new(Script::parse(script).unwrap().limits().clone()),
            in_flight: Vec::new(),
        }
    }

    /// Returns the verdict about a request that arrives at `ms`, and the seconds of `retry-after`.
    fn ask_as(
        &mut self,
        ms: u64,
        account: &str,
        model: &str,
        input: u64,
    ) -> (Verdict, Option<u64>) {
        let request = LimitedRequest {
            account,
            model,
            input_tokens: input,
            arrived: at(ms),
        };
        match self.limiter.ask(at(ms), &request).unwrap() {
            Decision::Admitted(admission) => {
                self.in_flight.push(admission);
                (Verdict::Within, None)
            }
            Decision::Refused(refusal) => match refusal.reaction {
                Reaction::Status { retry_after, .. } => (refusal.verdict, retry_after),
                Reaction::Disconnect => (refusal.verdict, None),
            },
        }
    }

    fn ask(&mut self, ms: u64, input: u64) -> (Verdict, Option<u64>) {
        self.ask_as(ms, "a", OPUS, input)
    }

    /// Ends the oldest request in flight.
    fn settle(&mut self, ms: u64, output: u64) {
        let admission = self.in_flight.remove(0);
        self.limiter.settle(at(ms), admission, output);
    }

    fn levels(&self, ms: u64) -> Levels {
        self.limiter.levels(at(ms), "a", OPUS)
    }
}

const WITHIN: (Verdict, Option<u64>) = (Verdict::Within, None);

fn over(kind: LimitKind, seconds: u64) -> (Verdict, Option<u64>) {
    (Verdict::Over(kind), Some(seconds))
}

#[test]
fn requests_are_refused_until_the_bucket_has_one() {
    let mut scene = Scene::new("[[limits]]\nrequests_per_minute = 50\nrequests_burst = 2");
    assert_eq!([scene.ask(0, 0), scene.ask(0, 0)], [WITHIN, WITHIN]);
    assert_eq!(
        scene.ask(0, 0),
        over(LimitKind::Requests, 2),
        "1.2 s, rounded up"
    );
    let level = Level {
        limit: 50,
        remaining: 0,
        full_in: at(2_400),
    };
    assert_eq!(scene.levels(0).requests, Some(level));
    assert_eq!(
        scene.ask(2_000, 0),
        WITHIN,
        "exactly when it was told to come"
    );
}

#[test]
fn what_comes_inside_a_retry_after_is_held() {
    let mut scene = Scene::new("[[limits]]\nrequests_per_minute = 60\nrequests_burst = 1");
    assert_eq!(scene.ask(0, 0), WITHIN);
    assert_eq!(scene.ask(400, 0), over(LimitKind::Requests, 1));
    assert_eq!(
        scene.ask(420, 0),
        over(LimitKind::Requests, 1),
        "on its way"
    );
    assert_eq!(scene.ask(421, 0), (Verdict::Held, Some(1)));
    assert_eq!(
        scene.ask(1_100, 0),
        (Verdict::Held, Some(1)),
        "a token is there, time is not"
    );
    assert_eq!(scene.ask_as(1_100, "a", SONNET, 0), WITHIN, "another model");
    assert_eq!(scene.ask_as(1_100, "b", OPUS, 0), WITHIN, "another account");
    assert_eq!(scene.ask(1_419, 0), (Verdict::Held, Some(1)));
    assert_eq!(
        scene.ask(1_420, 0),
        WITHIN,
        "held requests do not prolong it"
    );
    let all = scene.limiter.summary(at(1_420));
    let over = [(LimitKind::Requests, 2)].into();
    assert_eq!((all[0].within, &all[0].over, all[0].held), (2, &over, 3));
}

#[test]
fn a_request_that_waited_to_be_judged_is_not_blamed() {
    let mut scene = Scene::new("[[limits]]\nrequests_per_minute = 60\nrequests_burst = 1");
    assert_eq!(scene.ask(0, 0), WITHIN);
    assert_eq!(scene.ask(0, 0), over(LimitKind::Requests, 1));
    let late = LimitedRequest {
        account: "a",
        model: OPUS,
        input_tokens: 0,
        arrived: at(20),
    };
    let decision = scene.limiter.ask(at(500), &late).unwrap();
    let Decision::Refused(refusal) = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(refusal.verdict, Verdict::Over(LimitKind::Requests));
}

#[test]
fn input_counts_at_once_and_output_when_it_was_said() {
    let mut scene = Scene::new(
        "[[limits]]\nretry_after = false\ninput_tokens_per_minute = 600\noutput_tokens_per_minute = 60",
    );
    let refused = |kind| (Verdict::Over(kind), None);
    assert_eq!(scene.ask(0, 500), WITHIN);
    assert_eq!(scene.ask(0, 101), refused(LimitKind::InputTokens));
    assert_eq!(scene.ask(99, 101), refused(LimitKind::InputTokens));
    assert_eq!(scene.ask(100, 101), WITHIN, "exactly one token later");
    let full = Level {
        limit: 60,
        remaining: 60,
        full_in: Duration::ZERO,
    };
    assert_eq!(
        scene.levels(100).output_tokens,
        Some(full),
        "nothing was said yet"
    );
    scene.settle(100, 90);
    assert_eq!(
        scene.ask(30_100, 0),
        refused(LimitKind::OutputTokens),
        "a debt is paid first"
    );
    assert_eq!(scene.ask(31_099, 0), refused(LimitKind::OutputTokens));
    assert_eq!(scene.ask(31_100, 0), WITHIN);
}

#[test]
fn a_prompt_that_is_all_read_from_the_cache_needs_no_input() {
    let mut scene = Scene::new("[[limits]]\ninput_tokens_per_minute = 60");
    assert_eq!([scene.ask(0, 60), scene.ask(0, 0)], [WITHIN, WITHIN]);
    assert_eq!(scene.ask(0, 1), over(LimitKind::InputTokens, 1));
}

#[test]
fn a_prompt_larger_than_the_burst_never_fits() {
    let mut scene = Scene::new("[[limits]]\ninput_tokens_per_minute = 60\ninput_tokens_burst = 10");
    assert_eq!(scene.ask(0, 11), over(LimitKind::InputTokens, 60));
    assert_eq!(scene.ask(60_000, 11), over(LimitKind::InputTokens, 60));
}

#[test]
fn one_limit_of_all_tokens_counts_both_ways() {
    let mut scene = Scene::new("[[limits]]\ntokens_per_minute = 60\nretry_after = 7");
    assert_eq!(scene.ask(0, 40), WITHIN);
    scene.settle(0, 20);
    assert_eq!(scene.ask(0, 0), over(LimitKind::Tokens, 7));
    let level = Level {
        limit: 60,
        remaining: 0,
        full_in: at(60_000),
    };
    let expected = Levels {
        tokens: Some(level),
        ..Levels::default()
    };
    assert_eq!(scene.levels(0), expected);
}

#[test]
fn without_a_limit_of_their_own_all_tokens_are_the_sum() {
    let mut scene =
        Scene::new("[[limits]]\ninput_tokens_per_minute = 600\noutput_tokens_per_minute = 60");
    assert_eq!(scene.ask(0, 100), WITHIN);
    scene.settle(0, 30);
    let sum = Level {
        limit: 660,
        remaining: 530,
        full_in: at(30_000),
    };
    assert_eq!(scene.levels(0).tokens, Some(sum));
}

#[test]
fn the_longest_wait_names_the_limit_and_nothing_is_taken() {
    let mut scene = Scene::new(
        "[[limits]]\nrequests_per_minute = 60\nrequests_burst = 1\ninput_tokens_per_minute = 60\nretry_after = false",
    );
    assert_eq!(scene.ask(0, 50), WITHIN);
    assert_eq!(
        scene.ask(0, 20),
        (Verdict::Over(LimitKind::InputTokens), None)
    );
    assert_eq!(
        scene.ask(0, 11),
        (Verdict::Over(LimitKind::InputTokens), None),
        "the last of equals"
    );
    assert_eq!(scene.ask(0, 10), (Verdict::Over(LimitKind::Requests), None));
    assert_eq!(scene.ask(1_000, 11), WITHIN);
}

#[test]
fn requests_in_flight_are_limited_and_nobody_knows_for_how_long() {
    let mut scene = Scene::new("[[limits]]\nconcurrency = 2");
    let refused = (Verdict::Over(LimitKind::Concurrency), None);
    assert_eq!([scene.ask(0, 9), scene.ask(0, 9)], [WITHIN, WITHIN]);
    assert_eq!([scene.ask(0, 9), scene.ask(900, 9)], [refused, refused]);
    scene.settle(900, 5);
    assert_eq!([scene.ask(900, 9), scene.ask(900, 9)], [WITHIN, refused]);
    assert_eq!(scene.limiter.summary(at(900))[0].in_flight, 2);
}

#[test]
fn the_first_table_that_matches_counts_and_each_account_and_model_counts_by_itself() {
    let mut scene = Scene::new(
        "[[limits]]\naccount = 'a'\nmodel = 'claude-opus-*'\nconcurrency = 1\n\
         [[limits]]\nmodel = 'claude-*'\nconcurrency = 2",
    );
    let refused = (Verdict::Over(LimitKind::Concurrency), None);
    assert_eq!([scene.ask(0, 0), scene.ask(0, 0)], [WITHIN, refused]);
    for (account, model) in [("a", SONNET), ("b", OPUS), ("b", SONNET)] {
        let mut ask = || scene.ask_as(0, account, model, 0);
        assert_eq!([ask(), ask(), ask()], [WITHIN, WITHIN, refused]);
    }
    for _ in 0..9 {
        assert_eq!(scene.ask_as(0, "a", "other", 0), WITHIN, "no table matches");
    }
    let pairs = scene.limiter.summary(at(0));
    let names: Vec<[&str; 2]> = pairs
        .iter()
        .map(|pair| [&*pair.account, &*pair.model])
        .collect();
    let expected = [
        ["a", OPUS],
        ["a", SONNET],
        ["account-2", OPUS],
        ["account-2", SONNET],
        ["a", "other"],
    ];
    assert_eq!(
        names, expected,
        "credentials that the script does not name are not shown"
    );
}

#[test]
fn an_outage_answers_everything_from_its_first_moment_to_its_last() {
    let mut scene = Scene::new(
        "[[limits]]\nrequests_per_minute = 1\n[[outage]]\nfrom_ms = 1000\nfor_ms = 500\nstatus = 529\n\
         [[outage]]\nfrom_ms = 9000\nfor_ms = 1000\nrefuse = true",
    );
    assert_eq!(scene.limiter.outage(at(999)), None);
    let overloaded = Reaction::Status {
        status: 529,
        retry_after: None,
    };
    assert_eq!(scene.limiter.outage(at(1_000)), Some((overloaded, at(500))));
    assert_eq!(scene.ask(1_000, 0), (Verdict::Outage, None));
    assert_eq!(scene.ask(1_499, 0), (Verdict::Outage, None));
    assert_eq!(scene.ask(1_500, 0), WITHIN, "it took nothing");
    assert_eq!(
        scene.limiter.outage(at(9_400)),
        Some((Reaction::Disconnect, at(600)))
    );
    assert_eq!(scene.ask(9_400, 0), (Verdict::Outage, None));
    assert_eq!(scene.limiter.summary(at(9_400))[0].outage, 3);
}

#[test]
fn a_storm_may_say_when_to_come_again() {
    let mut scene =
        Scene::new("[[outage]]\nfrom_ms = 0\nfor_ms = 1000\nstatus = 429\nretry_after = 3");
    assert_eq!(scene.ask(500, 0), (Verdict::Outage, Some(3)));
    assert_eq!(scene.ask(520, 0), (Verdict::Outage, Some(3)));
    assert_eq!(
        scene.ask(600, 0),
        (Verdict::Held, Some(3)),
        "still in the storm"
    );
    assert_eq!(
        scene.ask(1_200, 0),
        (Verdict::Held, Some(3)),
        "2.32 s are left"
    );
    assert_eq!(scene.ask(3_520, 0), WITHIN);

    let mut silent = Scene::new("[[outage]]\nfrom_ms = 0\nfor_ms = 1000\nstatus = 429");
    assert_eq!(silent.ask(0, 0), (Verdict::Outage, None));
    assert_eq!(
        silent.ask(500, 0),
        (Verdict::Outage, None),
        "nothing was said"
    );
    assert_eq!(silent.ask(1_000, 0), WITHIN);
}

#[test]
fn a_summary_has_what_was_used_and_what_could_have_been() {
    let mut scene = Scene::new(
        "[[limits]]\naccount = 'a'\nrequests_per_minute = 60\nrequests_burst = 5\n\
         output_tokens_per_minute = 600\nconcurrency = 3",
    );
    assert_eq!([scene.ask(1_000, 0), scene.ask(1_000, 0)], [WITHIN, WITHIN]);
    scene.settle(1_000, 700);
    let requests = LimitSummary {
        per_minute: 60,
        burst: 5,
        level: 5,
        used: 2,
        allowed: 15,
    };
    let output = LimitSummary {
        per_minute: 600,
        burst: 600,
        level: 0,
        used: 700,
        allowed: 700,
    };
    let expected = PairSummary {
        account: "a".to_owned(),
        model: OPUS.to_owned(),
        elapsed_us: 10_000_000,
        within: 2,
        over: [].into(),
        held: 0,
        outage: 0,
        in_flight: 1,
        concurrency: Some(3),
        limits: [
            (LimitKind::Requests, requests),
            (LimitKind::OutputTokens, output),
        ]
        .into(),
    };
    let json = serde_json::to_value(&expected).unwrap();
    assert_eq!(scene.limiter.summary(at(11_000)), [expected]);
    assert_eq!(json["limits"]["output_tokens"]["allowed"], 700);
    let verdicts = [Verdict::Held, Verdict::Over(LimitKind::InputTokens)];
    assert_eq!(
        serde_json::to_value(verdicts).unwrap(),
        serde_json::json!(["held", {"over": "input_tokens"}])
    );
}

#[test]
fn pairs_are_bounded() {
    let mut limiter = RateLimiter::default();
    let mut ask = |model: &str| {
        let request = LimitedRequest {
            account: "a",
            model,
            input_tokens: 1,
            arrived: at(0),
        };
        limiter
            .ask(at(0), &request)
            .map(|decision| matches!(decision, Decision::Admitted(_)))
    };
    for number in 0..MOST_PAIRS {
        assert_eq!(ask(&number.to_string()), Ok(true));
    }
    assert_eq!(ask("one more"), Err(TooManyPairs));
    assert_eq!(ask("0"), Ok(true), "known");
}
