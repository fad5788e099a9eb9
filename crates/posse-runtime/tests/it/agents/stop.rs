//! Stopping: a run with all that it has started, by an agent or a person; nothing of it is left.

use posse_port::store::AgentState;
use posse_protocol::{AgentId, Command, EventKind, Outcome, RunStatus};
use posse_testkit::rig::{prompt, until_end};
use uuid::Uuid;

use super::{
    SECOND, count, inbox, last_words, paced, paths, pipe, ready, row, rows, sent_by, told_ends,
    until, until_over, until_started, until_state,
};

/// Processes that calls of these agents have started.
fn processes(agents: &[AgentId]) -> usize {
    let markers: Vec<String> = agents
        .iter()
        .map(|agent| format!("POSSE_CALL={agent}"))
        .collect();
    let processes = std::fs::read_dir("/proc").unwrap().filter(|entry| {
        let environment =
            std::fs::read(entry.as_ref().unwrap().path().join("environ")).unwrap_or_default();
        let variables = environment.split(|byte| *byte == 0);
        variables.into_iter().any(|set| {
            markers
                .iter()
                .any(|marker| set.starts_with(marker.as_bytes()))
        })
    });
    processes.count()
}

/// The main agent starts a lead, the lead two others; each of those runs a command that does not end.
const TREE: &str = r#"
[[rule]]
when.agent = "re:^/main/lead-1/one"
reply = [{ text = "I begin." }, { tool = "Bash", input = { command = "setsid sleep 1000 & echo x > one; sleep 1000" } }]
[[rule]]
when.agent = "re:^/main/lead-1/two"
reply = [{ text = "I begin." }, { tool = "Bash", input = { command = "setsid sleep 1000 & echo x > two; sleep 1000" } }]
[[rule]]
when = { agent = "re:^/main/lead", turn = 1 }
reply = [
  { tool = "Agent", input = { description = "One", prompt = "Be.", name = "one", run_in_background = true } },
  { tool = "Agent", input = { description = "Two", prompt = "Be.", name = "two", run_in_background = true } },
]
[[rule]]
when = { agent = "re:^/main/lead", turn = 2 }
reply = [{ text = "I wait." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Lead", prompt = "Lead.", name = "lead", run_in_background = true } }]
[[rule]]
when = { turn = 2 }
delay_ms = 1000
reply = [{ tool = "TaskStop", input = { name = "lead" } }]
[[rule]]
when = { turn = 3 }
reply = [{ tool = "TaskStop", input = { task_id = "lead" } }, { tool = "TaskStop", input = { shell_id = "nothing" } }]
[[rule]]
reply = [{ text = "They are gone." }]
"#;

// proves BG-11 (part: agents; subtree; shell commands; only when gone; else an error)
// proves AG-11 (part: killed)
// proves TU-05 (part: stop)
#[tokio::test]
async fn task_stop_stops_a_tree_and_says_so_when_it_is_gone() {
    let (rig, clock) = paced(TREE);
    let pipes = [pipe(&rig, "one"), pipe(&rig, "two")];
    let mut agent = rig.prompted("go").await.unwrap();
    let started = until_started(&mut agent, 3).await;
    let tree: Vec<AgentId> = started
        .iter()
        .map(|news| AgentId::from(news.run.task))
        .collect();
    for pipe in pipes {
        ready(pipe).await;
    }
    // Each has two that sleep, at least.
    while processes(&tree) < 4 {
        tokio::task::yield_now().await;
    }
    until_state(&rig, agent.id, "Lead", AgentState::Waiting).await;
    clock.asleep_for(SECOND).await;
    clock.advance(SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str(), end.live),
        (Outcome::Completed, "They are gone.", 0)
    );
    assert_eq!(processes(&tree), 0);
    let main = sent_by(&rig, "/main");
    let told = last_words(&main[2]);
    let lead = row(&rig, agent.id, "Lead").await;
    assert_eq!(
        told,
        format!(
            "Stopped with the 2 agents below it: agent {} (lead, Lead). Nothing it had started is \
             left running.",
            lead.agent
        )
    );
    let again = last_words(&main[3]);
    assert!(
        again.starts_with("Nothing was stopped: ")
            && again.contains("was stopped before it was done"),
        "{again}"
    );
    assert!(again.contains("There is no run nothing"), "{again}");
    let states: Vec<AgentState> = rows(&rig, agent.id)
        .await
        .iter()
        .map(|row| row.state)
        .collect();
    assert_eq!(states, [AgentState::Killed; 3]);
    assert!(
        rows(&rig, agent.id)
            .await
            .iter()
            .all(|row| !row.ended.as_ref().unwrap().by_person)
    );
    // Who stops is told by the call; whoever is stopped is told nothing.
    for agent_id in tree.iter().chain([&agent.id]) {
        assert_eq!(inbox(&rig, agent.id, *agent_id).await, []);
    }
    assert_eq!(
        paths(&rig)
            .iter()
            .filter(|path| path.starts_with("/main/"))
            .count(),
        4,
        "{:?}",
        paths(&rig)
    );
}

const ONE: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
delay_ms = 1000
reply = [{ text = "never" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "So far so good." }, { tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "It was stopped." }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "One", prompt = "Be.", run_in_background = true } },
  { tool = "Agent", input = { description = "Two", prompt = "Be.", run_in_background = true } },
  { tool = "Bash", input = { command = "sleep 1000", description = "Three", run_in_background = true } },
]
[[rule]]
reply = [{ text = "They work." }]
"#;

