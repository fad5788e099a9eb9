//! Outages over HTTP: statuses, refused connections, and the record.

use std::io::ErrorKind;

use posse_scripted::Outcome;
use posse_scripted::limits::Verdict;
use tokio::net::TcpStream;

use crate::client::{Client, play};

const RULE: &str = "[[rule]]\nreply = [{ text = 'well' }]\n";

#[tokio::test]
async fn every_request_fails_until_the_outage_ends() {
    let outage = "[[outage]]\nfrom_ms = 1000\nfor_ms = 300000\nstatus = 529\n";
    let (server, pace) = play(&format!("{outage}{RULE}"));
    let client = &mut Client::connect(&server).await.unwrap();
    assert_eq!(client.ask("a").await.unwrap().status, 200);
    pace.advance_ms(1_000);
    let overloaded = client.ask("a").await.unwrap();
    assert_eq!(
        (overloaded.status, overloaded.header("retry-after")),
        (529, None)
    );
    assert_eq!(overloaded.body["error"]["type"], "overloaded_error");
    assert_eq!(client.chat("a").await.unwrap().status, 529);
    assert_eq!(client.get("/v1/models").await.unwrap().status, 529);
    pace.advance_ms(299_999);
    assert_eq!(client.ask("a").await.unwrap().status, 529);
    pace.advance_ms(1);
    assert_eq!(client.ask("a").await.unwrap().status, 200);
    let verdicts: Vec<_> = server
        .requests()
        .iter()
        .filter_map(|request| request.verdict)
        .collect();
    let (within, outage) = (Verdict::Within, Verdict::Outage);
    assert_eq!(verdicts, [within, outage, outage, outage, outage, within]);
}

#[tokio::test]
async fn a_storm_of_429_says_when_to_come_again_if_the_script_does() {
    let storm = |more: &str| {
        play(&format!(
            "[[outage]]\nfrom_ms = 0\nfor_ms = 60000\nstatus = 429\n{more}\n{RULE}"
        ))
    };
    let (server, pace) = storm("retry_after = 30");
    let client = &mut Client::connect(&server).await.unwrap();
    let first = client.ask("a").await.unwrap();
    assert_eq!(
        (first.status, first.header("retry-after")),
        (429, Some("30"))
    );
    assert_eq!(first.body["error"]["type"], "rate_limit_error");
    pace.advance_ms(20);
    client.ask("a").await.unwrap();
    pace.advance_ms(1);
    client.ask("a").await.unwrap();
    let verdicts: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.verdict)
        .collect();
    assert_eq!(
        verdicts,
        [Verdict::Outage, Verdict::Outage, Verdict::Held].map(Some)
    );

    let (silent, pace) = storm("");
    let client = &mut Client::connect(&silent).await.unwrap();
    let refused = client.chat("a").await.unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (429, None));
    assert_eq!(refused.body["error"]["code"], "rate_limit_exceeded");
    pace.advance_ms(60_000);
    assert_eq!(client.chat("a").await.unwrap().status, 200);
}

#[tokio::test]
async fn connections_are_refused_until_the_outage_ends() {
    let outage = "[[outage]]\nfrom_ms = 1000\nfor_ms = 5000\nrefuse = true\n";
    let (server, pace) = play(&format!("{outage}{RULE}"));
    let client = &mut Client::connect(&server).await.unwrap();
    assert_eq!(client.ask("a").await.unwrap().status, 200);
    pace.advance_ms(3_000);
    assert!(client.ask("a").await.is_err(), "its connection ends");
    let last = server.requests().pop().unwrap();
    assert_eq!(
        (last.status, last.outcome, last.verdict, last.ended_us),
        (0, Outcome::Broken, Some(Verdict::Outage), Some(3_000_000))
    );
    // The first connection of an outage is reset; the door is shut when the client knows.
    let mut first = Client::connect(&server).await.unwrap();
    assert!(first.ask("a").await.is_err());
    let refused = TcpStream::connect(server.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    pace.advance_ms(3_000);
    let mut after = loop {
        match Client::connect(&server).await {
            Ok(client) => break client,
            // The listener is bound again by a task that must have its turn first.
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(after.ask("a").await.unwrap().status, 200);
    assert_eq!(server.limits()[0].outage, 1);
}
