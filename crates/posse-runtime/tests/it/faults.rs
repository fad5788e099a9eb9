//! The fault table: what each fault costs in attempts and in waiting, and what it ends in.

use std::time::{Duration, Instant};

use posse_model::RetryPolicy;
use posse_port::model::{ApiErrorKind, Attribution, Call, Model, ModelError, ModelEvent, Standing};
use posse_scripted::{Outcome, Server};
use posse_testkit::{TestClock, scripted};
use tokio_util::sync::CancellationToken;

use crate::calls::{Run, TIMEOUTS, ask, body, kind, policy, port, preamble};

const GOOD: &str = "[[rule]]\nreply = [{ text = 'the whole reply' }]\n";

/// A script whose first `times` answers go wrong, and an adapter for it.
fn broken(clock: &TestClock, times: u32, fault: &str) -> (Server, posse_model::Anthropic) {
    let reply = "reply = [{ text = 'the whole reply' }]";
    let script = format!("[[rule]]\ntimes = {times}\nfault = {{ {fault} }}\n{reply}\n{GOOD}");
    let server = scripted::play_on(clock, &script).unwrap();
    let model = scripted::anthropic(&server.url(), port(clock), policy()).unwrap();
    (server, model)
}

async fn run(times: u32, fault: &str) -> (Run, usize) {
    let clock = TestClock::default();
    let (server, model) = broken(&clock, times, fault);
    let run = ask(&model, &clock, "hello").await;
    let requests = server.requests().len();
    (run, requests)
}

/// The call succeeds after so many attempts and so much waiting, and every failure was of one kind.
async fn check_recovers(times: u32, fault: &str, failure: &str, waited: f64) {
    let (run, requests) = run(times, fault).await;
    let reply = run
        .result
        .unwrap_or_else(|failed| panic!("{fault}: {:?}", failed.error));
    assert_eq!(
        reply.content,
        [posse_protocol::ContentBlock::text("the whole reply")],
        "{fault}"
    );
    assert_eq!(
        (reply.attempts, requests),
        (times + 1, times as usize + 1),
        "{fault}"
    );
    assert_eq!(run.failures, vec![failure; times as usize], "{fault}");
    assert_eq!(run.waits.iter().sum::<f64>(), waited, "{fault}");
    assert!(
        run.shown.ends_with("the whole reply"),
        "{fault}: {}",
        run.shown
    );
}

async fn check_fails(fault: &str, expected: ApiErrorKind) {
    let (run, requests) = run(99, fault).await;
    let failure = run.result.expect_err(fault);
    assert_eq!((failure.attempts, requests), (1, 1), "{fault}");
    assert!(run.waits.is_empty(), "{fault}");
    let ModelError::Api(error) = failure.error else {
        panic!("{fault}: {:?}", failure.error)
    };
    assert_eq!(error.kind, expected, "{fault}");
    assert!(error.request_id.is_some(), "{fault}");
}

// proves TU-06 (part: each fault; back-off and retry-after)
#[tokio::test]
async fn faults_that_pass_are_waited_out() {
    check_recovers(
        2,
        "kind = 'status', status = 429, retry_after = '7'",
        "api",
        14.0,
    )
    .await;
    check_recovers(
        2,
        "kind = 'status', status = 429, retry_after_ms = 250",
        "api",
        0.5,
    )
    .await;
    check_recovers(2, "kind = 'status', status = 429", "api", 1.5).await;
    check_recovers(
        1,
        "kind = 'status', status = 429, code = 'ramp_limit_exceeded', retry_after = '1'",
        "api",
        1.0,
    )
    .await;
    check_recovers(8, "kind = 'status', status = 529", "api", 91.5).await;
    check_recovers(1, "kind = 'status', status = 500", "api", 0.5).await;
    check_recovers(1, "kind = 'status', status = 502", "api", 0.5).await;
    check_recovers(1, "kind = 'status', status = 504", "api", 0.5).await;
    check_recovers(1, "kind = 'status', status = 409", "api", 0.5).await;
    check_recovers(
        1,
        "kind = 'status', status = 400, should_retry = true",
        "api",
        0.5,
    )
    .await;
    check_recovers(
        1,
        "kind = 'error', event = 3, type = 'overloaded_error'",
        "api",
        0.5,
    )
    .await;
    check_recovers(2, "kind = 'reset', at = 0", "cut", 1.5).await;
    check_recovers(2, "kind = 'reset', at = 300", "cut", 1.5).await;
    check_recovers(2, "kind = 'cut', at = 300", "cut", 1.5).await;
    check_recovers(2, "kind = 'garbage', at = 300", "garbled", 1.5).await;
    check_recovers(1, "kind = 'duplicate', event = 0", "garbled", 0.5).await;
    check_recovers(1, "kind = 'duplicate', event = 2", "garbled", 0.5).await;
    check_recovers(1, "kind = 'duplicate', event = 4", "garbled", 0.5).await;
}

