//! Places: how many agents work at once, and who comes next.

use posse_port::store::AgentState;
use posse_protocol::{Answer, Command, EventKind, Outcome, PermissionMode};
use posse_runtime::live::setup::Approver;
use posse_testkit::rig::{prompt, until_end};

use super::{SECOND, count, inbox, over, paced, paths, rig, row, rows, sent_by, until_over};

// proves LI-03 (part: running agents; who waits for a child)
// proves AG-11 (part: running; waiting on a child)
#[tokio::test]
async fn who_waits_for_a_child_takes_no_place() {
    let script = r#"
[[rule]]
when.agent = "re:^(/[^/]+){4}$"
delay_ms = 1000
reply = [{ text = "bottom" }]
[[rule]]
when.tool = "bottom"
reply = [{ text = "bottom, it says" }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "depth {{agent}}", prompt = "Go down." } }]
"#;
    let (mut rig, clock) = paced(script);
    rig.setup.spawning.running = 1;
    let mut agent = rig.prompted("go").await.unwrap();
    clock.asleep_for(SECOND).await;
    let states: Vec<AgentState> = rows(&rig, agent.id)
        .await
        .iter()
        .map(|row| row.state)
        .collect();
    assert_eq!(
        states,
        [
            AgentState::Waiting,
            AgentState::Waiting,
            AgentState::Running
        ]
    );
    assert_eq!(
        rig.store.read(agent.id).await.unwrap().record.state,
        AgentState::Waiting
    );
    clock.advance(SECOND);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "bottom, it says")
    );
    assert_eq!(paths(&rig).len(), 7);
}

/// Ten sub-agents in the background, of which each takes a second.
fn ten() -> String {
    let calls = (0..10).map(|number| {
        format!(
            "{{ tool = \"Agent\", input = {{ description = \"no {number}\", prompt = \"Be.\", \
             run_in_background = true }} }}, "
        )
    });
    format!(
        r#"
[[rule]]
when.agent = "re:^/main/"
delay_ms = 1000
reply = [{{ text = "I was." }}]
[[rule]]
when.turn = 1
reply = [{}]
[[rule]]
reply = [{{ text = "I see." }}]
"#,
        calls.collect::<String>()
    )
}

// proves LI-03 (part: running agents; a fair queue)
// proves AG-11 (part: created; running)
#[tokio::test]
async fn more_agents_than_places_work_one_after_another_in_their_order() {
    let (mut rig, clock) = paced(&ten());
    rig.setup.spawning.running = 1;
    let mut agent = rig.prompted("go").await.unwrap();
    // The first may be at work before the last is born: all are there when the main agent's turn is over.
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, 10);
    for number in 0..10 {
        clock.asleep_for(SECOND).await;
        let children = rows(&rig, agent.id).await;
        assert_eq!(children.len(), 10);
        let those = |state: AgentState| children.iter().filter(|row| row.state == state).count();
        let now = (
            those(AgentState::Completed),
            those(AgentState::Running),
            those(AgentState::Created),
        );
        assert_eq!(now, (number, 1, 9 - number));
        let began = paths(&rig).iter().filter(|path| **path != "/main").count();
        assert_eq!(began, number + 1, "one at a time");
        clock.advance(SECOND);
    }
    while inbox(&rig, agent.id, agent.id)
        .await
        .iter()
        .filter(|mail| mail.shown_in.is_some())
        .count()
        < 10
    {
        until_end(&mut agent).await;
    }
    let order: Vec<String> = paths(&rig)
        .into_iter()
        .filter(|path| path != "/main")
        .collect();
    let born: Vec<String> = rows(&rig, agent.id)
        .await
        .into_iter()
        .map(|row| row.path)
        .collect();
    assert_eq!(order, born);
    assert_eq!(
        row(&rig, agent.id, "no 9").await.state,
        AgentState::Completed
    );
}

/// Who waits for its first place can be stopped as well.
#[tokio::test]
async fn those_who_have_not_begun_are_stopped_too() {
    let (mut rig, clock) = paced(&ten());
    rig.setup.spawning.running = 1;
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.live, 10, "the main agent needs no place");
    clock.asleep_for(SECOND).await;
    agent.handle.send(Command::StopRuns).await.unwrap();
    let mut ended = 0;
    while ended < 10 {
        ended += usize::from(over(&agent.events.recv().await.unwrap()).is_some());
    }
    assert!(
        rows(&rig, agent.id)
            .await
            .iter()
            .all(|row| row.state == AgentState::Killed)
    );
    assert_eq!(
        paths(&rig).iter().filter(|path| **path != "/main").count(),
        1,
        "nobody else has begun"
    );
    // The places are free again.
    agent.handle.send(prompt("still there?")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.live), (Outcome::Completed, 0));
    assert_eq!(
        count(
            sent_by(&rig, "/main").last().unwrap(),
            "<task-notification>"
        ),
        10
    );
}

/// One that asks a person, and one that has nothing to ask.
const ASKS: &str = r#"
[[rule]]
when = { agent = "re:^/main/asks", tool = "re:." }
reply = [{ text = "I have asked." }]
[[rule]]
when.agent = "re:^/main/asks"
reply = [{ tool = "Bash", id = "toolu_touch", input = { command = "touch made" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I had a place." }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "Ask", prompt = "Ask.", name = "asks", run_in_background = true } },
  { tool = "Agent", input = { description = "Work", prompt = "Work.", name = "works", run_in_background = true } },
]
[[rule]]
reply = [{ text = "I see." }]
"#;

// proves LI-03 (part: who waits for a person)
#[tokio::test]
async fn who_waits_for_a_person_takes_no_place() {
    let mut rig = rig(ASKS);
    rig.setup.spawning.running = 1;
    rig.profile.mode = PermissionMode::Default;
    rig.setup.approver = Approver::FrontEnd;
    let mut agent = rig.prompted("go").await.unwrap();
    let (mut asked, mut worked) = (None, false);
    while asked.is_none() || !worked {
        let event = agent.events.recv().await.unwrap();
        worked |= over(&event).is_some_and(|end| end.description == "Work");
        if let EventKind::ApprovalRequested(question) = event.kind {
            asked = Some((event.agent, question.id));
        }
    }
    assert_eq!(row(&rig, agent.id, "Ask").await.state, AgentState::Waiting);
    let (who, question) = asked.unwrap();
    let answer = Answer::allow();
    let answer = Command::Answer {
        agent: who,
        question,
        answer,
    };
    agent.handle.send(answer).await.unwrap();
    let (_, end) = until_over(&mut agent, "Ask").await;
    assert_eq!(end.result, "I have asked.");
}
