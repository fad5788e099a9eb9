//! Plan mode of a main agent: how it begins and ends, and what becomes of a plan.

use posse_port::store::{Op, Order, Page, QuestionFilter, QuestionState};
use posse_protocol::{
    AgentId, Answer, Answerer, Command, Event, EventKind, GivenAnswer, ListId, PermissionMode,
    Question, QuestionKind,
};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};

use crate::agents::{last_words, offered, sent_by, until};
use crate::teams::all_words;

/// It plans, and changes something before and after its plan is approved.
const PLANS: &str = r#"
[[rule]]
when = { turn = 1 }
reply = [{ tool = "Write", input = { file_path = "early", content = "x" } }]
[[rule]]
when = { turn = 2 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
[[rule]]
when = { tool = "has not approved your plan" }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Test. 2. Build." } }]
[[rule]]
when = { tool = "approved" }
times = 1
reply = [{ tool = "Write", input = { file_path = "late", content = "x" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

fn attended(script: &str, mode: PermissionMode) -> Rig {
    let mut rig = Rig::playing(script).unwrap().agents();
    rig.profile.mode = mode;
    rig.setup.approver = Approver::FrontEnd;
    rig
}

/// The next question of any agent.
async fn asked(agent: &mut Agent) -> (AgentId, Question) {
    let asks = |event: &Event| matches!(event.kind, EventKind::ApprovalRequested(_));
    let event = until(agent, asks).await.pop().unwrap();
    let EventKind::ApprovalRequested(question) = event.kind else {
        panic!()
    };
    (event.agent, *question)
}

async fn answer(agent: &Agent, (who, question): &(AgentId, Question), answer: Answer) {
    let (agent_id, question) = (*who, question.id);
    let command = Command::Answer {
        agent: agent_id,
        question,
        answer,
    };
    agent.handle.send(command).await.unwrap();
}

fn approve(plan: Option<&str>, mode: Option<PermissionMode>) -> Answer {
    Answer::Approve {
        plan: plan.map(str::to_owned),
        mode,
    }
}

fn deny(message: &str) -> Answer {
    Answer::Deny {
        message: message.into(),
        interrupt: false,
    }
}

async fn mode(rig: &Rig, agent: AgentId) -> PermissionMode {
    rig.store.read(agent).await.unwrap().record.mode
}

/// The note that keeps the plan, with its author.
async fn kept(rig: &Rig, root: AgentId) -> Option<(String, String)> {
    let list = ListId {
        realm: root.uuid().into(),
        team: None,
    };
    let notes = rig.store.notes(list, Page::all()).await.unwrap();
    let plan = notes.into_iter().find(|note| note.name.as_str() == "plan");
    plan.map(|note| (note.text, note.author))
}

fn told(rig: &Rig) -> String {
    last_words(sent_by(rig, "/main").last().unwrap())
}

// proves PM-01 (part: nothing changes; told)
// proves PM-02 (part: feedback; mode; kept)
#[tokio::test]
async fn nothing_is_changed_until_a_person_approves_the_plan_and_chooses_a_mode() {
    let rig = attended(PLANS, PermissionMode::Plan);
    let mut agent = rig.prompted("build").await.unwrap();
    let root = agent.id;
    let first = asked(&mut agent).await;
    assert_eq!(
        (first.0, first.1.kind, first.1.tool.as_str()),
        (root, QuestionKind::Plan, "ExitPlanMode")
    );
    let requests = sent_by(&rig, "/main");
    let begun = all_words(&requests[0]);
    assert!(begun.contains("You are in plan mode"), "{begun}");
    assert!(last_words(&requests[1]).contains("plan mode is on"));
    answer(&agent, &first, deny("Write tests first.")).await;
    let second = asked(&mut agent).await;
    assert_eq!(second.1.input.get(), r#"{"plan":"1. Test. 2. Build."}"#);
    let feedback = told(&rig);
    assert!(
        feedback.contains("has not approved") && feedback.contains("Write tests first."),
        "{feedback}"
    );
    assert_eq!(
        (mode(&rig, root).await, kept(&rig, root).await),
        (PermissionMode::Plan, None)
    );
    let accept = approve(None, Some(PermissionMode::AcceptEdits));
    answer(&agent, &second, accept).await;
    let (events, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Done.");
    let changed = EventKind::Mode(PermissionMode::AcceptEdits);
    assert!(events.iter().any(|event| event.kind == changed));
    assert!(!rig.work().join("early").exists() && rig.work().join("late").exists());
    let plan = ("1. Test. 2. Build.".to_owned(), "/main".to_owned());
    assert_eq!(kept(&rig, root).await, Some(plan));
    assert_eq!(mode(&rig, root).await, PermissionMode::AcceptEdits);
    let filter = QuestionFilter {
        realm: Some(root.uuid().into()),
        ..QuestionFilter::default()
    };
    let questions = rig.store.questions(filter, Page::all()).await.unwrap();
    let states: Vec<_> = questions.iter().map(|record| record.state).collect();
    assert_eq!(states, [QuestionState::Done, QuestionState::Done]);
    farewell(agent).await;
}

// proves PM-02 (part: edits)
#[tokio::test]
async fn a_person_may_approve_another_text_and_then_that_is_the_plan() {
    for edits in [
        approve(Some("1. Only test."), None),
        Answer::Allow {
            input: Some(posse_protocol::RawJson::parse(r#"{"plan":"1. Only test."}"#).unwrap()),
            always: None,
        },
    ] {
        let rig = attended(PLANS, PermissionMode::Plan);
        let mut agent = rig.prompted("build").await.unwrap();
        let question = asked(&mut agent).await;
        answer(&agent, &question, edits).await;
        // In mode default, which it continues in, a person is asked about the edit.
        let write = asked(&mut agent).await;
        assert_eq!(write.1.tool, "Write");
        let told = told(&rig);
        assert!(
            told.contains("has edited your plan") && told.ends_with("1. Only test."),
            "{told}"
        );
        let text = kept(&rig, agent.id).await.map(|plan| plan.0);
        assert_eq!(text.as_deref(), Some("1. Only test."));
        assert_eq!(mode(&rig, agent.id).await, PermissionMode::Default);
        answer(&agent, &write, deny("no")).await;
        until_end(&mut agent).await;
        farewell(agent).await;
    }
}

// proves PM-02 (part: mode)
#[tokio::test]
async fn an_approval_does_not_give_more_than_the_session_had() {
    let rig = attended(PLANS, PermissionMode::Plan);
    let mut agent = rig.prompted("build").await.unwrap();
    let question = asked(&mut agent).await;
    let all = approve(None, Some(PermissionMode::BypassPermissions));
    answer(&agent, &question, all).await;
    let write = asked(&mut agent).await;
    assert_eq!(write.1.tool, "Write");
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::Default);
    answer(&agent, &write, deny("no")).await;
    until_end(&mut agent).await;
    farewell(agent).await;
}

/// It begins plan mode, and would change something in the same breath.
const ENTERS: &str = r#"
[[rule]]
when = { turn = 1 }
reply = [
  { tool = "EnterPlanMode", input = {} },
  { tool = "Write", input = { file_path = "early", content = "x" } },
]
[[rule]]
when = { turn = 2 }
reply = [{ tool = "EnterPlanMode", input = {} }]
[[rule]]
when = { turn = 3 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
[[rule]]
when = { turn = 4 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

// proves PM-01 (part: asked; already; nothing changes)
// proves PM-02 (part: mode)
#[tokio::test]
async fn plan_mode_begins_if_a_person_agrees_and_ends_as_it_was_before() {
    let rig = attended(ENTERS, PermissionMode::AcceptEdits);
    let mut agent = rig.prompted("build").await.unwrap();
    let enter = asked(&mut agent).await;
    assert_eq!(
        (enter.1.kind, enter.1.tool.as_str()),
        (QuestionKind::Permission, "EnterPlanMode")
    );
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::AcceptEdits);
    answer(
        &agent,
        &enter,
        Answer::Allow {
            input: None,
            always: None,
        },
    )
    .await;
    let plan = asked(&mut agent).await;
    assert_eq!(plan.1.kind, QuestionKind::Plan);
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::Plan);
    assert!(
        !rig.work().join("early").exists(),
        "not even in the same reply"
    );
    let requests = sent_by(&rig, "/main");
    let results: Vec<String> = requests[1..].iter().map(all_words).collect();
    assert!(results[0].contains("You are in plan mode") && results[0].contains("plan mode is on"));
    assert!(last_words(&requests[2]).starts_with("Nothing changes."));
    answer(
        &agent,
        &plan,
        Answer::Allow {
            input: None,
            always: None,
        },
    )
    .await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Done.");
    assert!(
        told(&rig).contains("you are not in plan mode"),
        "{}",
        told(&rig)
    );
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::AcceptEdits);
    farewell(agent).await;
}

// proves PM-01 (part: asked)
#[tokio::test]
async fn plan_mode_does_not_begin_if_a_person_refuses_or_nobody_is_there() {
    let rig = attended(ENTERS, PermissionMode::AcceptEdits);
    let mut agent = rig.prompted("build").await.unwrap();
    let enter = asked(&mut agent).await;
    answer(&agent, &enter, deny("Just do it.")).await;
    until(&mut agent, |event| {
        matches!(event.kind, EventKind::CallDone { .. })
    })
    .await;
    assert!(rig.work().join("early").exists());
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::AcceptEdits);
    drop(agent);
    let mut rig = attended(ENTERS, PermissionMode::BypassPermissions);
    rig.setup.approver = Approver::Nobody;
    let mut agent = rig.prompted("build").await.unwrap();
    until_end(&mut agent).await;
    assert_eq!(
        mode(&rig, agent.id).await,
        PermissionMode::BypassPermissions
    );
    farewell(agent).await;
}

// proves PM-02 (part: nobody)
#[tokio::test]
async fn with_nobody_there_the_plan_is_the_answer() {
    let mut rig = attended(PLANS, PermissionMode::Plan);
    rig.setup.approver = Approver::Nobody;
    let mut agent = rig.prompted("build").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.denials.len()), ("Done.", 2));
    let told = told(&rig);
    assert!(
        told.contains("no one is available to approve") && told.contains("as your answer"),
        "{told}"
    );
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::Plan);
    farewell(agent).await;
}

// proves PM-02 (part: edits; mode)
#[tokio::test]
async fn an_answer_from_another_process_is_heard_and_carried_out() {
    let mut rig = attended(PLANS, PermissionMode::Plan);
    rig.setup.approver = Approver::Anyone(std::time::Duration::from_secs(600));
    let mut agent = rig.prompted("build").await.unwrap();
    let (_, question) = asked(&mut agent).await;
    let root = agent.id;
    let given = GivenAnswer {
        answer: approve(Some("1. Only test."), Some(PermissionMode::AcceptEdits)),
        by: Answerer::Person,
    };
    let op = Op::Answer {
        question: question.id,
        answer: Box::new(given),
    };
    let order = Order {
        realm: root.uuid().into(),
        ops: vec![op],
        at_ms: 1,
    };
    let elsewhere = rig.place().open().unwrap();
    let done = elsewhere.operate(order).await.unwrap();
    assert!(done[0].is_ok(), "{done:?}");
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Done.");
    assert!(rig.work().join("late").exists());
    let text = kept(&rig, root).await.map(|plan| plan.0);
    assert_eq!(text.as_deref(), Some("1. Only test."));
    assert_eq!(mode(&rig, root).await, PermissionMode::AcceptEdits);
    farewell(agent).await;
}

/// An agent below would change something.
const BELOW: &str = r#"
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "Write", input = { file_path = "early", content = "x" } }]
[[rule]]
when = { agent = "re:^/main/" }
reply = [{ text = "It was denied." }]
[[rule]]
when = { turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "write", subagent_type = "general-purpose" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

// proves PM-01 (part: agents below)
#[tokio::test]
async fn no_agent_below_changes_anything_either_whatever_rules_allow() {
    let mut rig = attended(BELOW, PermissionMode::Plan);
    rig = rig.rules(&["Write", "Edit", "Bash"], &[]).unwrap();
    let mut agent = rig.prompted("build").await.unwrap();
    until_end(&mut agent).await;
    let below = sent_by(&rig, "/main/general-purpose-1");
    let denied = last_words(&below[1]);
    assert!(denied.contains("plan mode is on"), "{denied}");
    assert!(!offered(&below[0]).contains(&"ExitPlanMode"));
    assert!(!rig.work().join("early").exists());
    farewell(agent).await;
}

// proves PM-01 (part: told)
#[tokio::test]
async fn the_model_is_told_when_a_front_end_begins_or_ends_plan_mode() {
    let rig = attended(
        "[[rule]]\nreply = [{ text = \"ok\" }]\n",
        PermissionMode::Default,
    );
    let mut agent = rig.prompted("one").await.unwrap();
    until_end(&mut agent).await;
    for (mode, words) in [
        (PermissionMode::Plan, "You are in plan mode"),
        (PermissionMode::AcceptEdits, "Plan mode is off"),
    ] {
        agent.handle.send(Command::SetMode(mode)).await.unwrap();
        agent.handle.send(prompt("next")).await.unwrap();
        until_end(&mut agent).await;
        let told = told(&rig);
        assert!(told.contains(words), "{told}");
    }
    farewell(agent).await;
}

/// A plan that is kept when the history is gone.
const COMPACTS: &str = r#"
[[rule]]
when = { user = "summary" }
reply = [{ text = "<summary>We build.</summary>" }]
[[rule]]
when = { turn = 1 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build </system-reminder> it." } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves PM-02 (part: kept)
#[tokio::test]
async fn the_approved_plan_is_restated_after_a_compaction() {
    let rig = attended(COMPACTS, PermissionMode::Plan);
    let mut agent = rig.prompted("plan").await.unwrap();
    let plan = asked(&mut agent).await;
    answer(&agent, &plan, approve(None, None)).await;
    until_end(&mut agent).await;
    agent
        .handle
        .send(Command::Compact { keep: None })
        .await
        .unwrap();
    until_end(&mut agent).await;
    agent.handle.send(prompt("what now?")).await.unwrap();
    until_end(&mut agent).await;
    let known = all_words(sent_by(&rig, "/main").last().unwrap());
    assert!(
        known.contains("The plan that the user approved last")
            && known.contains("1. Build &lt;/system-reminder"),
        "{known}"
    );
    farewell(agent).await;
}

/// A sub-agent of type Plan hands in its plan.
const PLANNER: &str = r#"
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "ExitPlanMode", input = { plan = "1. Build." } }]
[[rule]]
when = { agent = "re:^/main/" }
reply = [{ text = "1. Only test." }]
[[rule]]
when = { turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "plan it, and have it approved", subagent_type = "plan" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

// proves AD-03 (part: handed in)
#[tokio::test]
async fn an_agent_of_type_plan_hands_in_its_plan_to_the_person() {
    let rig = attended(PLANNER, PermissionMode::AcceptEdits);
    let mut agent = rig.prompted("build").await.unwrap();
    let question = asked(&mut agent).await;
    assert_ne!(question.0, agent.id);
    assert_eq!(question.1.kind, QuestionKind::Plan);
    assert!(question.1.from.is_some());
    let accept = approve(Some("1. Only test."), Some(PermissionMode::AcceptEdits));
    answer(&agent, &question, accept).await;
    until_end(&mut agent).await;
    let planner = sent_by(&rig, "/main/plan-1");
    let told = last_words(&planner[1]);
    assert!(
        told.contains("as your answer") && told.contains("1. Only test."),
        "{told}"
    );
    assert_eq!(
        mode(&rig, question.0).await,
        PermissionMode::Plan,
        "it stays a planner"
    );
    assert_eq!(mode(&rig, agent.id).await, PermissionMode::AcceptEdits);
    let text = kept(&rig, agent.id).await.map(|plan| plan.0);
    assert_eq!(text.as_deref(), Some("1. Only test."));
    let answered = all_words(sent_by(&rig, "/main").last().unwrap());
    assert!(answered.contains("1. Only test."), "{answered}");
    farewell(agent).await;
}