// proves AG-20 (part: killed)
// proves BG-05 (part: killed)
// proves AG-06 (part: cancellation)
#[tokio::test]
async fn a_person_stops_one_run_and_its_starter_is_told() {
    let (rig, clock) = paced(ONE);
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    clock.many_asleep_for(SECOND, 2).await;
    let one = row(&rig, agent.id, "One").await.agent;
    agent
        .handle
        .send(Command::StopRun(one.uuid()))
        .await
        .unwrap();
    let (_, over) = until_over(&mut agent, "One").await;
    assert_eq!(
        (over.status, over.result.as_str()),
        (RunStatus::Killed, "So far so good.")
    );
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.live), ("It was stopped.", 2));
    let told = last_words(sent_by(&rig, "/main").last().unwrap());
    for part in [
        "<status>killed</status>",
        "<result>\nSo far so good.\n</result>",
        "<error>the user stopped it</error>",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let stopped = row(&rig, agent.id, "One").await;
    assert_eq!(
        (stopped.state, stopped.ended.unwrap().by_person),
        (AgentState::Killed, true)
    );
    assert_eq!(
        row(&rig, agent.id, "Two").await.state,
        AgentState::Running,
        "the others go on"
    );

    for nothing in [one.uuid(), Uuid::nil()] {
        agent.handle.send(Command::StopRun(nothing)).await.unwrap();
        let warning = |event: &posse_protocol::Event| matches!(event.kind, EventKind::Warning(_));
        let events = until(&mut agent, warning).await;
        let EventKind::Warning(what) = &events[events.len() - 1].kind else {
            panic!()
        };
        assert_eq!(
            *what,
            format!("{nothing} cannot be stopped: no run has that id")
        );
    }
}

// proves BG-20 (part: one command)
#[tokio::test]
async fn one_command_stops_everything_in_the_background() {
    let (rig, clock) = paced(ONE);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, 3);
    clock.many_asleep_for(SECOND, 2).await;
    agent.handle.send(Command::StopRuns).await.unwrap();
    let mut ended = Vec::new();
    while ended.len() < 3 {
        let event = agent.events.recv().await.unwrap();
        ended.extend(super::over(&event).map(|end| (end.description.clone(), end.status)));
    }
    ended.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = ["One", "Three", "Two"].map(|name| (name.to_owned(), RunStatus::Killed));
    assert_eq!(ended, expected);
    // Nothing begins by it: it is told with the next words.
    let before = paths(&rig).len();
    clock.advance(SECOND);
    agent.handle.send(prompt("still there?")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, 0);
    let main = sent_by(&rig, "/main");
    assert_eq!(
        count(main.last().unwrap(), "<task-notification>"),
        3,
        "each is told once"
    );
    assert_eq!(told_ends(&rig, agent.id, agent.id).await.len(), 3);
    assert_eq!(processes(&[agent.id]), 0);
    assert_eq!(
        paths(&rig).len(),
        before + 1,
        "nobody else asks the model any more"
    );
}

