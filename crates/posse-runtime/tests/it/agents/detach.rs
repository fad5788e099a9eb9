//! A sub-agent that is waited for moves to the background and goes on: nothing is begun again.

use posse_port::store::AgentState;
use posse_protocol::{Command, Outcome, RunChange, RunStatus};
use posse_runtime::live::handle::Agent;
use posse_testkit::Rig;
use posse_testkit::clock::TestClock;
use posse_testkit::rig::until_end;

use super::{
    SECOND, last_words, news, paced, paths, row, sent_by, timed, told_ends, until, until_over,
    until_started,
};

const SLOW: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
delay_ms = 500000
reply = [{ text = "There are three callers." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Looking." }, { tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "Three, says the scout." }]
[[rule]]
when.tool = "works in the background"
reply = [{ text = "It looks on." }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "Find callers", prompt = "Who calls add?" } }]
"#;

/// It was moved while its second request was on the way; `left` from now on that is answered.
async fn goes_on(rig: &Rig, clock: &TestClock, mut agent: Agent, task: uuid::Uuid, left: u32) {
    let detached = |event: &posse_protocol::Event| {
        news(event).is_some_and(|news| news.what == RunChange::Detached)
    };
    let events = until(&mut agent, detached).await;
    assert_eq!(news(&events[events.len() - 1]).unwrap().run.task, task);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str(), end.live),
        (Outcome::Completed, "It looks on.", 1)
    );
    let launched = last_words(&sent_by(rig, "/main")[1]);
    assert!(
        launched.contains(&format!("agent id: {task}\n")),
        "{launched}"
    );
    assert!(launched.contains("Who calls add?"), "{launched}");
    let child = row(rig, agent.id, "Find callers").await;
    assert_eq!(
        (child.agent.uuid(), child.state),
        (task, AgentState::Running)
    );
    let output = rig
        .setup
        .workspace
        .spill
        .join(format!("{}/{task}.output", agent.id));
    let before = "Looking.\n→ Glob {\"pattern\":\"*\"}\n";
    assert_eq!(
        std::fs::read_to_string(&output).unwrap(),
        before,
        "it is read while it runs"
    );

    clock.advance(left * SECOND);
    let (_, over) = until_over(&mut agent, "Find callers").await;
    assert_eq!((over.task, over.status), (task, RunStatus::Completed));
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Three, says the scout.");
    assert_eq!(told_ends(rig, agent.id, agent.id).await, [over]);
    let own = "/main/general-purpose-1";
    assert_eq!(
        paths(rig),
        ["/main", own, own, "/main", "/main"],
        "no request was repeated"
    );
    assert_eq!(
        std::fs::read_to_string(&output).unwrap(),
        format!("{before}There are three callers.\n")
    );
    let child = row(rig, agent.id, "Find callers").await;
    assert_eq!(
        (child.state, child.entries, child.starter),
        (AgentState::Completed, 4, Some(agent.id))
    );
}

// proves BG-02 (part: by the user)
// proves BG-18 (part: written; continues)
#[tokio::test]
async fn a_person_moves_it_at_any_moment() {
    let (rig, clock) = paced(SLOW);
    let mut agent = rig.prompted("who calls add?").await.unwrap();
    let task = until_started(&mut agent, 1).await[0].run.task;
    clock.asleep_for(500 * SECOND).await;
    agent.handle.send(Command::Detach).await.unwrap();
    goes_on(&rig, &clock, agent, task, 500).await;
}

// proves BG-02 (part: by itself)
#[tokio::test]
async fn it_moves_by_itself_after_a_while() {
    let (mut rig, clock) = timed(SLOW);
    rig.setup.spawning.auto_background = Some(120 * SECOND);
    let mut agent = rig.prompted("who calls add?").await.unwrap();
    let task = until_started(&mut agent, 1).await[0].run.task;
    clock.asleep_for(120 * SECOND).await;
    clock.asleep_for(500 * SECOND).await;
    clock.advance(120 * SECOND);
    goes_on(&rig, &clock, agent, task, 380).await;
}

#[tokio::test]
async fn nothing_moves_by_itself_unless_it_is_asked_for() {
    let (rig, clock) = timed(SLOW);
    let mut agent = rig.prompted("who calls add?").await.unwrap();
    clock.asleep_for(500 * SECOND).await;
    clock.advance(499 * SECOND);
    clock.advance(SECOND);
    let (_, over) = until_over(&mut agent, "Find callers").await;
    assert_eq!(over.status, RunStatus::Completed);
    rig.server.wait_for_requests(4).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.starts_with("The sub-agent (general-purpose) has completed."),
        "{told}"
    );
}
