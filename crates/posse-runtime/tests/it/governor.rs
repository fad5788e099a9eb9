//! One governor for all calls of an account: who sends when, over real HTTP.

use std::time::Duration;

use posse_model::Anthropic;
use posse_port::model::{Attribution, Call, CallWait, Failure, Model, ModelEvent, Reply, Standing};
use posse_protocol::Message;
use posse_testkit::{TestClock, scripted};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::calls::{TIMEOUTS, body, policy, port, preamble};

const SECOND: Duration = Duration::from_secs(1);

/// Makes a call, and tells what it waits for.
async fn call(
    model: Anthropic,
    waits: mpsc::Sender<(CallWait, Option<Duration>)>,
) -> Result<Reply, Failure> {
    let preamble = preamble("Be brief.", &[]);
    let body = body(&model, &preamble, &[Message::user("hello")], &[]);
    let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
    let mut on = |event: ModelEvent<'_>| {
        if let ModelEvent::Waiting { why, wait } = event {
            waits.try_send((why, wait)).unwrap();
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
    model.call(call).await
}

/// Lets everything happen that can happen without time.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

// proves GV-02 (part: all wait; one probe; slow start)
// proves GV-08 (part: retry-after)
// proves LI-02 (part: retry-after)
#[tokio::test]
async fn a_retry_after_of_one_holds_all_then_one_goes_and_then_the_others() {
    let clock = TestClock::default();
    let script = "[[rule]]\ntimes = 1\nfault = { kind = 'status', status = 429, retry_after = '30' }\n\
                  [[rule]]\ndelay_ms = 1000\nreply = [{ text = 'there' }]\n";
    let server = scripted::play_on(&clock, script).unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    let (tell, mut waits) = mpsc::channel(64);
    let mut calls = JoinSet::new();
    calls.spawn(call(model.clone(), tell.clone()));
    assert_eq!(
        waits.recv().await,
        Some((CallWait::RetryAfter, Some(30 * SECOND)))
    );
    for _ in 0..7 {
        calls.spawn(call(model.clone(), tell.clone()));
        assert_eq!(waits.recv().await.unwrap().0, CallWait::RetryAfter);
    }
    clock.advance(30 * SECOND - Duration::from_millis(1));
    settle().await;
    assert_eq!(server.requests().len(), 1, "nobody sends before it ends");
    clock.advance(Duration::from_millis(1));
    for sent in [2, 4, 8] {
        server.wait_for_requests(sent).await;
        clock
            .many_asleep_for(SECOND, (sent as usize / 2).max(1))
            .await;
        settle().await;
        assert_eq!(server.requests().len() as u64, sent);
        clock.advance(SECOND);
    }
    server.wait_for_requests(9).await;
    let over = async {
        while calls
            .join_next()
            .await
            .is_some_and(|it| it.unwrap().is_ok())
        {}
    };
    tokio::select! {
        () = over => {}
        () = clock.run_sparing(&TIMEOUTS) => unreachable!("a clock runs for ever"),
    }
    assert_eq!((calls.len(), server.requests().len()), (0, 9));
}

// proves GV-05 (part: an outage; growing waits)
// proves GV-08 (part: outage)
#[tokio::test]
async fn an_outage_fails_no_call_and_is_probed_by_one_at_a_time() {
    let clock = TestClock::default();
    // Eight at once, and then probes for five minutes.
    let script = "[[rule]]\ntimes = 23\nfault = { kind = 'status', status = 529 }\n\
                  [[rule]]\nreply = [{ text = 'there' }]\n";
    let server = scripted::play_on(&clock, script).unwrap();
    let model = scripted::anthropic(&server.url(), port(&clock), policy()).unwrap();
    let (tell, mut waits) = mpsc::channel(64);
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        calls.spawn(call(model.clone(), tell.clone()));
    }
    server.wait_for_requests(8).await;
    let over = async {
        while let Some(reply) = calls.join_next().await {
            reply.unwrap().unwrap();
        }
    };
    tokio::select! {
        () = over => {}
        () = clock.run_sparing(&TIMEOUTS) => unreachable!("a clock runs for ever"),
    }
    assert_eq!(waits.recv().await.unwrap().0, CallWait::Outage);
    let requests = server.requests();
    assert_eq!(requests.len(), 23 + 8);
    let probes = &requests[7..24];
    let waits: Vec<_> = probes
        .windows(2)
        .map(|pair| (pair[1].at_us - pair[0].at_us) / 100_000)
        .collect();
    assert_eq!(waits[..7], [5, 10, 20, 40, 80, 160, 300]);
    assert!(waits[7..].iter().all(|wait| *wait == 300), "{waits:?}");
}

// proves GV-01 (part: told by the provider)
// proves GV-08 (part: limit)
#[tokio::test]
async fn what_a_head_tells_holds_before_its_reply_has_come() {
    let clock = TestClock::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let model = scripted::anthropic(&url, port(&clock), policy()).unwrap();
    let (tell, mut waits) = mpsc::channel(64);
    let mut calls = JoinSet::new();
    calls.spawn(call(model.clone(), tell.clone()));
    let (mut first, _) = listener.accept().await.unwrap();
    assert!(first.read(&mut [0; 4096]).await.unwrap() > 0);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                anthropic-ratelimit-requests-limit: 60\r\n\
                anthropic-ratelimit-requests-remaining: 0\r\n\
                transfer-encoding: chunked\r\n\r\n1\r\n:\r\n";
    first.write_all(head.as_bytes()).await.unwrap();
    // A call that comes too early goes through at once: the head has not been read yet.
    let mut others = JoinSet::new();
    loop {
        others.spawn(call(model.clone(), tell.clone()));
        tokio::select! {
            waits = waits.recv() => {
                let Some((CallWait::Limit, Some(wait))) = waits else {
                    panic!("{waits:?}");
                };
                assert!(wait <= 4 * SECOND, "{wait:?}");
                break;
            }
            _ = listener.accept() => others.abort_all(),
        }
    }
    let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept());
    assert!(accepted.await.is_err(), "it was sent too early");
    // Those that came too early may have been counted.
    clock.advance(4 * SECOND);
    listener.accept().await.unwrap();
}
