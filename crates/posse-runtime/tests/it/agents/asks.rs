//! AskUserQuestion: any agent asks a person, and is told what they choose or that nobody answers.

use posse_protocol::{
    AgentId, Answer, Command, EventKind, PermissionMode, Question, QuestionKind, RawJson,
};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use posse_testkit::Rig;
use posse_testkit::rig::until_end;
use serde_json::{Value, json};

use super::{last_words, offered, paths, rig, sent_by, until};

const ASK: &str = "AskUserQuestion";

/// The main agent asks two questions.
const ASKS: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "Thank you." }]
[[rule]]
reply = [{ tool = "AskUserQuestion", input = { questions = [
    { question = "Which library?", header = "Library", options = [
        { label = "serde", description = "The usual one." },
        { label = "miniserde", description = "Small.", preview = "use miniserde::json;" },
    ], multiSelect = false },
    { question = "Which systems?", header = "Systems", options = [
        { label = "Linux", description = "" }, { label = "macOS", description = "" },
    ], multiSelect = true },
] } }]
"#;

async fn asked(agent: &mut Agent) -> (AgentId, Question) {
    let is_asked = |kind: &EventKind| matches!(kind, EventKind::ApprovalRequested(_));
    let events = until(agent, |event| is_asked(&event.kind)).await;
    let event = events.last().unwrap();
    let EventKind::ApprovalRequested(question) = &event.kind else {
        panic!()
    };
    (event.agent, (**question).clone())
}

/// What the model is told if this is the answer, in this mode.
async fn told(mode: PermissionMode, answer: Answer) -> String {
    let mut rig = rig(ASKS);
    rig.profile.mode = mode;
    rig.setup.approver = Approver::FrontEnd;
    let mut agent = rig.prompted("go").await.unwrap();
    let (who, question) = asked(&mut agent).await;
    assert_eq!(
        (question.kind, question.tool.as_str()),
        (QuestionKind::Choice, ASK)
    );
    assert_eq!((question.suggestions.len(), &question.shown), (0, &None));
    let command = Command::Answer {
        agent: who,
        question: question.id,
        answer,
    };
    agent.handle.send(command).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.denials.len()), ("Thank you.", 0));
    last_words(&sent_by(&rig, "/main")[1])
}

fn with(input: Value) -> Answer {
    Answer::Allow {
        input: Some(RawJson::from(&input)),
        always: None,
    }
}

// proves PE-08 (part: any mode; answers)
#[tokio::test]
async fn a_person_is_asked_in_every_mode_and_the_model_reads_the_answers() {
    for mode in PermissionMode::ALL {
        let answers =
            json!({"Which library?": "serde", "Which systems?": "none of these, for now"});
        assert_eq!(
            told(mode, with(json!({"questions": [], "answers": answers}))).await,
            "The user answered:\n- Which library?\n  → serde\n- Which systems?\n  → none of these, for now\n",
            "{mode}"
        );
    }
    let some = json!({"answers": {"Which systems?": ["Linux", "macOS"]}});
    assert_eq!(
        told(PermissionMode::Default, with(some)).await,
        "The user answered:\n- Which library?\n  → (no answer)\n- Which systems?\n  → Linux, macOS\n"
    );
}

// proves PE-08 (part: a yes)
#[tokio::test]
async fn what_is_no_answer_is_told_as_none() {
    for answer in [
        Answer::allow(),
        with(json!({"questions": []})),
        with(json!({"answers": {"Which one?": "serde"}})),
        with(json!({"answers": {"Which library?": " "}})),
    ] {
        let told = told(PermissionMode::BypassPermissions, answer).await;
        assert!(
            told.starts_with("Not answered: the questions were closed"),
            "{told}"
        );
        assert!(
            told.contains("state in your answer what you assumed"),
            "{told}"
        );
    }
    let no = Answer::Deny {
        message: "Ask me tomorrow".into(),
        interrupt: false,
    };
    let told = told(PermissionMode::Default, no).await;
    assert!(
        told.starts_with("Not answered: Ask me tomorrow. "),
        "{told}"
    );
}

// proves PE-08 (part: nobody)
#[tokio::test]
async fn with_nobody_there_the_model_is_told_so() {
    let rig = rig(ASKS);
    let mut agent = rig.prompted("go").await.unwrap();
    let (events, end) = until_end(&mut agent).await;
    let asks =
        |event: &&posse_protocol::Event| matches!(event.kind, EventKind::ApprovalRequested(_));
    assert_eq!(events.iter().find(asks), None);
    assert_eq!(end.denials, []);
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.starts_with("Not answered: no one is available"),
        "{told}"
    );
    assert!(
        told.contains("state in your answer what you assumed"),
        "{told}"
    );
}

// proves PE-08 (part: the input)
#[tokio::test]
async fn a_wrong_input_is_told_and_nobody_is_asked() {
    let script = ASKS.replace("header = \"Systems\"", "header = \"Operating systems\"");
    let mut rig = rig(&script);
    rig.setup.approver = Approver::FrontEnd;
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert_eq!(told, "`questions[1].header` has more than 12 characters");
}

/// Starts an agent of each kind, all of which do nothing.
const KINDS: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Hello." }]
[[rule]]
when.turn = 1
reply = [
    { tool = "Agent", input = { description = "a", prompt = "p", subagent_type = "Explore", run_in_background = false } },
    { tool = "Agent", input = { description = "b", prompt = "p", subagent_type = "Plan", run_in_background = false } },
    { tool = "Agent", input = { description = "c", prompt = "p", subagent_type = "Bash", run_in_background = false } },
    { tool = "Agent", input = { description = "d", prompt = "p", run_in_background = false } },
    { tool = "Agent", input = { description = "e", prompt = "p", subagent_type = "fork", run_in_background = false } },
]
[[rule]]
reply = [{ text = "Done." }]
"#;

async fn all_kinds(rig: &Rig) -> Vec<(String, Value)> {
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let paths = paths(rig)
        .into_iter()
        .collect::<std::collections::BTreeSet<_>>();
    assert_eq!(paths.len(), 6, "{paths:?}");
    let first = |path: String| {
        let body = sent_by(rig, &path).remove(0);
        (path, body)
    };
    paths.into_iter().map(first).collect()
}

// proves PE-08 (part: any agent)
#[tokio::test]
async fn every_kind_of_agent_can_ask() {
    let bodies = all_kinds(&rig(KINDS)).await;
    for (path, body) in &bodies {
        assert!(offered(body).contains(&ASK), "{path}: {:?}", offered(body));
    }
    let main = &bodies[0];
    assert_eq!(main.0, "/main");
    let same = bodies
        .iter()
        .filter(|(_, body)| body["tools"] == main.1["tools"]);
    // A fork sends what its parent sent.
    assert!(same.count() >= 2);
    let denied = rig(KINDS).rules(&[], &[ASK]).unwrap();
    for (path, body) in all_kinds(&denied).await {
        assert!(!offered(&body).contains(&ASK), "{path}");
    }
}
