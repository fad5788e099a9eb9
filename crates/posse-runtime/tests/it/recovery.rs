//! What a process leaves behind when it is gone: paused runs, open calls, taken-over agents.

use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::store::{AgentState, CallChangeKind, Step};
use posse_protocol::{Command, EventKind, FaultClass, Outcome, PermissionMode};
use posse_runtime::session::start_error::StartError;
use posse_testkit::rig::{farewell, prompt, until_end};
use posse_testkit::{Faulty, Rig, TestClock, scripted};

use crate::calls::TIMEOUTS;

// proves TU-06 (part: paused; failed)
#[tokio::test]
async fn a_fault_that_outlives_the_retries_pauses_the_run_and_it_can_be_continued() {
    let script = r#"
[[rule]]
when.user = "wrong"
fault = { kind = "status", status = 401 }
[[rule]]
times = 35
fault = { kind = "status", status = 529 }
[[rule]]
reply = [{ text = "here again" }]
"#;
    let clock = TestClock::default();
    let server = scripted::play_on(&clock, script).unwrap();
    let rig = Rig::with(server, Arc::new(clock.clone()) as Arc<dyn Clock>).unwrap();
    let run = async {
        let mut agent = rig.prompted("go").await.unwrap();
        let (events, end) = until_end(&mut agent).await;
        let retries = events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Retry(_)))
            .count();
        assert_eq!(retries, 34);
        let Outcome::Paused(fault) = end.outcome else {
            panic!("{:?}", end.outcome)
        };
        assert_eq!((fault.class, fault.status), (FaultClass::Busy, Some(529)));
        let id = agent.id;
        farewell(agent).await;
        assert_eq!(
            rig.store.read(id).await.unwrap().record.state,
            AgentState::Paused
        );
        let mut agent = rig.resumed(id).await.unwrap();
        assert!(agent.unfinished);
        agent.handle.send(Command::Continue).await.unwrap();
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(
            (end.outcome, end.text.as_str()),
            (Outcome::Completed, "here again")
        );

        agent.handle.send(prompt("wrong")).await.unwrap();
        let (_, end) = until_end(&mut agent).await;
        assert!(
            matches!(end.outcome, Outcome::Failed(fault) if fault.class == FaultClass::Authentication)
        );
        farewell(agent).await;
    };
    tokio::select! {
        () = run => {}
        () = clock.run_sparing(&TIMEOUTS) => unreachable!("a clock runs for ever"),
    }
}

/// A process that died between a call's beginning and its end, seen from the next one.
// proves TR-02 (part: open tool calls)
#[tokio::test]
async fn a_call_whose_outcome_is_unknown_is_told_so_and_not_run_again() {
    let script = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "I looked: {{tool}}" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "echo once >> times" } }, { tool = "Bash", input = { command = "echo twice >> times" } }]
"#;
    let mut rig = Rig::playing(script).unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let real = Arc::clone(&rig.store);
    // The store never hears of the first call's end: what a kill -9 looks like to it.
    let dead = |step: &Step| {
        let done = |change: &CallChangeKind| matches!(change, CallChangeKind::Done(_));
        step.calls.iter().any(|call| done(&call.change))
    };
    rig.store = Arc::new(Faulty {
        refuse: Box::new(dead),
        ..Faulty::new(Arc::clone(&real))
    });
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert!(matches!(end.outcome, Outcome::Paused(fault) if fault.class == FaultClass::Store));
    let id = agent.id;
    farewell(agent).await;
    rig.store = real;
    let mut agent = rig.resumed(id).await.unwrap();
    agent.handle.send(prompt("go on")).await.unwrap();
    until_end(&mut agent).await;
    let sent = crate::turns::bodies(&rig).pop().unwrap()["messages"].clone();
    let told = |index: usize| {
        sent[2]["content"][index]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(told(0).starts_with("Outcome unknown"), "{}", told(0));
    assert!(told(1).starts_with("Not run"), "{}", told(1));
    assert_eq!(
        std::fs::read_to_string(rig.work().join("times")).unwrap(),
        "once\n"
    );
}

