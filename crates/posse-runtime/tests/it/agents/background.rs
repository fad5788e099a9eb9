//! Sub-agents that nobody waits for: how they are launched, and how their ends are told.

use std::collections::BTreeSet;

use posse_port::store::AgentState;
use posse_protocol::{Command, EventKind, MailKind, Outcome, RunKind, RunStatus};
use posse_testkit::rig::{farewell, prompt, until_end};
use uuid::Uuid;

use super::{
    SECOND, count, heard, inbox, last_words, paced, paths, row, rows, sent_by, told_ends, until,
    until_over, until_started, until_state,
};

const BACKGROUND: &str = r#"
[[rule]]
when.agent = "re:^/main/"
delay_ms = 1000
reply = [{ text = "There are three callers." }]
[[rule]]
when.user = "thanks"
reply = [{ text = "You are welcome." }]
[[rule]]
when.user = "task-notification"
delay_ms = 2000
reply = [{ text = "Three, says the scout." }]
[[rule]]
when.tool = "works in the background"
reply = [{ text = "It looks." }]
[[rule]]
reply = [{ tool = "Agent", id = "toolu_scout", input = { description = "Find callers", prompt = "Who calls <task-id>add</task-id>?", run_in_background = true } }]
"#;

// proves BG-05 (part: once; fields)
// proves AG-21 (part: async_launched; the notification; the output file)
// proves AG-09 (part: async_launched)
// proves AG-11 (part: idle)
// proves AG-14 (part: framed)
#[tokio::test]
async fn an_end_in_the_background_begins_another_run_and_is_told_once() {
    let (rig, clock) = paced(BACKGROUND);
    let mut agent = rig.prompted("who calls add?").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.turns, end.text.as_str(), end.live),
        (Outcome::Completed, 2, "It looks.", 1)
    );
    let child = row(&rig, agent.id, "Find callers").await;
    let output = rig
        .setup
        .workspace
        .spill
        .join(format!("{}/{}.output", agent.id, child.agent));
    let launched = last_words(&sent_by(&rig, "/main")[1]);
    for part in [
        "The sub-agent (general-purpose) works in the background: Find callers.\n",
        &format!("agent id: {}\n", child.agent),
        &format!(
            "output file, written while it works: {}\n",
            output.display()
        ),
        "You will get a task-notification",
        "Who calls <task-id>add</task-id>?",
    ] {
        assert!(launched.contains(part), "{part}: {launched}");
    }
    clock.asleep_for(SECOND).await;
    let running = row(&rig, agent.id, "Find callers").await;
    assert_eq!(
        (running.state, running.starter),
        (AgentState::Running, Some(agent.id))
    );
    assert_eq!(
        rig.store.read(agent.id).await.unwrap().record.state,
        AgentState::Idle
    );

    clock.advance(SECOND);
    let (_, over) = until_over(&mut agent, "Find callers").await;
    // Before the starter has said a word, the run is over: state, result and mail came in one step.
    let ended = row(&rig, agent.id, "Find callers").await;
    assert_eq!((ended.state, ended.entries), (AgentState::Completed, 2));
    assert_eq!(ended.ended.unwrap().run, over.run);
    clock.asleep_for(2 * SECOND).await;
    clock.advance(2 * SECOND);
    let (events, end) = until_end(&mut agent).await;
    assert!(events.iter().any(|event| event.kind == EventKind::Started));
    assert_eq!(
        (end.text.as_str(), end.turns, end.live),
        ("Three, says the scout.", 1, 0)
    );

    let told = last_words(&sent_by(&rig, "/main")[2]);
    for part in [
        "<task-notification>\nA sub-agent you started has finished for now.",
        "not a message from the user",
        &format!("<task-id>{}</task-id>", child.agent),
        "<tool-use-id>toolu_scout</tool-use-id>",
        &format!("<output-file>{}</output-file>", output.display()),
        "<status>completed</status>",
        "<summary>Find callers completed</summary>",
        "<result>\nThere are three callers.\n</result>",
        "<usage>",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("<error>"), "{told}");
    assert_eq!(
        (over.status, over.kind, over.call.as_str()),
        (RunStatus::Completed, RunKind::Agent, "toolu_scout")
    );

    agent.handle.send(prompt("thanks")).await.unwrap();
    until_end(&mut agent).await;
    assert_eq!(
        count(
            sent_by(&rig, "/main").last().unwrap(),
            "<task-notification>"
        ),
        1
    );
    let mail = inbox(&rig, agent.id, agent.id).await;
    assert_eq!(
        (mail.len(), mail[0].kind, mail[0].id.uuid()),
        (1, MailKind::Notification, over.run)
    );
    assert_eq!(
        mail[0].shown_in,
        Some(4),
        "in the prompt that began the second run"
    );
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [over]);
    // Nobody tells it again to whoever comes later.
    let id = agent.id;
    farewell(agent).await;
    let mut agent = rig.resumed(id).await.unwrap();
    agent.handle.send(prompt("thanks")).await.unwrap();
    until_end(&mut agent).await;
    assert_eq!(
        count(
            sent_by(&rig, "/main").last().unwrap(),
            "<task-notification>"
        ),
        1
    );
}