// proves BG-12
// proves AG-05 (part: frozen)
#[tokio::test]
async fn nothing_new_escapes_from_a_tree_that_is_being_stopped() {
    let calls = r#"{ tool = "Agent", input = { description = "More", prompt = "Go on.", run_in_background = true } }, "#;
    let script = format!(
        r#"
[[rule]]
when.agent = "re:^(/[^/]+){{4}}$"
reply = [{{ tool = "Glob", input = {{ pattern = "*" }} }}]
[[rule]]
when.agent = "re:^/main/"
reply = [{}]
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Top", prompt = "Go on.", run_in_background = true }} }}]
[[rule]]
reply = [{{ text = "I see." }}]
"#,
        calls.repeat(8)
    );
    for started in [1, 2, 5, 12] {
        let (rig, _clock) = paced(&script);
        let mut agent = rig.prompted("go").await.unwrap();
        until_started(&mut agent, started).await;
        let top = row(&rig, agent.id, "Top").await.agent;
        // It multiplies for ever, and only a stop ends it.
        agent
            .handle
            .send(Command::StopRun(top.uuid()))
            .await
            .unwrap();
        let (_, over) = until_over(&mut agent, "Top").await;
        assert_eq!(over.status, RunStatus::Killed);
        let rows_then = rows(&rig, agent.id).await;
        for row in &rows_then {
            assert_eq!(row.state, AgentState::Killed, "{row:#?}");
        }
        let of_tree =
            |rig: &posse_testkit::Rig| paths(rig).iter().filter(|path| **path != "/main").count();
        let before = of_tree(&rig);
        agent.handle.send(prompt("still there?")).await.unwrap();
        until_end(&mut agent).await;
        assert_eq!(
            (of_tree(&rig), rows(&rig, agent.id).await.len()),
            (before, rows_then.len())
        );
    }
}

/// An agent can stop what comes from it, and nothing else.
#[tokio::test]
async fn nobody_stops_what_is_not_its_own() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/a-", turn = 1 }
reply = [{ tool = "Glob", input = { pattern = "*" } }]
[[rule]]
when.agent = "re:^/main/a-"
delay_ms = 1000
reply = [{ text = "I was left alone." }]
[[rule]]
when = { agent = "re:^/main/b-", turn = 1 }
reply = [{ tool = "TaskStop", input = { name = "a" } }, { tool = "TaskStop", input = { name = "b" } }]
[[rule]]
when = { agent = "re:^/main/b-", tool = "re:is none of yours.*\n.*is none of yours" }
reply = [{ text = "I may not." }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "A", prompt = "Be.", name = "a", run_in_background = true } },
  { tool = "Agent", input = { description = "B", prompt = "Be.", name = "b" } },
]
[[rule]]
reply = [{ text = "I see." }]
"#;
    let (rig, clock) = paced(script);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.live), (Outcome::Completed, 1));
    assert_eq!(row(&rig, agent.id, "B").await.state, AgentState::Completed);
    clock.advance(SECOND);
    let (_, over) = until_over(&mut agent, "A").await;
    assert_eq!(over.result, "I was left alone.");
}

// proves TU-03 (part: Agent)
#[tokio::test]
async fn an_interrupt_stops_what_is_waited_for() {
    let script = ONE.replace(", run_in_background = true", "");
    let (rig, clock) = paced(&script);
    let mut agent = rig.prompted("go").await.unwrap();
    clock.many_asleep_for(SECOND, 2).await;
    agent.handle.send(Command::Interrupt).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.live), (Outcome::Interrupted, 0));
    let states: Vec<AgentState> = rows(&rig, agent.id)
        .await
        .iter()
        .map(|row| row.state)
        .collect();
    assert_eq!(states, [AgentState::Killed; 2]);
    assert_eq!(inbox(&rig, agent.id, agent.id).await, []);
}