/// The call that sends the results of recovered calls is in the store while it is made.
// proves FC-04 (part: calls in flight)
#[tokio::test]
async fn the_first_call_after_open_calls_is_reserved() {
    let script = r#"
[[rule]]
when.tool = "re:."
delay_ms = 1000
reply = [{ text = "I see." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch a" } }, { tool = "Bash", input = { command = "touch b" } }]
"#;
    let (mut rig, clock) = crate::agents::paced(script);
    let real = Arc::clone(&rig.store);
    let dead = |step: &Step| {
        let done = |change: &CallChangeKind| matches!(change, CallChangeKind::Done(_));
        step.calls.iter().any(|call| done(&call.change))
    };
    rig.store = Arc::new(Faulty {
        refuse: Box::new(dead),
        ..Faulty::new(Arc::clone(&real))
    });
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let id = agent.id;
    farewell(agent).await;
    rig.store = real;
    let mut agent = rig.resumed(id).await.unwrap();
    let record = || async { rig.store.read(id).await.unwrap().record };
    assert_eq!(record().await.reserved, None, "nothing is sent yet");
    agent.handle.send(Command::Continue).await.unwrap();
    clock.asleep_for(Duration::from_secs(1)).await;
    let reserved = record().await.reserved.expect("the call is in flight");
    assert!(reserved.usage.output > 0, "{reserved:?}");
    clock.advance(Duration::from_secs(1));
    until_end(&mut agent).await;
    assert_eq!(record().await.reserved, None, "and now it is answered");
    farewell(agent).await;
}

// proves TR-03 (part: fenced)
#[tokio::test]
async fn an_agent_that_was_taken_over_stops_and_changes_nothing() {
    let rig = Rig::playing("[[rule]]\nreply = [{ text = \"turn {{turn}}\" }]").unwrap();
    let mut first = rig.prompted("one").await.unwrap();
    until_end(&mut first).await;
    // The same process takes it again, as another host would after a lease ran out.
    let mut second = rig
        .another()
        .unwrap()
        .resume(first.id, None, rig.setup.clone())
        .await
        .unwrap();
    first.handle.send(prompt("stale")).await.unwrap();
    let (_, end) = until_end(&mut first).await;
    assert!(matches!(end.outcome, Outcome::Failed(fault) if fault.class == FaultClass::Fenced));
    assert_eq!(
        rig.server.requests().len(),
        1,
        "a fenced agent calls no model"
    );
    assert!(first.events.recv().await.is_none(), "and ends");
    second.handle.send(prompt("two")).await.unwrap();
    assert_eq!(until_end(&mut second).await.1.text, "turn 2");
}

/// A second one in the same process would take the first's tools for those of a dead process.
#[tokio::test]
async fn an_agent_that_lives_is_not_brought_to_life_twice() {
    let rig = Rig::playing("[[rule]]\nreply = [{ text = \"turn {{turn}}\" }]").unwrap();
    let runtime = rig.runtime().unwrap();
    let mut first = runtime.start(&rig.profile, rig.setup.clone());
    first.handle.send(prompt("one")).await.unwrap();
    until_end(&mut first).await;
    let refused = runtime
        .resume(first.id, None, rig.setup.clone())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(refused, StartError::AlreadyHere { agent } if agent == first.id),
        "{refused:?}"
    );
    first.handle.send(prompt("two")).await.unwrap();
    assert_eq!(
        until_end(&mut first).await.1.text,
        "turn 2",
        "the first one has lost nothing"
    );
    let id = first.id;
    farewell(first).await;
    let mut second = runtime.resume(id, None, rig.setup.clone()).await.unwrap();
    second.handle.send(prompt("three")).await.unwrap();
    assert_eq!(until_end(&mut second).await.1.text, "turn 3");
}

#[tokio::test]
async fn edits_remember_across_processes_what_was_read() {
    let script = r#"
[[rule]]
when.user = "now edit"
when.turn = 3
reply = [{ tool = "Edit", input = { file_path = "a.txt", old_string = "old", new_string = "new" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Read", input = { file_path = "a.txt" } }]
[[rule]]
reply = [{ text = "Tool said: {{tool}}" }]
"#;
    for (changed, expected) in [(false, "new"), (true, "old, and more")] {
        let rig = Rig::playing(script).unwrap();
        let file = rig.file("a.txt", "old").unwrap();
        let mut agent = rig.prompted("read").await.unwrap();
        until_end(&mut agent).await;
        let id = agent.id;
        farewell(agent).await;
        if changed {
            rig.file("a.txt", "old, and more").unwrap();
        }
        let mut agent = rig.resumed(id).await.unwrap();
        agent.handle.send(prompt("now edit")).await.unwrap();
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(end.outcome, Outcome::Completed);
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            expected,
            "{}",
            end.text
        );
    }
}
