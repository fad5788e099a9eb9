//! TaskOutput and Wait: looking at runs, and sleeping until they end.

use posse_port::store::AgentState;
use posse_protocol::{EventKind, MailKind, Outcome};
use posse_runtime::live::handle::Agent;
use posse_testkit::rig::{prompt, until_end};

use super::{SECOND, count, inbox, last_words, paced, sent_by, timed, until};

/// Waits until a tool of this name runs.
async fn calls(agent: &mut Agent, name: &str) {
    let is_it = |event: &posse_protocol::Event| matches!(&event.kind, EventKind::CallStarted { tool, .. } if tool == name);
    until(agent, is_it).await;
}

const LOOKS: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
delay_ms = 90000
reply = [{ text = "Three callers." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Looking." }, { tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when.user = "thanks"
reply = [{ text = "You are welcome." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Find", prompt = "Find.", name = "scout", run_in_background = true } }]
[[rule]]
when.turn = 2
delay_ms = 1000
reply = [{ tool = "TaskOutput", input = { task_id = "scout", block = false } }]
[[rule]]
when.turn = 3
reply = [{ tool = "TaskOutput", input = { task_id = "scout" } }]
[[rule]]
when.turn = 4
reply = [{ tool = "TaskOutput", input = { task_id = "scout", timeout = 500000 } }]
[[rule]]
when.turn = 5
reply = [{ tool = "TaskOutput", input = { task_id = "scout" } }, { tool = "TaskOutput", input = { task_id = "nobody" } }]
[[rule]]
reply = [{ text = "That was all." }]
"#;

// proves BG-10 (part: looking; waiting; delivery)
#[tokio::test]
async fn task_output_looks_or_waits_and_what_it_saw_is_not_told_again() {
    let (rig, clock) = timed(LOOKS);
    let mut agent = rig.prompted("go").await.unwrap();
    clock.asleep_for(90 * SECOND).await;
    clock.asleep_for(SECOND).await;
    clock.advance(SECOND);
    calls(&mut agent, "TaskOutput").await;
    // It looks; then it waits as long as it does if nothing else is said.
    calls(&mut agent, "TaskOutput").await;
    clock.asleep_for(30 * SECOND).await;
    assert_eq!(
        rig.store.read(agent.id).await.unwrap().record.state,
        AgentState::Waiting
    );
    clock.advance(30 * SECOND);
    calls(&mut agent, "TaskOutput").await;
    clock.asleep_for(500 * SECOND).await;
    clock.advance(59 * SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.turns, end.text.as_str(), end.live),
        (Outcome::Completed, 6, "That was all.", 0)
    );
    let main = sent_by(&rig, "/main");
    let running = "(scout, Find) is running. Its output so far, written by a model, not the user:\n\
                   <run-output>\n\
                   Looking.\n\
                   → Glob {\"pattern\":\"*\"}\n\n\
                   </run-output>";
    for at in [2, 3] {
        let told = last_words(&main[at]);
        assert!(
            told.starts_with("agent ") && told.contains(running),
            "{told}"
        );
    }
    let told = last_words(&main[4]);
    assert!(
        told.starts_with("<task-notification>") && told.contains("\nThree callers.\n"),
        "{told}"
    );
    let told = last_words(&main[5]);
    assert!(
        told.contains("(scout, Find) has completed. Its output so far"),
        "{told}"
    );
    assert!(told.contains("There is no run nobody"), "{told}");

    agent.handle.send(prompt("thanks")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "You are welcome.");
    let main = sent_by(&rig, "/main");
    assert_eq!((main.len(), count(&main[6], "<task-notification>")), (7, 1));
    let mail = inbox(&rig, agent.id, agent.id).await;
    assert_eq!(
        (mail.len(), mail[0].kind, mail[0].shown_in),
        (1, MailKind::Notification, Some(8))
    );
}

const THREE: &str = r#"
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when = { agent = "re:^/main/a-" }
delay_ms = 1000
reply = [{ text = "I am a." }]
[[rule]]
when = { agent = "re:^/main/b-" }
delay_ms = 2000
reply = [{ text = "I am b." }]
[[rule]]
when = { agent = "re:^/main/c-" }
delay_ms = 3000
reply = [{ text = "I am c." }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "A", prompt = "Be.", name = "a", run_in_background = true } },
  { tool = "Agent", input = { description = "B", prompt = "Be.", name = "b", run_in_background = true } },
  { tool = "Agent", input = { description = "C", prompt = "Be.", name = "c", run_in_background = true } },
]
[[rule]]
when.turn = 2
reply = [{ tool = "Wait", input = { until = "any", timeout = 70000 } }]
[[rule]]
when.turn = 3
reply = [{ tool = "Wait", input = { ids = ["a", "b", "c"], timeout = 500 } }]
[[rule]]
when.turn = 4
reply = [{ tool = "Wait", input = { ids = ["b", "c"], until = "all", timeout = 71000 } }]
[[rule]]
when.turn = 5
reply = [{ tool = "Wait", input = {} }]
[[rule]]
reply = [{ text = "That was all." }]
"#;

// proves BG-13
#[tokio::test]
async fn wait_sleeps_until_one_or_all_have_ended_or_the_time_is_over() {
    let (rig, clock) = timed(THREE);
    let mut agent = rig.prompted("go").await.unwrap();
    for seconds in [1, 2, 3, 70] {
        clock.asleep_for(seconds * SECOND).await;
    }
    assert_eq!(
        rig.store.read(agent.id).await.unwrap().record.state,
        AgentState::Waiting
    );
    clock.advance(SECOND);
    clock.asleep_for(SECOND / 2).await;
    clock.advance(SECOND / 2);
    clock.asleep_for(71 * SECOND).await;
    clock.advance(SECOND / 2);
    super::until_over(&mut agent, "B").await;
    clock.asleep_for(71 * SECOND).await;
    clock.advance(SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.turns, end.text.as_str(), end.live),
        (6, "That was all.", 0)
    );
    let main = sent_by(&rig, "/main");
    let told: Vec<String> = main[2..].iter().map(last_words).collect();
    let has = |at: usize, there: &[&str], absent: &[&str]| {
        assert!(
            there.iter().all(|part| told[at].contains(part)),
            "{}",
            told[at]
        );
        assert!(
            !absent.iter().any(|part| told[at].contains(part)),
            "{}",
            told[at]
        );
    };
    has(
        0,
        &[
            "I am a.",
            "<status>completed</status>",
            "Still running: agent ",
        ],
        &["I am b.", "The wait"],
    );
    has(
        1,
        &[
            "Already ended and reported: agent ",
            "The wait timed out.",
            "Still running",
        ],
        &["I am"],
    );
    has(2, &["I am b.", "I am c."], &["Still running", "I am a."]);
    has(3, &["There is nothing to wait for"], &["I am"]);
    assert_eq!(main.len(), 6, "no end was told apart");
    assert_eq!(count(&main[5], "<task-notification>"), 3);
    assert!(
        inbox(&rig, agent.id, agent.id)
            .await
            .iter()
            .all(|mail| mail.shown_in.is_some())
    );
}