// proves AG-21 (part: the output file)
#[tokio::test]
async fn who_cannot_read_files_is_told_of_none() {
    let (mut rig, clock) = paced(BACKGROUND);
    rig.setup.tools.retain(|name| name != "Read");
    let mut agent = rig.prompted("who calls add?").await.unwrap();
    until_end(&mut agent).await;
    let launched = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        launched.contains("You will get a task-notification") && !launched.contains(".output"),
        "{launched}"
    );
    drop(clock);
}

// proves BG-03
#[tokio::test]
async fn an_interrupt_of_the_starter_does_not_stop_what_is_in_the_background() {
    let script = BACKGROUND.replace(
        "when.tool = \"works in the background\"\n",
        "when.tool = \"works in the background\"\ndelay_ms = 5000\n",
    );
    let (rig, clock) = paced(&script);
    let mut agent = rig.prompted("who calls add?").await.unwrap();
    clock.asleep_for(5 * SECOND).await;
    clock.asleep_for(SECOND).await;
    agent.handle.send(Command::Interrupt).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.live), (Outcome::Interrupted, 1));
    assert_eq!(
        row(&rig, agent.id, "Find callers").await.state,
        AgentState::Running
    );
    clock.advance(SECOND);
    let (_, over) = until_over(&mut agent, "Find callers").await;
    assert_eq!(over.status, RunStatus::Completed);
    clock.asleep_for(2 * SECOND).await;
    clock.advance(2 * SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Three, says the scout.");
    assert_eq!(
        paths(&rig).iter().filter(|path| **path != "/main").count(),
        1,
        "nothing was repeated"
    );
}

