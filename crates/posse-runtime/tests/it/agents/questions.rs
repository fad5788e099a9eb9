//! Questions of sub-agents: a person answers them by the agent's id; late answers are reported.

use posse_port::store::{AgentFilter, AgentState, Page};
use posse_protocol::{
    AgentId, Answer, Command, Event, EventKind, PermissionMode, Question, QuestionId,
};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use posse_testkit::Rig;
use posse_testkit::rig::until_end;

use super::{last_words, paced, row, sent_by, until, until_state};

const ASKS: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
delay_ms = 1000
reply = [{ text = "I have asked." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", id = "toolu_touch", input = { command = "touch made" } }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "It has ended." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Touch", prompt = "Touch.", name = "scout", run_in_background = true } }]
[[rule]]
reply = [{ text = "It asks." }]
"#;

/// Up to the sub-agent's question.
async fn asked(rig: &Rig) -> (Agent, AgentId, Question) {
    let mut agent = rig.prompted("go").await.unwrap();
    let events = until(&mut agent, |event| {
        matches!(event.kind, EventKind::ApprovalRequested(_))
    })
    .await;
    let Event {
        agent: who,
        kind: EventKind::ApprovalRequested(question),
    } = events.last().unwrap().clone()
    else {
        panic!()
    };
    (agent, who, *question)
}

fn attended(script: &str) -> (Rig, posse_testkit::TestClock) {
    let (mut rig, clock) = paced(script);
    rig.profile.mode = PermissionMode::Default;
    rig.setup.approver = Approver::FrontEnd;
    (rig, clock)
}

/// The same where questions wait while the session is used, and all time is the test's.
fn while_used(script: &str, patience: std::time::Duration) -> (Rig, posse_testkit::TestClock) {
    let (mut rig, clock) = super::timed(script);
    rig.profile.mode = PermissionMode::Default;
    rig.setup.approver = Approver::WhileUsed(patience);
    (rig, clock)
}

async fn answer(agent: &Agent, (who, question): (AgentId, QuestionId), answer: Answer) {
    agent
        .handle
        .send(Command::Answer {
            agent: who,
            question,
            answer,
        })
        .await
        .unwrap();
}

async fn warning(agent: &mut Agent) -> String {
    let events = until(agent, |event| matches!(event.kind, EventKind::Warning(_))).await;
    let Some(EventKind::Warning(what)) = events.last().map(|event| &event.kind) else {
        panic!()
    };
    what.clone()
}

// proves BG-17
// proves PE-05 (part: its name)
// proves AG-11 (part: waiting on a person)
// proves BG-16 (part: late answers)
#[tokio::test]
async fn a_person_answers_a_sub_agent_and_what_comes_too_late_is_reported() {
    let (rig, clock) = attended(ASKS);
    let (mut agent, who, question) = asked(&rig).await;
    let child = until_state(&rig, agent.id, "Touch", AgentState::Waiting).await;
    assert_eq!(
        (who, question.from.as_deref(), question.tool.as_str()),
        (child.agent, Some("scout"), "Bash")
    );
    assert_eq!(question.call, "toolu_touch");
    // Nobody has asked this.
    let unknown = posse_port::store::question_id(who, "nothing");
    answer(&agent, (who, unknown), Answer::allow()).await;
    let what = warning(&mut agent).await;
    assert!(
        what.contains("too late") && what.contains("there is no question"),
        "{what}"
    );
    assert!(!rig.work().join("made").exists());

    let id = (who, question.id);
    answer(&agent, id, Answer::allow()).await;
    clock.asleep_for(super::SECOND).await;
    assert!(rig.work().join("made").exists());
    // It lives, and asks about this no more.
    answer(&agent, id, Answer::allow()).await;
    let what = warning(&mut agent).await;
    assert!(what.contains("it was answered"), "{what}");
    clock.advance(super::SECOND);
    super::until_over(&mut agent, "Touch").await;
    // It lives no more.
    answer(
        &agent,
        id,
        Answer::Deny {
            message: "no".into(),
            interrupt: false,
        },
    )
    .await;
    assert!(warning(&mut agent).await.contains("it was answered"));
}

