//! "Always": rules that come with an answer.

use posse_protocol::{
    AcceptedRules, Answer, Command, EventKind, PermissionMode, Question, RuleScope, Suggestion,
};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use posse_testkit::Rig;
use posse_testkit::rig::until_end;

use super::{rig, until};

/// A sub-agent runs a command, and then its starter does: the same, and another.
const TWO: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "Made." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Touch", prompt = "Touch.", name = "scout", run_in_background = false } }]
[[rule]]
when.turn = 2
reply = [{ tool = "Bash", input = { command = "rm made; touch made" } }]
[[rule]]
when.turn = 3
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

/// The next question, with whom to answer.
async fn asked(agent: &mut Agent) -> (posse_protocol::AgentId, Question) {
    let is_asked = |kind: &EventKind| matches!(kind, EventKind::ApprovalRequested(_));
    let events = until(agent, |event| is_asked(&event.kind)).await;
    let event = events.last().unwrap();
    let EventKind::ApprovalRequested(question) = &event.kind else {
        panic!()
    };
    (event.agent, (**question).clone())
}

async fn begun() -> (Rig, Agent) {
    let mut rig = rig(TWO);
    rig.profile.mode = PermissionMode::Default;
    rig.setup.approver = Approver::FrontEnd;
    let agent = rig.prompted("go").await.unwrap();
    (rig, agent)
}

async fn answer(
    agent: &Agent,
    (who, question): (posse_protocol::AgentId, Question),
    rules: &[&str],
) {
    let always = (!rules.is_empty()).then(|| AcceptedRules {
        rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        scope: RuleScope::Session,
    });
    let command = Command::Answer {
        agent: who,
        question: question.id,
        answer: Answer::Allow {
            input: None,
            always,
        },
    };
    agent.handle.send(command).await.unwrap();
}

fn command(question: &Question) -> &str {
    question.input.get()
}

// proves QU-07 (part: all its agents; never wider)
#[tokio::test]
async fn a_rule_that_a_sub_agents_answer_brings_holds_for_all_agents() {
    let (_rig, mut agent) = begun().await;
    let first = asked(&mut agent).await;
    let rules = vec!["Bash(touch made)".to_owned()];
    assert_eq!(first.1.suggestions[0], Suggestion { rules });
    answer(&agent, first, &["Bash(touch made)"]).await;
    let second = asked(&mut agent).await;
    assert!(command(&second.1).contains("rm made"), "{second:?}");
    answer(&agent, second, &[]).await;
    // The third is not asked about.
    let (events, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Done.");
    let asks =
        |event: &&posse_protocol::Event| matches!(event.kind, EventKind::ApprovalRequested(_));
    assert_eq!(events.iter().find(asks), None);
}

// proves QU-07 (part: never wider)
#[tokio::test]
async fn a_rule_that_was_not_suggested_is_refused() {
    let (_rig, mut agent) = begun().await;
    let first = asked(&mut agent).await;
    answer(&agent, first, &["Bash(*)"]).await;
    let is_warning = |kind: &EventKind| matches!(kind, EventKind::Warning(_));
    let events = until(&mut agent, |event| is_warning(&event.kind)).await;
    let said = format!("{:?}", events.last().unwrap());
    assert!(said.contains("Bash(*) was not suggested"), "{said}");
    let second = asked(&mut agent).await;
    assert!(command(&second.1).contains("rm made"), "{second:?}");
    answer(&agent, second, &[]).await;
    let third = asked(&mut agent).await;
    assert!(command(&third.1).contains("touch made"), "{third:?}");
    answer(&agent, third, &[]).await;
    assert_eq!(until_end(&mut agent).await.1.text, "Done.");
}