// proves BG-06
#[tokio::test]
async fn sixty_four_ends_cost_two_turns() {
    let calls = (0..64).map(|number| {
        format!(
            "{{ tool = \"Agent\", input = {{ description = \"no {number}\", prompt = \"Be {number}.\", \
             run_in_background = true }} }}, "
        )
    });
    let script = format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main/", turn = 1 }}
reply = [{{ tool = "Glob", input = {{ pattern = "*" }} }}]
[[rule]]
when = {{ agent = "re:^/main/", user = "re:Be (\\d+)" }}
delay_ms = 1000
reply = [{{ text = "I was {{{{user.1}}}}." }}]
[[rule]]
when.user = "task-notification"
delay_ms = 2000
reply = [{{ text = "I see." }}]
[[rule]]
when.turn = 2
reply = [{{ text = "I wait." }}]
[[rule]]
reply = [{}]
"#,
        calls.collect::<String>()
    );
    let (rig, clock) = paced(&script);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, 64);
    clock.many_asleep_for(SECOND, 64).await;
    clock.advance(SECOND);
    let mut ended = BTreeSet::new();
    while ended.len() < 64 {
        let events = until(&mut agent, |event| super::over(event).is_some()).await;
        ended.insert(super::over(&events[events.len() - 1]).unwrap().task);
    }
    // All are over while the model thinks about the first of them.
    for _ in 0..4 {
        heard(&mut agent).await;
    }
    let (_, end) = tokio::select! {
        () = clock.run_sparing(&[]) => unreachable!(),
        ended = until_end(&mut agent) => ended,
    };
    let turns = end.turns;
    assert!(
        inbox(&rig, agent.id, agent.id)
            .await
            .iter()
            .all(|mail| mail.shown_in.is_some())
    );
    let main = sent_by(&rig, "/main");
    assert!(
        turns <= 2 && main.len() <= 4,
        "{turns} turns, {} requests",
        main.len()
    );
    assert_eq!(count(main.last().unwrap(), "<task-notification>"), 64);
    let told = main.last().unwrap().to_string();
    for number in 0..64 {
        assert_eq!(
            told.matches(&format!("I was {number}.")).count(),
            1,
            "{number}"
        );
    }
    assert_eq!(paths(&rig).len(), main.len() + 2 * 64);
    assert!(
        rows(&rig, agent.id)
            .await
            .iter()
            .all(|row| row.state == AgentState::Completed)
    );
}

// proves BG-09
#[tokio::test]
async fn each_agent_is_told_only_of_what_it_has_started() {
    let script = r#"
[[rule]]
when.agent = "re:^/main/.*/"
reply = [{ text = "I am the grandchild." }]
[[rule]]
when = { agent = "re:^/main/lead", user = "task-notification" }
reply = [{ text = "My child has ended." }]
[[rule]]
when = { agent = "re:^/main/lead", turn = 2 }
reply = [{ text = "I wait." }]
[[rule]]
when.agent = "re:^/main/lead"
reply = [{ tool = "Agent", input = { description = "Grandchild", prompt = "Be.", run_in_background = true } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I am the other." }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "Lead", prompt = "Lead.", name = "lead", run_in_background = true } },
  { tool = "Agent", input = { description = "Other", prompt = "Be.", run_in_background = true } },
]
[[rule]]
reply = [{ text = "I see." }]
"#;
    let (rig, _clock) = paced(script);
    let mut agent = rig.prompted("go").await.unwrap();
    let started = until_started(&mut agent, 3).await;
    let task = |description: &str| -> Uuid {
        started
            .iter()
            .find(|news| news.run.description == description)
            .unwrap()
            .run
            .task
    };
    until_state(&rig, agent.id, "Lead", AgentState::Completed).await;
    until_state(&rig, agent.id, "Other", AgentState::Completed).await;
    while inbox(&rig, agent.id, agent.id)
        .await
        .iter()
        .filter(|mail| mail.shown_in.is_some())
        .count()
        < 2
    {
        agent.events.recv().await.unwrap();
    }
    let lead = row(&rig, agent.id, "Lead").await;
    let of = |ends: Vec<posse_protocol::Notification>| {
        ends.iter().map(|end| end.task).collect::<BTreeSet<_>>()
    };
    assert_eq!(
        of(told_ends(&rig, agent.id, lead.agent).await),
        BTreeSet::from([task("Grandchild")])
    );
    let of_root = of(told_ends(&rig, agent.id, agent.id).await);
    assert_eq!(of_root, BTreeSet::from([task("Lead"), task("Other")]));
    for body in sent_by(&rig, "/main") {
        assert!(!body.to_string().contains("I am the grandchild"), "{body}");
    }
    for body in sent_by(&rig, &lead.path) {
        assert!(!body.to_string().contains("I am the other"), "{body}");
    }
    assert_eq!(
        count(
            sent_by(&rig, &lead.path).last().unwrap(),
            "I am the grandchild."
        ),
        1
    );
}