#[tokio::test]
async fn faults_that_stay_are_not_retried() {
    check_fails(
        "kind = 'status', status = 400",
        ApiErrorKind::InvalidRequest,
    )
    .await;
    check_fails(
        "kind = 'status', status = 401",
        ApiErrorKind::Authentication,
    )
    .await;
    check_fails("kind = 'status', status = 402", ApiErrorKind::Billing).await;
    check_fails("kind = 'status', status = 403", ApiErrorKind::Permission).await;
    check_fails("kind = 'status', status = 404", ApiErrorKind::NotFound).await;
    check_fails("kind = 'status', status = 413", ApiErrorKind::TooLarge).await;
    check_fails(
        "kind = 'status', status = 500, should_retry = false",
        ApiErrorKind::Server,
    )
    .await;
    check_fails(
        "kind = 'status', status = 429, retry_after = '3600'",
        ApiErrorKind::RateLimited,
    )
    .await;
    check_fails(
        "kind = 'status', status = 429, code = 'enforced_spend_limit_reached'",
        ApiErrorKind::SpendLimit,
    )
    .await;
}

#[tokio::test]
async fn retries_end() {
    // The account is to blame: it is probed for as long as an outage may last.
    let (outage, requests) = run(99, "kind = 'status', status = 529").await;
    let failure = outage.result.unwrap_err();
    assert_eq!((failure.attempts, requests), (35, 35));
    assert_eq!(outage.waits.iter().sum::<f64>(), 871.5);
    assert_eq!(kind(&failure.error), "api");
    // The request is to blame.
    let (run, requests) = run(99, "kind = 'cut', at = 300").await;
    let failure = run.result.unwrap_err();
    assert_eq!((failure.attempts, requests), (9, 9));
    assert_eq!(run.waits.iter().sum::<f64>(), 91.5);
    assert_eq!(kind(&failure.error), "cut");
}

#[tokio::test]
async fn a_refused_connection_is_tried_until_somebody_listens() {
    let (clock, servers_clock) = (TestClock::default(), TestClock::default());
    let (server, _) = broken(&servers_clock, 1, "kind = 'refuse', for_ms = 1200");
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    let body = body(
        &model,
        &preamble("Be brief.", &[]),
        &[posse_protocol::Message::user("hello")],
        &[],
    );
    let (attribution, cancel, mut failures) =
        (Attribution::default(), CancellationToken::new(), Vec::new());
    let mut on = |event: ModelEvent<'_>| {
        if let ModelEvent::Retry { error, .. } = event {
            failures.push(kind(error));
            if failures.len() == 2 {
                servers_clock.advance(Duration::from_millis(1200));
            }
        }
    };
    let call = Call {
        body,
        model: "claude-opus-5",
        standing: &Standing::default(),
        attribution: &attribution,
        cancel: &cancel,
        on: &mut on,
    };
    let result = tokio::select! {
        result = model.call(call) => result,
        () = clock.run_sparing(&TIMEOUTS) => unreachable!(),
    };
    assert_eq!(failures, ["cut", "connect"]);
    assert_eq!(result.unwrap().attempts, 3);
    drop(server);

    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let model = scripted::anthropic(&url, port(&clock), policy()).unwrap();
    let run = ask(&model, &clock, "hello").await;
    assert_eq!(run.failures, ["connect"; 2], "no network is to blame here");
    assert_eq!(run.waits.iter().sum::<f64>(), 1.5);
    assert_eq!(kind(&run.result.unwrap_err().error), "connect");
}

