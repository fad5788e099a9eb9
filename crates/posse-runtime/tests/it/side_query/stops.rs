//! What ends a side query before its answer.

use std::time::{Duration, Instant};

use posse_port::model::ModelEvent;
use posse_protocol::Purpose;
use posse_runtime::agent::SideQueryError;
use posse_runtime::govern::budget::Budget;
use posse_runtime::session::side_query::SideQueryOptions;
use posse_testkit::Rig;
use posse_testkit::rig::farewell;
use tokio_util::sync::CancellationToken;

use super::{ask, options, run, told};

const STALLS: &str = r#"
[[rule]]
when.user = "on the side"
reply = [{ text = "Because of the many words of an answer that does not come to its end." }]
fault = { kind = "stall", at = 1200 }
[[rule]]
reply = [{ text = "Done." }]
"#;

// proves FK-13 (part: accounting)
#[tokio::test]
async fn it_ends_at_once_when_it_is_told_to_and_is_paid_for() {
    let rig = Rig::playing(STALLS).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let mut at = None;
    let (heard, mut hears) = tokio::sync::mpsc::channel(64);
    let hear = Box::new(move |event: ModelEvent<'_>| {
        if let ModelEvent::Text(text) = event {
            let _ = heard.try_send(text.to_owned());
        }
    });
    let runtime = rig.runtime().unwrap();
    let asking = runtime.ask(
        agent.id,
        "why?",
        SideQueryOptions {
            cancel,
            hear: Some(hear),
            ..options()
        },
    );
    let stopping = async {
        hears.recv().await.unwrap();
        at = Some(Instant::now());
        token.cancel();
    };
    let (side_answer, ()) = tokio::join!(asking, stopping);
    let side_answer = side_answer.unwrap();
    assert!(
        at.unwrap().elapsed() < Duration::from_secs(1),
        "{:?}",
        at.unwrap().elapsed()
    );
    assert!(
        matches!(side_answer.answer, Err(SideQueryError::Cancelled)),
        "{:?}",
        side_answer.answer
    );
    assert_eq!(side_answer.charges[0].purpose, Purpose::Question);
    assert!(side_answer.charges[0].usage.prompt() > 0);
    told(&mut agent, "go on").await;
    farewell(agent).await;
}

// proves FK-13 (part: accounting)
#[tokio::test]
async fn a_budget_holds_for_side_queries_too() {
    let mut rig = Rig::playing(STALLS).unwrap();
    rig.setup.limits.budget = Budget {
        turns: Some(1),
        ..Budget::default()
    };
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let side_answer = rig
        .runtime()
        .unwrap()
        .ask(agent.id, "why?", options())
        .await
        .unwrap();
    let Err(SideQueryError::Refused(why)) = side_answer.answer else {
        panic!("{:?}", side_answer.answer)
    };
    assert!(why.contains("limited to 1 model calls"), "{why}");
    assert_eq!(
        (side_answer.charges.len(), rig.server.requests().len()),
        (0, 1),
        "nothing was sent"
    );
    farewell(agent).await;
}

/// Fails in a way that no retry mends.
const FAILS: &str = r#"
[[rule]]
when.user = "on the side"
reply = [{ text = "x" }]
fault = { kind = "status", status = 404 }
[[rule]]
reply = [{ text = "Done." }]
"#;

#[tokio::test]
async fn a_fault_of_the_model_is_told_as_such() {
    let rig = Rig::playing(FAILS).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let side_answer = ask(&rig, agent.id, "why?").await;
    assert!(
        matches!(side_answer.answer, Err(SideQueryError::Model(_))),
        "{:?}",
        side_answer.answer
    );
    told(&mut agent, "go on").await;
    farewell(agent).await;
}
