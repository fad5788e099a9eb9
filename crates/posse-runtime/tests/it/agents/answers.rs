//! Answers that have a shape: checked, mended once, and handed on as a value.

use std::sync::Arc;

use posse_port::store::{AgentState, Page};
use posse_protocol::{Outcome, RunStatus};
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::built_in;
use posse_testkit::Rig;
use posse_testkit::rig::until_end;
use serde_json::json;

use super::{last_words, rig, row, sent_by, told_ends, until_over, words};

const SCHEMA: &str =
    r#"{ type = "object", required = ["line"], properties = { line = { type = "integer" } } }"#;

/// A main agent that wants an answer of this shape, and a sub-agent that says this, one after the other.
fn asking(more: &str, says: &[&str]) -> String {
    let turns: String = (1..)
        .zip(says)
        .map(|(turn, text)| {
            format!("[[rule]]\nwhen = {{ agent = \"re:^/main/\", turn = {turn} }}\nreply = [{{ text = '''{text}''' }}]\n")
        })
        .collect();
    format!(
        r#"{turns}
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Find it", prompt = "Where is it?"{more} }} }}]
[[rule]]
reply = [{{ text = "Thanks." }}]
"#
    )
}

async fn asked(rig: &Rig) -> (Vec<serde_json::Value>, String, posse_protocol::Notification) {
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_over(&mut agent, "Find it").await;
    let (_, main) = until_end(&mut agent).await;
    assert_eq!(main.outcome, Outcome::Completed);
    (
        sent_by(rig, "/main/general-purpose-1"),
        last_words(&sent_by(rig, "/main")[1]),
        end,
    )
}

// proves AG-12 (part: the call; validated; the value)
#[tokio::test]
async fn an_answer_that_fits_is_handed_on_as_a_value() {
    let fenced = "```json\n{\"line\": 7}\n```";
    let rig = rig(&asking(&format!(", output_schema = {SCHEMA}"), &[fenced]));
    let (child, told, end) = asked(&rig).await;
    assert_eq!(child.len(), 1, "no repair");
    let first = words(&child[0]["messages"][0]);
    assert!(
        first[0].contains("JSON") && first[0].contains(r#""required""#),
        "{}",
        first[0]
    );
    assert_eq!(first[1], "Where is it?", "its prompt comes last");
    assert_eq!(end.status, RunStatus::Completed);
    assert_eq!(end.value.as_ref().unwrap().get(), r#"{"line":7}"#);
    assert!(
        told.contains("Its answer, which matches the output schema"),
        "{told}"
    );
    assert!(
        told.contains("<run-output>\n{\"line\":7}\n</run-output>"),
        "{told}"
    );
}

// proves AG-12 (part: one repair round)
#[tokio::test]
async fn one_repair_round_is_made_and_no_more() {
    let call = format!(", output_schema = {SCHEMA}");
    let mended = rig(&asking(&call, &["It is in line 7.", r#"{"line": 7}"#]));
    let (child, _, end) = asked(&mended).await;
    assert_eq!((child.len(), end.status), (2, RunStatus::Completed));
    let repair = last_words(&child[1]);
    assert!(repair.contains("JSON"), "{repair}");
    assert_eq!(end.value.unwrap().get(), r#"{"line":7}"#);

    let hopeless = rig(&asking(
        &call,
        &[r#"{"line": "seven"}"#, r#"{"line": "8"}"#, "never said"],
    ));
    let (child, told, end) = asked(&hopeless).await;
    assert_eq!(
        (child.len(), end.status, end.value),
        (2, RunStatus::Failed, None)
    );
    assert!(
        last_words(&child[1]).contains("/line"),
        "{}",
        last_words(&child[1])
    );
    assert!(
        told.contains("has failed: its answer does not match the output schema"),
        "{told}"
    );
    assert!(
        told.contains("/line") && told.contains(r#"{"line": "8"}"#),
        "the text so far: {told}"
    );
    let body = &sent_by(&hopeless, "/main")[1];
    assert_eq!(body["messages"][2]["content"][0]["is_error"], true);
    let root = hopeless
        .store
        .sessions(Default::default(), Page::first(1))
        .await
        .unwrap()
        .remove(0)
        .agent;
    assert_eq!(
        row(&hopeless, root, "Find it").await.state,
        AgentState::Failed
    );
}

// proves AG-12 (part: the definition; the value)
#[tokio::test]
async fn a_type_can_ask_for_a_shape_and_a_notification_brings_the_value() {
    let schema = Arc::new(json!({"type": "array", "items": {"type": "string"}}));
    let mut rig = rig(&asking(
        ", run_in_background = true",
        &[r#"["a.rs", "b.rs"]"#],
    ));
    let kinds = built_in().into_iter();
    let kinds = kinds.map(|kind| Definition {
        output_schema: Some(Arc::clone(&schema)),
        ..kind
    });
    rig.setup.spawning.types = Arc::new(kinds.collect());
    let mut agent = rig.prompted("go").await.unwrap();
    until_over(&mut agent, "Find it").await;
    let ends = told_ends(&rig, agent.id, agent.id).await;
    assert_eq!(ends[0].value.as_ref().unwrap().get(), r#"["a.rs","b.rs"]"#);
    assert_eq!(ends[0].result, r#"["a.rs","b.rs"]"#);
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused_before_anything_is_started() {
    let rig = rig(&asking(r#", output_schema = { type = "objekt" }"#, &[]));
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(told.starts_with("output_schema: "), "{told}");
    assert!(sent_by(&rig, "/main/general-purpose-1").is_empty());
}

#[tokio::test]
async fn a_value_too_long_for_a_message_is_asked_for_once_more_and_an_end_is_told_all_the_same() {
    let long = format!(r#"{{"line": 7, "all": "{}"}}"#, "<a>\\n".repeat(20_000));
    let more = format!(", output_schema = {SCHEMA}, run_in_background = true");
    let mut rig = rig(&asking(&more, &[&long, &long]));
    rig.setup.limits.max_tokens = 64_000;
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_over(&mut agent, "Find it").await;
    assert_eq!((end.status, &end.value), (RunStatus::Failed, &None));
    assert!(
        end.error
            .as_ref()
            .unwrap()
            .contains("bytes; at most 65536 are allowed"),
        "{:?}",
        end.error
    );
    assert_eq!(told_ends(&rig, agent.id, agent.id).await, [end]);
}