/// The main agent waits for a lead, who has one in the background and a command, and waits for another.
const NESTED: &str = r#"
[[rule]]
when.agent = "re:^/main/lead-1/"
delay_ms = 1000
reply = [{ text = "I am done." }]
[[rule]]
when = { agent = "re:^/main/lead", turn = 1 }
reply = [
  { tool = "Agent", input = { description = "Behind", prompt = "Be.", run_in_background = true } },
  { tool = "Bash", input = { command = "sleep 1000", description = "Sleep", run_in_background = true } },
  { tool = "Agent", input = { description = "Waited for", prompt = "Be." } },
]
[[rule]]
when.agent = "re:^/main/lead"
reply = [{ text = "All of mine are done." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Lead", prompt = "Lead.", name = "lead" } }]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves BG-20 (part: one command)
#[tokio::test]
async fn what_sub_agents_have_in_the_background_is_stopped_too_and_what_is_waited_for_goes_on() {
    let (rig, clock) = paced(NESTED);
    let mut agent = rig.prompted("go").await.unwrap();
    clock.many_asleep_for(SECOND, 2).await;
    let lead = row(&rig, agent.id, "Lead").await.agent;
    while processes(&[lead]) == 0 {
        tokio::task::yield_now().await;
    }
    agent.handle.send(Command::StopRuns).await.unwrap();
    let mut ended = std::collections::BTreeMap::new();
    while ended.len() < 2 {
        let event = agent.events.recv().await.unwrap();
        ended.extend(super::over(&event).map(|end| (end.description.clone(), end.status)));
    }
    let killed = |name: &str| (name.to_owned(), RunStatus::Killed);
    assert_eq!(
        ended,
        std::collections::BTreeMap::from([killed("Behind"), killed("Sleep")])
    );
    assert_eq!(processes(&[lead]), 0);
    assert_eq!(
        row(&rig, agent.id, "Waited for").await.state,
        AgentState::Running
    );
    clock.advance(SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "I see.")
    );
    let told = told_ends(&rig, agent.id, lead).await;
    assert!(
        told.len() == 2 && told.iter().all(|end| end.status == RunStatus::Killed),
        "{told:#?}"
    );
    assert_eq!(
        row(&rig, agent.id, "Lead").await.state,
        AgentState::Completed
    );
}

// proves BG-02 (part: by the user)
#[tokio::test]
async fn whoever_is_waited_for_at_any_depth_moves_to_the_background() {
    let (rig, clock) = paced(&NESTED.replace("sleep 1000", "true"));
    let mut agent = rig.prompted("go").await.unwrap();
    clock.many_asleep_for(SECOND, 2).await;
    agent.handle.send(Command::Detach).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.live), ("I see.", 1));
    until_state(&rig, agent.id, "Lead", AgentState::Waiting).await;
    clock.advance(SECOND);
    let (_, over) = until_over(&mut agent, "Lead").await;
    assert_eq!(
        (over.status, over.result.as_str()),
        (RunStatus::Completed, "All of mine are done.")
    );
    let lead = row(&rig, agent.id, "Lead").await;
    let told = told_ends(&rig, agent.id, lead.agent).await;
    assert_eq!(told.len(), 3, "{told:#?}");
    let below = paths(&rig)
        .iter()
        .filter(|path| path.starts_with("/main/lead-1/"))
        .count();
    assert_eq!(below, 2, "no request was repeated");
    until_end(&mut agent).await;
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [over]);
}

// proves AG-20 (part: killed)
#[tokio::test]
async fn a_person_stops_who_is_waited_for_and_the_call_says_so() {
    let (rig, clock) = paced(
        &ONE.replace(", run_in_background = true", "")
            .replace("sleep 1000", "true"),
    );
    let mut agent = rig.prompted("go").await.unwrap();
    clock.many_asleep_for(SECOND, 2).await;
    let one = row(&rig, agent.id, "One").await.agent;
    agent
        .handle
        .send(Command::StopRun(one.uuid()))
        .await
        .unwrap();
    until_over(&mut agent, "One").await;
    clock.advance(SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "They work.")
    );
    let body = sent_by(&rig, "/main").pop().unwrap();
    let results = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(
        (&results[0]["is_error"], &results[1]["is_error"]),
        (&true.into(), &serde_json::Value::Null)
    );
    let told = &super::words(&body["messages"][2])[0];
    assert!(
        told.contains("was stopped before it was done: the user stopped it"),
        "{told}"
    );
    assert!(
        told.contains("Its output so far") && told.contains("\nSo far so good.\n"),
        "{told}"
    );
    assert_eq!(inbox(&rig, agent.id, agent.id).await, []);
}

/// What the user stopped with a tree, an agent does not bring back.
#[tokio::test]
async fn what_a_person_has_stopped_with_a_tree_is_not_revived() {
    let script = TREE
        .replace("sleep 1000", "true")
        .replace("echo x > one; ", "")
        .replace("echo x > two; ", "");
    let script = script.replace(
        "reply = [{ text = \"I begin.\" }",
        "delay_ms = 3000\nreply = [{ text = \"I begin.\" }",
    );
    let script = script.replace(
        "reply = [{ tool = \"TaskStop\", input = { name = \"lead\" } }]",
        "reply = [{ tool = \"SendMessage\", input = { to = \"one\", message = \"Come back.\" } }]",
    );
    let (rig, clock) = paced(&script);
    let mut agent = rig.prompted("go").await.unwrap();
    clock.many_asleep_for(3 * SECOND, 2).await;
    let lead = row(&rig, agent.id, "Lead").await.agent;
    agent
        .handle
        .send(Command::StopRun(lead.uuid()))
        .await
        .unwrap();
    until_over(&mut agent, "Lead").await;
    clock.asleep_for(SECOND).await;
    clock.advance(SECOND);
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[2]);
    assert!(
        told.contains("user") && told.contains("Start another agent"),
        "{told}"
    );
    let one = row(&rig, agent.id, "One").await;
    assert_eq!(
        (one.state, one.ended.unwrap().by_person),
        (AgentState::Killed, true)
    );
    assert_eq!(inbox(&rig, agent.id, one.agent).await, []);
}
