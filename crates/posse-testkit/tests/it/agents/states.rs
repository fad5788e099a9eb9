//! States tell the truth: what a run came to, and what a later run of the same agent comes to.

use posse_port::store::AgentState;
use posse_protocol::{Outcome, RunStatus};
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::govern::budget::{Budget, Budgets};
use posse_testkit::Rig;
use posse_testkit::rig::{prompt, until_end};

use super::{last_words, paths, rig, row, sent_by, told_ends, until_over};

const WORKS: &str = r#"
[[rule]]
when = { agent = "re:^/main/", user = "more" }
reply = [{ text = "More is done." }]
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "All is done." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I begin." }, { tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when.user = "write"
times = 1
reply = [{ tool = "SendMessage", input = { to = "worker", message = "Do more." } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", name = "worker" } }]
[[rule]]
reply = [{ text = "I see." }]
"#;

/// The sub-agent's state, and what the main agent is told of it.
async fn came_to(rig: &Rig) -> (AgentState, String, bool) {
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let body = &sent_by(rig, "/main")[1];
    let failed = body["messages"][2]["content"][0]["is_error"] == true;
    (
        row(rig, agent.id, "Work").await.state,
        last_words(body),
        failed,
    )
}

// proves AG-11 (part: completed; partial; failed; paused by a budget)
// proves AG-09 (part: failures)
#[tokio::test]
async fn a_limit_makes_a_run_partial_and_a_budget_pauses_it() {
    let mut short = rig(WORKS);
    let kinds = built_in().into_iter();
    let kinds = kinds.map(|kind| Definition {
        max_turns: Some(1),
        ..kind
    });
    short.setup.spawning.types = std::sync::Arc::new(kinds.collect());
    let (state, told, failed) = came_to(&short).await;
    assert_eq!((state, failed), (AgentState::Partial, false));
    assert!(
        told.contains("was stopped by a limit before it was done: it reached its number of turns"),
        "{told}"
    );
    assert!(told.contains("\nI begin.\n"), "{told}");

    let mut poor = rig(WORKS);
    let alone = Budget {
        turns: Some(1),
        ..Budget::default()
    };
    poor.setup.spawning.budgets = Budgets {
        alone,
        ..Budgets::default()
    };
    let (state, told, failed) = came_to(&poor).await;
    assert_eq!((state, failed), (AgentState::Paused, true));
    assert!(
        told.contains("is paused, and can go on later: ") && told.contains("\nI begin.\n"),
        "{told}"
    );

    let (state, told, failed) = came_to(&rig(WORKS)).await;
    assert_eq!((state, failed), (AgentState::Completed, false));
    assert!(
        told.contains("has completed.") && told.contains("\nAll is done.\n"),
        "{told}"
    );

    let declined = WORKS.replace(
        "reply = [{ text = \"All is done.\" }]",
        "reply = [{ text = \"No.\" }]\nstop = \"refusal\"",
    );
    let (state, told, failed) = came_to(&rig(&declined)).await;
    assert_eq!((state, failed), (AgentState::Failed, true));
    assert!(
        told.contains("has failed: the model declined to go on"),
        "{told}"
    );
}

// proves AG-11 (part: a new run)
#[tokio::test]
async fn reviving_an_agent_that_has_ended_is_a_new_run() {
    let rig = rig(WORKS);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, first) = until_over(&mut agent, "Work").await;
    until_end(&mut agent).await;
    agent.handle.send(prompt("write")).await.unwrap();
    let (_, second) = until_over(&mut agent, "Work").await;
    assert_eq!(
        (first.status, second.status),
        (RunStatus::Completed, RunStatus::Completed)
    );
    assert_eq!(
        (first.result.as_str(), second.result.as_str()),
        ("All is done.", "More is done.")
    );
    assert_eq!(first.task, second.task);
    assert_ne!(first.run, second.run);
    let mut last = until_end(&mut agent).await.1;
    while told_ends(&rig, agent.id, agent.id).await.is_empty()
        || !last_words(sent_by(&rig, "/main").last().unwrap()).contains("More is done.")
    {
        last = until_end(&mut agent).await.1;
    }
    assert_eq!(last.outcome, Outcome::Completed);
    // The first was waited for; the second is told by mail, once.
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [second]);
    let own = sent_by(&rig, "/main/worker-1");
    assert_eq!(
        (own.len(), own[2]["messages"].as_array().unwrap().len()),
        (3, 5),
        "{:?}",
        paths(&rig)
    );
    assert!(last_words(&own[2]).contains("Do more."));
}
