//! States tell the truth: what a run came to, and what a later run of the same agent comes to.

use posse_port::store::AgentState;
use posse_protocol::{Outcome, PermissionMode, RunStatus};
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::govern::budget::{Budget, Budgets};
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};

use super::{last_words, paths, rig, row, sent_by, timed, told_ends, until_over};
use crate::calls::TIMEOUTS;

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
        told.contains("was stopped by a limit before it was done: it reached its limit of turns"),
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
        told.contains("is paused, and can continue later: ") && told.contains("\nI begin.\n"),
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
        told.contains("has failed: the model declined to continue"),
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

// proves AG-11 (part: paused by an outage)
#[tokio::test]
async fn an_outage_or_a_rate_that_outlasts_the_retries_pauses_a_run() {
    for status in [529, 429] {
        let script = format!(
            "[[rule]]\nwhen.agent = \"re:^/main/\"\nfault = {{ kind = \"status\", status = {status} }}\n{WORKS}"
        );
        let (rig, clock) = timed(&script);
        let (state, told, failed) = tokio::select! {
            came = came_to(&rig) => came,
            () = clock.run_sparing(&TIMEOUTS) => unreachable!("a clock runs for ever"),
        };
        assert_eq!((state, failed), (AgentState::Paused, true), "{status}");
        assert!(
            told.contains("is paused, and can continue later: "),
            "{status}: {told}"
        );
    }
}

const STALLS: &str = r#"
[[rule]]
when.agent = "re:^/main/"
fault = { kind = "stall" }
[[rule]]
when.user = "and now"
reply = [{ text = "I know." }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "It stalled." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", run_in_background = true } }]
[[rule]]
reply = [{ text = "It works." }]
"#;

// proves BG-16 (part: stalls)
#[tokio::test]
async fn an_agent_whose_model_stalls_is_told_of_to_its_starter() {
    let (rig, clock) = timed(STALLS);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.live), ("It works.", 1));
    let stall = posse_model::RetryPolicy::default().stall;
    let time = async {
        for attempt in 1..=2 {
            rig.server.wait_for_requests(2 + attempt).await;
            clock.asleep_for(stall).await;
            clock.advance(stall);
        }
        std::future::pending::<()>().await;
    };
    let (_, over) = tokio::select! {
        over = until_over(&mut agent, "Work") => over,
        () = time => unreachable!("it waits for ever"),
        () = clock.run_sparing(&TIMEOUTS) => unreachable!("a clock runs for ever"),
    };
    assert_ne!(over.status, RunStatus::Completed);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "It stalled.");
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [over]);
}

/// A sub-agent with a model, a mode and a directory of its own, which looks where it is.
const OWN: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "I was in {{tool}}" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { command = "pwd" } }, { tool = "Write", input = { file_path = "made", content = "x" } }]
[[rule]]
when.user = "write"
times = 1
reply = [{ tool = "SendMessage", input = { to = "worker", message = "Where are you?" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", name = "worker", model = "claude-haiku-5-5", cwd = "below" } }]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves TR-02 (part: mode; model; working directory)
#[tokio::test]
async fn an_agent_is_rebuilt_with_its_model_mode_and_directory() {
    let mut rig = rig(OWN).rules(&["Bash(pwd)"], &[]).unwrap();
    let below = rig.work().join("below");
    std::fs::create_dir(&below).unwrap();
    let kinds = built_in().into_iter();
    let kinds = kinds.map(|kind| Definition {
        mode: Some(PermissionMode::DontAsk),
        ..kind
    });
    rig.setup.spawning.types = std::sync::Arc::new(kinds.collect());
    let first = rig.another().unwrap();
    let mut agent = first.start(&rig.profile, rig.setup.clone());
    agent.handle.send(prompt("go")).await.unwrap();
    until_over(&mut agent, "Work").await;
    until_end(&mut agent).await;
    let id = agent.id;
    farewell(agent).await;
    drop(first);
    // Another process, where types have no mode.
    rig.setup.spawning.types = std::sync::Arc::new(built_in().into());
    let mut agent = rig.resumed(id).await.unwrap();
    agent.handle.send(prompt("write")).await.unwrap();
    until_over(&mut agent, "Work").await;
    let own = sent_by(&rig, "/main/worker-1");
    assert_eq!(own.len(), 4);
    for body in &own {
        assert_eq!(body["model"], "claude-haiku-5-5");
    }
    let told = last_words(&own[3]);
    let (pwd, denied) = told.split_once('\n').unwrap();
    assert_eq!(pwd, below.display().to_string());
    assert!(denied.contains("Denied"), "{denied}");
    assert!(!below.join("made").exists());
    let worker = row(&rig, id, "Work").await;
    assert_eq!((worker.mode, worker.cwd), (PermissionMode::DontAsk, below));
}