/// Words interrupt a wait as they do any other tool: at once, and nothing that was waited for is lost.
#[tokio::test]
async fn a_wait_that_is_interrupted_loses_nothing() {
    let (rig, clock) = paced(THREE);
    let mut agent = rig.prompted("go").await.unwrap();
    calls(&mut agent, "Wait").await;
    for seconds in [1, 2, 3] {
        clock.asleep_for(seconds * SECOND).await;
    }
    agent
        .handle
        .send(posse_protocol::Command::Interrupt)
        .await
        .unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.live), (Outcome::Interrupted, 3));
    clock.advance(SECOND);
    super::until_over(&mut agent, "A").await;
    // Its end begins a run, in which the others are waited for.
    rig.server.wait_for_requests(10).await;
    let told = last_words(&sent_by(&rig, "/main")[2]);
    assert!(told.contains("I am a."), "{told}");
}

/// A sub-agent that ends when it is told to, and a main agent that looks in this way.
fn looking(reply: &str) -> String {
    format!(
        r#"
[[rule]]
when.agent = "re:^/main/"
delay_ms = 1000
reply = [{{ text = "Three callers." }}]
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Find", prompt = "Find.", name = "scout", run_in_background = true }} }}]
[[rule]]
when.turn = 2
{reply}
[[rule]]
reply = [{{ text = "That was all." }}]
"#
    )
}

// proves BG-10 (part: delivery)
#[tokio::test]
async fn an_end_is_told_once_however_many_look_at_it() {
    let look = r#"{ tool = "TaskOutput", input = { task_id = "scout" } }, { tool = "Wait", input = { ids = ["scout"] } }, "#;
    let (rig, clock) = paced(&looking(&format!("reply = [{look}{look}]")));
    let mut agent = rig.prompted("go").await.unwrap();
    for tool in ["TaskOutput", "Wait", "TaskOutput", "Wait"] {
        calls(&mut agent, tool).await;
    }
    clock.asleep_for(SECOND).await;
    clock.advance(SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str(), end.turns),
        (Outcome::Completed, "That was all.", 3)
    );
    let main = sent_by(&rig, "/main");
    let told = super::words(main[2]["messages"].as_array().unwrap().last().unwrap());
    assert_eq!(
        told.len(),
        4,
        "each call is answered, and nothing comes beside: {told:?}"
    );
    assert!(
        told.iter().all(|words| words.contains("Three callers.")),
        "{told:?}"
    );
    let mail = inbox(&rig, agent.id, agent.id).await;
    assert_eq!((mail.len(), mail[0].shown_in), (1, Some(4)));
}

// proves BG-10 (part: delivery)
#[tokio::test]
async fn an_end_that_came_before_the_look_is_seen_by_it() {
    for tool in [
        r#"TaskOutput", input = { task_id = "scout" }"#,
        r#"Wait", input = { ids = ["scout"] }"#,
    ] {
        let reply = format!("delay_ms = 2000\nreply = [{{ tool = \"{tool} }}]");
        let (rig, clock) = paced(&looking(&reply));
        let mut agent = rig.prompted("go").await.unwrap();
        clock.asleep_for(SECOND).await;
        clock.asleep_for(2 * SECOND).await;
        clock.advance(SECOND);
        super::until_over(&mut agent, "Find").await;
        clock.advance(SECOND);
        let (_, end) = until_end(&mut agent).await;
        assert_eq!((end.text.as_str(), end.turns), ("That was all.", 3));
        let main = sent_by(&rig, "/main");
        assert_eq!(main.len(), 3);
        let told = super::words(main[2]["messages"].as_array().unwrap().last().unwrap());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("<status>completed</status>") && told[0].contains("Three callers."),
            "{told:?}"
        );
        assert!(inbox(&rig, agent.id, agent.id).await[0].shown_in.is_some());
    }
}