#[tokio::test]
async fn a_denial_is_told_to_the_sub_agent() {
    let (rig, clock) = attended(ASKS);
    let (mut agent, who, question) = asked(&rig).await;
    answer(
        &agent,
        (who, question.id),
        Answer::Deny {
            message: "Rather not.".into(),
            interrupt: false,
        },
    )
    .await;
    clock.asleep_for(super::SECOND).await;
    let child = row(&rig, agent.id, "Touch").await;
    let told = &sent_by(&rig, &child.path)[1];
    assert_eq!(last_words(told), "Rather not.");
    clock.advance(super::SECOND);
    super::until_over(&mut agent, "Touch").await;
    assert!(!rig.work().join("made").exists());
}

/// Who is stopped needs no answer any more; who comes late with one is told so.
#[tokio::test]
async fn a_question_of_a_sub_agent_that_is_stopped_is_withdrawn() {
    let (rig, _clock) = attended(ASKS);
    let (mut agent, who, question) = asked(&rig).await;
    agent
        .handle
        .send(Command::StopRun(who.uuid()))
        .await
        .unwrap();
    let withdrawn = EventKind::ApprovalWithdrawn {
        question: question.id,
    };
    let events = until(&mut agent, |event| event.kind == withdrawn).await;
    assert_eq!(events.last().unwrap().agent, who);
    super::until_over(&mut agent, "Touch").await;
    let id = (who, question.id);
    answer(&agent, id, Answer::allow()).await;
    assert!(warning(&mut agent).await.contains("it was withdrawn"));
    assert!(!rig.work().join("made").exists());
}

// proves PE-05 (part: denied when headless)
#[tokio::test]
async fn when_everybody_has_left_a_question_is_a_denial() {
    let (rig, clock) = attended(ASKS);
    let (agent, who, _) = asked(&rig).await;
    let Agent {
        handle, mut events, ..
    } = agent;
    drop(handle);
    let mut denied = false;
    while !denied {
        let event = events.recv().await.unwrap();
        denied = event.agent == who && matches!(event.kind, EventKind::Denied(_));
    }
    drop(clock);
}

/// A question waits as long as the main agent was at work within the given time, and no longer.
// proves QU-03 (part: workers)
#[tokio::test]
async fn a_question_waits_while_the_session_was_used_of_late() {
    let patience = 60 * super::SECOND;
    let (rig, clock) = while_used(ASKS, patience);
    let (mut agent, who, question) = asked(&rig).await;
    let all = AgentFilter::default();
    let all = rig.store.agents(all, Page::all()).await.unwrap();
    let root = all.iter().find(|row| row.agent == agent.id).unwrap();
    let until_ms = root.used_ms + i64::try_from(patience.as_millis()).unwrap();
    assert_eq!(question.until_ms, Some(until_ms));
    clock.asleep_for(patience).await;
    clock.advance(patience);
    clock.asleep_for(super::SECOND).await;
    let child = row(&rig, agent.id, "Touch").await;
    let told = last_words(&sent_by(&rig, &child.path)[1]);
    assert!(told.contains("nobody answered in time"), "{told}");
    clock.advance(super::SECOND);
    super::until_over(&mut agent, "Touch").await;
    assert_eq!(child.agent, who);
    assert!(!rig.work().join("made").exists());
}

// proves QU-03 (part: workers)
#[tokio::test]
async fn a_question_of_a_session_that_nobody_used_of_late_is_denied() {
    let late = "when.agent = \"re:^/main/\"\ndelay_ms = 1000";
    let script = ASKS.replacen("when.agent = \"re:^/main/\"", late, 1);
    let (rig, clock) = while_used(&script, super::SECOND / 2);
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    for _ in ["it asks", "it is denied"] {
        clock.asleep_for(super::SECOND).await;
        clock.advance(super::SECOND);
    }
    super::until_over(&mut agent, "Touch").await;
    let child = row(&rig, agent.id, "Touch").await;
    let told = last_words(&sent_by(&rig, &child.path)[1]);
    assert!(told.contains("nobody answered in time"), "{told}");
    assert!(!rig.work().join("made").exists());
}

/// What a person answers in the middle of a run that is waited for.
#[tokio::test]
async fn a_question_is_answered_while_the_main_agent_waits_for_who_asks() {
    let script = ASKS
        .replace(", run_in_background = true", "")
        .replace("delay_ms = 1000\n", "");
    let (rig, _clock) = attended(&script);
    let (mut agent, who, question) = asked(&rig).await;
    assert_eq!(question.from.as_deref(), Some("scout"));
    let id = (who, question.id);
    answer(&agent, id, Answer::allow()).await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.turns, rig.work().join("made").exists()), (2, true));
}
