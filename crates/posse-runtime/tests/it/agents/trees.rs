//! Trees of agents: how deep they go, and that nobody is done before its children.

use posse_port::store::AgentState;
use posse_protocol::{AgentId, Outcome, RunStatus};
use posse_testkit::rig::until_end;

use super::{
    SECOND, inbox, last_words, offered, paced, paths, rig, row, rows, sent_by, told_ends,
    until_over, until_state,
};

// proves LI-03 (part: depth)
// proves AG-05 (part: depth)
#[tokio::test]
async fn the_fourth_level_has_no_agent_tool() {
    let script = r#"
[[rule]]
when.tool = "no tool Agent"
reply = [{ text = "I am the bottom." }]
[[rule]]
when.tool = "the bottom"
reply = [{ text = "It says: I am the bottom." }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "below {{agent}}", prompt = "Go down." } }]
"#;
    let rig = rig(script);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "It says: I am the bottom.")
    );
    let levels = [
        "/main",
        "/main/general-purpose-1",
        "/main/general-purpose-1/general-purpose-1",
    ];
    let bottom = format!("{}/general-purpose-1", levels[2]);
    for level in levels {
        assert!(
            offered(&sent_by(&rig, level)[0]).contains(&"Agent"),
            "{level}"
        );
    }
    let own = &sent_by(&rig, &bottom);
    let tools = offered(&own[0]);
    assert!(
        !tools.contains(&"Agent") && tools.contains(&"SendMessage") && tools.contains(&"Bash"),
        "{tools:?}"
    );
    assert!(last_words(&own[1]).contains("there is no tool Agent; there are "));
    let rows = rows(&rig, agent.id).await;
    assert_eq!(rows.len(), 3);
    let parents: Vec<AgentId> = rows
        .iter()
        .map(|row| row.origin.as_ref().unwrap().parent)
        .collect();
    assert_eq!(parents, [agent.id, rows[0].agent, rows[1].agent]);
    assert_eq!(paths(&rig).len(), 8);
}

// proves AG-11 (part: completed; running; waiting on a child)
// proves BG-05 (part: for its starter)
#[tokio::test]
async fn a_sub_agent_is_not_completed_while_what_it_has_started_runs() {
    let script = r#"
[[rule]]
when.agent = "re:^/main/.*/"
delay_ms = 1000
reply = [{ text = "I am the grandchild." }]
[[rule]]
when = { agent = "re:^/main/", user = "task-notification" }
delay_ms = 2000
reply = [{ text = "Now I am done." }]
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "Agent", input = { description = "Grandchild", prompt = "Be.", run_in_background = true } }]
[[rule]]
when = { agent = "re:^/main/" }
reply = [{ text = "I have started one." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Child", prompt = "Lead.", run_in_background = true } }]
[[rule]]
reply = [{ text = "I see." }]
"#;
    let (rig, clock) = paced(script);
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    clock.asleep_for(SECOND).await;
    let child = until_state(&rig, agent.id, "Child", AgentState::Waiting).await;
    assert_eq!((child.ended, child.entries), (None, 4));
    assert_eq!(inbox(&rig, agent.id, agent.id).await, []);
    clock.advance(SECOND);
    let (_, over) = until_over(&mut agent, "Grandchild").await;
    assert_eq!(
        row(&rig, agent.id, "Grandchild").await.starter,
        Some(child.agent)
    );
    clock.asleep_for(2 * SECOND).await;
    assert_eq!(
        row(&rig, agent.id, "Child").await.state,
        AgentState::Running
    );
    clock.advance(2 * SECOND);
    let (_, ended) = until_over(&mut agent, "Child").await;
    assert_eq!(
        (ended.status, ended.result.as_str()),
        (RunStatus::Completed, "Now I am done.")
    );
    until_end(&mut agent).await;
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [ended]);
    assert_eq!(told_ends(&rig, agent.id, child.agent).await, [over]);
    assert_eq!(
        row(&rig, agent.id, "Child").await.state,
        AgentState::Completed
    );
    assert_eq!(sent_by(&rig, &child.path).len(), 3);
}
