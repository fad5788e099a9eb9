//! What the model may do in a side query besides answering.

use std::path::PathBuf;
use std::sync::Arc;

use posse_port::store::{AgentFilter, Page};
use posse_protocol::{AgentId, PermissionMode, RealmId};
use posse_runtime::agent::SideQueryError;
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::{Memory, MemoryScope};
use posse_testkit::Rig;
use posse_testkit::rig::farewell;

use super::{ask, desk, last, last_message, options, run};
use crate::turns::bodies;

const CURIOUS: &str = r#"
[[rule]]
when = { user = "why", tool = "no tools may be used" }
reply = [{ text = "Then from memory: so." }]
[[rule]]
when.user = "on the side"
reply = [{ text = "Let me look." }, { tool = "Read", input = { file_path = "a.txt" } }, { tool = "Nothing", input = {} }]
[[rule]]
reply = [{ text = "Done." }]
"#;

// proves FK-13 (part: allowed tools)
#[tokio::test]
async fn a_tool_that_nobody_allows_is_refused_and_the_question_asked_again() {
    let rig = Rig::playing(CURIOUS).unwrap();
    rig.file("a.txt", "secret").unwrap();
    let mut agent = rig.prompted(&"words ".repeat(500)).await.unwrap();
    let first = run(&mut agent).await;
    let side_answer = ask(&rig, agent.id, "why").await;
    assert_eq!(side_answer.answer.unwrap(), "Then from memory: so.");
    assert_eq!(side_answer.charges.len(), 2, "each call is paid for");
    let again = last(&rig);
    let results = last_message(&again);
    assert_eq!(results.len(), 2);
    assert!(
        results.iter().all(|result| result["is_error"] == true),
        "{results:?}"
    );
    assert!(!again.to_string().contains("secret"), "it was not read");
    let usages: Vec<_> = rig
        .server
        .requests()
        .iter()
        .filter_map(|request| request.usage)
        .collect();
    assert_eq!(usages[1].cache_write_5m, 0, "one turn leaves nothing");
    assert!(usages[2].cache_read >= first.prompt());

    let stubborn = ask(&rig, agent.id, "how").await;
    assert!(
        matches!(stubborn.answer, Err(SideQueryError::Tools)),
        "{:?}",
        stubborn.answer
    );
    assert_eq!(
        (stubborn.charges.len(), rig.server.requests().len()),
        (4, 7),
        "four times and no more"
    );
    farewell(agent).await;
}

/// A sub-agent that keeps notes, and in a side query writes to them, to a file beside them and by a command.
const NOTES: &str = r#"
[[rule]]
when = { user = "worth remembering", tool = "re:." }
reply = [{ text = "Noted." }]
[[rule]]
when.user = "worth remembering"
reply = [
  { tool = "Write", input = { file_path = "NOTES/MEMORY.md", content = "Tests need a clock." } },
  { tool = "Write", input = { file_path = "WORK/made", content = "no" } },
  { tool = "Read", input = { file_path = "WORK/a.txt" } },
  { tool = "Bash", input = { command = "touch WORK/made" } },
]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "I am done." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "d", prompt = "p", subagent_type = "tester" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

/// A rig with a type that keeps notes, and where they are.
fn noting(home: &tempfile::TempDir) -> (Rig, PathBuf) {
    let directory = home.path().canonicalize().unwrap().join("memory/tester");
    let script = NOTES.replace("NOTES", directory.to_str().unwrap());
    let script = script.replace(
        "WORK",
        home.path().canonicalize().unwrap().to_str().unwrap(),
    );
    let mut rig = Rig::playing(&script).unwrap().agents();
    let kind = Definition {
        name: "tester".into(),
        description: "Tests.".into(),
        prompt: "You test things.".into(),
        memory: Some(Memory {
            scope: MemoryScope::User,
            directory: directory.clone(),
        }),
        ..Definition::default()
    };
    rig.setup.spawning.types = Arc::new(vec![kind].into());
    // Whatever the agent itself may do.
    rig.profile.mode = PermissionMode::BypassPermissions;
    (rig, directory)
}

async fn sub_agent(rig: &Rig, root: AgentId) -> AgentId {
    let filter = AgentFilter {
        realm: Some(RealmId::from(root.uuid())),
        parent: Some(root),
        ..AgentFilter::default()
    };
    rig.store.agents(filter, Page::first(1)).await.unwrap()[0].agent
}

// proves FK-13 (part: memory; allowed tools)
#[tokio::test]
async fn who_keeps_notes_may_write_those_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("a.txt"), "secret").unwrap();
    let (rig, directory) = noting(&home);
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let sub = sub_agent(&rig, agent.id).await;
    farewell(agent).await;
    let before = bodies(&rig).len();
    let runtime = rig.another().unwrap();
    let side_answer = runtime.remember(sub, desk(&rig), options()).await.unwrap();
    assert_eq!(side_answer.answer.unwrap(), "Noted.");
    assert_eq!(
        std::fs::read_to_string(directory.join("MEMORY.md")).unwrap(),
        "Tests need a clock."
    );
    assert!(!home.path().join("made").exists());
    assert_eq!(bodies(&rig).len(), before + 2);
    let results = last_message(&last(&rig));
    let failed: Vec<bool> = results
        .iter()
        .map(|result| result["is_error"] == true)
        .collect();
    assert_eq!(failed, [false, true, true, true], "{results:?}");
    assert!(!last(&rig).to_string().contains("secret"));
    let header = rig
        .server
        .requests()
        .last()
        .unwrap()
        .header("x-posse-agent")
        .unwrap()
        .to_owned();
    assert!(header.starts_with("/main/tester-"), "{header}");
}

/// The same, where there is a note that has turned out wrong.
const OUTDATED: &str = r#"
[[rule]]
when = { user = "worth remembering", tool = "changed|replaced" }
reply = [{ text = "Put right." }]
[[rule]]
when = { user = "worth remembering", tool = "Tests need a clock" }
reply = [{ tool = "Edit", input = { file_path = "NOTES/MEMORY.md", old_string = "a clock", new_string = "no clock" } }]
[[rule]]
when.user = "worth remembering"
times = 1
reply = [{ tool = "Read", input = { file_path = "NOTES/MEMORY.md" } }]
[[rule]]
when.user = "worth remembering"
reply = [{ text = "Put right." }]
"#;

// proves FK-13 (part: memory)
#[tokio::test]
async fn notes_that_are_there_are_brought_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    let (mut rig, directory) = noting(&home);
    let script = OUTDATED.replace("NOTES", directory.to_str().unwrap());
    rig.server = posse_testkit::scripted::play(&format!("{script}{NOTES}")).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    run(&mut agent).await;
    let sub = sub_agent(&rig, agent.id).await;
    farewell(agent).await;
    std::fs::write(directory.join("MEMORY.md"), "Tests need a clock.").unwrap();
    let runtime = rig.another().unwrap();
    let side_answer = runtime.remember(sub, desk(&rig), options()).await.unwrap();
    assert_eq!(side_answer.answer.unwrap(), "Put right.");
    assert_eq!(
        std::fs::read_to_string(directory.join("MEMORY.md")).unwrap(),
        "Tests need no clock."
    );
}