/// Lets `stalls` attempts stall for as long as they may; `begun` says whether their replies begin first.
async fn stall(policy: RetryPolicy, fault: &str, stalls: u32, begun: bool) -> (Run, usize) {
    let clock = TestClock::default();
    let (server, _) = broken(&clock, stalls, fault);
    let model = scripted::anthropic(&server.url(), port(&clock), policy).unwrap();
    let body = body(
        &model,
        &preamble("Be brief.", &[]),
        &[posse_protocol::Message::user("hello")],
        &[],
    );
    let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
    let (started, mut starts) = tokio::sync::mpsc::channel(16);
    let (mut waits, mut failures) = (Vec::new(), Vec::new());
    let mut on = |event: ModelEvent<'_>| match event {
        ModelEvent::Started { .. } => started.try_send(()).unwrap(),
        ModelEvent::Retry { wait, error, .. } => {
            waits.push(wait.as_secs_f64());
            failures.push(kind(error));
        }
        _ => {}
    };
    let time = async {
        for stalled in 1..=u64::from(stalls) {
            server.wait_for_requests(stalled).await;
            if begun {
                starts.recv().await.unwrap();
            }
            clock.asleep_for(policy.stall).await;
            clock.advance(policy.stall);
        }
        std::future::pending::<()>().await;
    };
    let call = Call {
        body,
        model: "claude-opus-5",
        standing: &Standing::default(),
        attribution: &attribution,
        cancel: &cancel,
        on: &mut on,
    };
    let spared = [&TIMEOUTS[..], &[policy.stall]].concat();
    let result = tokio::select! {
        result = model.call(call) => result,
        () = time => unreachable!(),
        () = clock.run_sparing(&spared) => unreachable!(),
    };
    let elapsed = posse_port::clock::Clock::now(&clock);
    let requests = server.requests().len();
    (
        Run {
            result,
            waits,
            failures,
            received: Vec::new(),
            shown: String::new(),
            elapsed,
        },
        requests,
    )
}

// proves LI-03 (part: stalls)
#[tokio::test]
async fn a_stall_is_cut_after_ten_minutes_and_retried_once() {
    for (fault, begun) in [
        ("kind = 'stall'", false),
        ("kind = 'stall', at = 1000", true),
    ] {
        let (run, requests) = stall(policy(), fault, 1, begun).await;
        assert_eq!((run.result.unwrap().attempts, requests), (2, 2), "{fault}");
        assert_eq!(
            (run.failures, run.elapsed),
            (vec!["stalled"], Duration::from_millis(600_500)),
            "{fault}"
        );

        let (run, requests) = stall(policy(), fault, 2, begun).await;
        let failure = run.result.unwrap_err();
        assert_eq!(
            (kind(&failure.error), failure.attempts, requests),
            ("stalled", 2, 2),
            "{fault}"
        );
        assert_eq!(run.elapsed, Duration::from_millis(1_200_500), "{fault}");
        // What a stalled reply has used by then is paid for, and told.
        assert_eq!(failure.spent.len(), if begun { 2 } else { 0 }, "{fault}");
    }
}

// proves LI-03 (part: configurable)
#[tokio::test]
async fn how_long_a_stream_may_stand_still_can_be_said() {
    let policy = RetryPolicy {
        stall: Duration::from_secs(60),
        ..policy()
    };
    let (run, requests) = stall(policy, "kind = 'stall'", 1, false).await;
    assert_eq!((run.result.unwrap().attempts, requests), (2, 2));
    assert_eq!(run.elapsed, Duration::from_millis(60_500));
}

#[tokio::test]
async fn a_cap_inside_a_tool_call_is_a_reply_that_was_cut() {
    let clock = TestClock::default();
    let long = "x".repeat(8000);
    let script = format!(
        "[[rule]]\nreply = [{{ text = 'writing' }}, {{ tool = 'Write', input = {{ text = '{long}' }} }}]\n"
    );
    let server = scripted::play(&script).unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    let reply = ask(&model, &clock, "write").await.result.unwrap();
    assert_eq!(
        (reply.attempts, reply.stop),
        (1, posse_protocol::StopReason::MaxTokens)
    );
    assert_eq!(
        reply.content,
        [posse_protocol::ContentBlock::text("writing")]
    );
    assert_eq!(
        reply.usage.output, 1024,
        "the whole cap was used and is paid for"
    );
}

