//! Agents that repeat a call that fails.

use posse_protocol::{FaultClass, Outcome};
use posse_testkit::Rig;
use posse_testkit::rig::until_end;

use crate::agents::{paths, rig};

/// What the model is told at the third time.
const NOTICE: &str = "in a row with the same input";

const LOOPS: &str = r#"
[[rule]]
reply = [{ tool = "Read", input = { file_path = "nowhere" } }]
"#;

fn notices(rig: &Rig) -> Vec<usize> {
    let requests = rig.server.requests();
    let count = |body: &[u8]| String::from_utf8_lossy(body).matches(NOTICE).count();
    requests
        .iter()
        .map(|request| count(&request.body))
        .collect()
}

// proves FC-03 (part: notice; main agent)
// proves AG-11 (part: paused by repetition)
#[tokio::test]
async fn a_main_agent_is_told_once_and_then_paused() {
    let rig = rig(LOOPS);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    let Outcome::Paused(fault) = &end.outcome else {
        panic!("{:?}", end.outcome)
    };
    assert_eq!(fault.class, FaultClass::Repetition);
    assert!(
        fault.message.contains("Read was called 5 times"),
        "{fault:?}"
    );
    // Told in the results of the third call, and of no other.
    assert_eq!(notices(&rig), [0, 0, 0, 1, 1]);
    // New words begin a new row.
    agent
        .handle
        .send(posse_testkit::rig::prompt("again"))
        .await
        .unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert!(
        matches!(end.outcome, Outcome::Paused(_)),
        "{:?}",
        end.outcome
    );
    assert_eq!(rig.server.requests().len(), 10);
}

const BELOW: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Read", input = { file_path = "nowhere" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It said: {{tool}}" }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "d", prompt = "p" } }]
"#;

// proves FC-03 (part: sub-agent)
#[tokio::test]
async fn a_sub_agent_ends_partial_and_its_parent_hears_why() {
    let rig = rig(BELOW);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let told = "was stopped by a limit before it was done: it repeated a call that failed in the \
                same way each time";
    assert!(end.text.contains(told), "{}", end.text);
    let paths = paths(&rig);
    let below = paths.iter().filter(|path| path.starts_with("/main/"));
    assert_eq!(below.count(), 5);
}