#[tokio::test]
async fn a_byte_a_second_is_slow_and_not_a_fault() {
    let (run, requests) = run(1, "kind = 'drip', bytes_per_s = 1").await;
    assert_eq!((run.result.unwrap().attempts, requests), (1, 1));
    assert!(run.elapsed > Duration::from_secs(1000), "{:?}", run.elapsed);
}

/// Cancels a call once `ready` says so, given whether its reply has begun; how it ended, and how soon.
async fn cancelled(
    model: &dyn Model,
    ready: impl AsyncFnOnce(tokio::sync::mpsc::Receiver<()>),
) -> (ModelError, Duration) {
    let body = body(
        model,
        &preamble("Be brief.", &[]),
        &[posse_protocol::Message::user("hello")],
        &[],
    );
    let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
    let (started, starts) = tokio::sync::mpsc::channel(1);
    let mut on = |event: ModelEvent<'_>| {
        if let ModelEvent::Started { .. } = event {
            started.try_send(()).unwrap();
        }
    };
    let call = Call {
        body,
        model: "claude-opus-5",
        standing: &Standing::default(),
        attribution: &attribution,
        cancel: &cancel,
        on: &mut on,
    };
    let mut calling = model.call(call);
    tokio::select! {
        _ = &mut calling => unreachable!("it hangs"),
        () = ready(starts) => {}
    }
    let at = Instant::now();
    cancel.cancel();
    let failure = calling.await.unwrap_err();
    (failure.error, at.elapsed())
}

// proves TU-05 (part: stream)
#[tokio::test]
async fn cancelling_ends_a_call_at_once_wherever_it_is() {
    let check = |place: &str, (error, took): (ModelError, Duration)| {
        assert_eq!(kind(&error), "cancelled", "{place}");
        assert!(took < Duration::from_millis(200), "{place}: {took:?}");
    };
    let clock = TestClock::default();
    let (server, model) = broken(&clock, 99, "kind = 'stall'");
    check(
        "before the head",
        cancelled(&model, async |_| server.wait_for_requests(1).await).await,
    );

    let (server, model) = broken(&clock, 99, "kind = 'stall', at = 1000");
    check(
        "in the stream",
        cancelled(&model, async |mut starts| starts.recv().await.unwrap()).await,
    );
    // The server sees the client go: nothing of the stream lives on.
    while server.requests()[0].outcome != Outcome::Abandoned {
        tokio::task::yield_now().await;
    }

    let (_server, model) = broken(&clock, 99, "kind = 'status', status = 529");
    let waiting = clock.asleep_for(policy().first_wait);
    check(
        "while waiting to retry",
        cancelled(&model, async |_| waiting.await).await,
    );
}

/// A gateway that sends an error's head and never its body costs seconds, not the stall time-out.
#[tokio::test]
async fn an_error_whose_body_hangs_is_an_error_all_the_same() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let clock = TestClock::default();
    let model = scripted::anthropic(
        &url,
        port(&clock),
        posse_model::RetryPolicy {
            retries: 0,
            ..policy()
        },
    );
    let model = model.unwrap();
    let gateway = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        stream
            .write_all(b"HTTP/1.1 529 Busy\r\ncontent-length: 9\r\n\r\nab")
            .await
            .unwrap();
        clock.asleep_for(Duration::from_secs(5)).await;
        clock.advance(Duration::from_secs(5));
        std::future::pending::<()>().await;
    };
    let run = tokio::select! {
        run = ask(&model, &clock, "hello") => run,
        () = gateway => unreachable!(),
    };
    let failure = run.result.unwrap_err();
    let ModelError::Api(error) = failure.error else {
        panic!("{:?}", failure.error)
    };
    assert_eq!(
        (error.kind, run.elapsed),
        (ApiErrorKind::Overloaded, Duration::from_secs(5))
    );
}
