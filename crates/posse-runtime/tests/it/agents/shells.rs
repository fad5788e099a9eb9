//! Commands in the background: they are runs like agents'.

use posse_port::store::AgentState;
use posse_protocol::{MailKind, Outcome, RunChange, RunKind, RunStatus};
use posse_testkit::rig::until_end;

use super::{
    count, inbox, last_words, news, over, pipe, ready, release, rig, row, sent_by, told_ends,
    until, until_over, until_state,
};

const COMMAND: &str = r#"
[[rule]]
when.user = "task-notification"
reply = [{ text = "It has ended." }]
[[rule]]
when.tool = "re:its id is ([0-9a-f-]+)"
reply = [{ tool = "TaskOutput", input = { task_id = "{{tool.1}}", block = false } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It runs." }]
[[rule]]
reply = [{ tool = "Bash", id = "toolu_sh", input = { description = "Try it", run_in_background = true, command = "echo first; echo x > ready; read -r _ < hold; echo last; exit 3" } }]
"#;

// proves BG-14 (part: ids; output files; notification)
// proves BG-05 (part: fields; failed)
#[tokio::test]
async fn a_command_in_the_background_is_a_run() {
    let rig = rig(COMMAND);
    let (begun, hold) = (pipe(&rig, "ready"), pipe(&rig, "hold"));
    let mut agent = rig.prompted("go").await.unwrap();
    let events = until(&mut agent, |event| news(event).is_some()).await;
    let started = news(&events[events.len() - 1]).unwrap().clone();
    ready(begun).await;
    assert_eq!(
        started.what,
        RunChange::Started {
            prompt: String::new(),
            background: true
        }
    );
    let run = started.run;
    assert_eq!(
        (run.kind, run.description.as_str(), run.call.as_str()),
        (RunKind::Shell, "Try it", "toolu_sh")
    );
    assert_eq!(run.starter, agent.id);
    let output = rig
        .setup
        .workspace
        .spill
        .join(format!("{}/{}.output", agent.id, run.task));
    assert_eq!(run.output_file, output);
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str(), end.live),
        (Outcome::Completed, "It runs.", 1)
    );
    assert_eq!(
        std::fs::read_to_string(&output).unwrap(),
        "first\n",
        "it is read while it runs"
    );
    let main = sent_by(&rig, "/main");
    let told = last_words(&main[1]);
    assert!(
        told.contains(&run.task.to_string()) && told.contains(&output.display().to_string()),
        "{told}"
    );
    let told = last_words(&main[2]);
    assert!(
        told.starts_with(&format!("command {} (Try it) is running. ", run.task)),
        "{told}"
    );

    release(hold).await;
    let (_, over) = until_over(&mut agent, "Try it").await;
    assert_eq!(
        (over.status, over.task, over.result.as_str()),
        (RunStatus::Failed, run.task, "first\nlast\n")
    );
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.live), ("It has ended.", 0));
    let told = last_words(sent_by(&rig, "/main").last().unwrap());
    for part in [
        "<task-notification>\nA command you started has finished.",
        &format!("<task-id>{}</task-id>", run.task),
        "<tool-use-id>toolu_sh</tool-use-id>",
        &format!("<output-file>{}</output-file>", output.display()),
        "<status>failed</status>",
        "<summary>Try it: exit code 3</summary>",
        "<result>\nfirst\nlast\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "first\nlast\n");
    let mail = inbox(&rig, agent.id, agent.id).await;
    assert_eq!((mail.len(), mail[0].kind), (1, MailKind::Notification));
    assert!(mail[0].shown_in.is_some());
    assert_eq!(rig.store.take(agent.id).await.err().map(|_| ()), None);
}

// proves BG-11 (part: shell commands; else an error)
// proves BG-14 (part: stop)
#[tokio::test]
async fn a_command_in_the_background_is_stopped_by_its_id() {
    let script = r#"
[[rule]]
when.tool = "re:its id is ([0-9a-f-]+)"
set = { id = "{{tool.1}}" }
reply = [{ tool = "TaskStop", input = { shell_id = "{{tool.1}}" } }]
[[rule]]
when.tool = "Stopped"
reply = [{ tool = "TaskStop", input = { task_id = "{{state.id}}" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It is gone." }]
[[rule]]
reply = [{ tool = "Bash", input = { description = "Sleep", run_in_background = true, command = "trap '' TERM; setsid sleep 1000 & sleep 1000" } }]
"#;
    let rig = rig(script);
    let mut agent = rig.prompted("go").await.unwrap();
    let (events, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.live), ("It is gone.", 0));
    let ended = events.iter().find_map(over).unwrap();
    assert_eq!(
        (ended.status, ended.description.as_str()),
        (RunStatus::Killed, "Sleep")
    );
    let main = sent_by(&rig, "/main");
    let told = last_words(&main[2]);
    let expected = format!(
        "Stopped: command {} (Sleep). Nothing it had started is left running.",
        ended.task
    );
    assert_eq!(told, expected);
    assert!(
        last_words(&main[3]).contains("There is no run"),
        "{}",
        last_words(&main[3])
    );
    assert_eq!(
        inbox(&rig, agent.id, agent.id).await,
        [],
        "who stops it need not be told"
    );
}

// proves BG-10 (part: waiting; delivery)
#[tokio::test]
async fn the_end_of_a_command_that_was_waited_for_is_not_told_again() {
    let script = r#"
[[rule]]
when.tool = "re:its id is ([0-9a-f-]+)"
reply = [{ tool = "TaskOutput", input = { task_id = "{{tool.1}}" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "I saw it." }]
[[rule]]
when.user = "more"
reply = [{ text = "Nothing new." }]
[[rule]]
reply = [{ tool = "Bash", input = { description = "Wait", run_in_background = true, command = "read -r _ < hold; echo done" } }]
"#;
    let rig = rig(script);
    let hold = pipe(&rig, "hold");
    let mut agent = rig.prompted("go").await.unwrap();
    rig.server.wait_for_requests(2).await;
    release(hold).await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.live), ("I saw it.", 0));
    let main = sent_by(&rig, "/main");
    assert!(
        last_words(&main[2]).contains("<result>\ndone\n"),
        "{}",
        last_words(&main[2])
    );
    agent
        .handle
        .send(posse_testkit::rig::prompt("more"))
        .await
        .unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Nothing new.");
    assert_eq!(
        count(
            sent_by(&rig, "/main").last().unwrap(),
            "<task-notification>"
        ),
        1
    );
    assert!(
        inbox(&rig, agent.id, agent.id)
            .await
            .iter()
            .all(|mail| mail.shown_in.is_some())
    );
}

// proves BG-09
// proves AG-11 (part: completed)
#[tokio::test]
async fn a_sub_agent_waits_for_its_own_command() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/", user = "task-notification" }
reply = [{ text = "My command has ended." }]
[[rule]]
when = { agent = "re:^/main/", tool = "re:its id is" }
reply = [{ text = "I wait." }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { description = "Build", run_in_background = true, command = "read -r _ < hold; echo built" } }]
[[rule]]
when.tool = "My command has ended"
reply = [{ text = "I see." }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "Builder", prompt = "Build." } }]
"#;
    let rig = rig(script);
    let hold = pipe(&rig, "hold");
    let mut agent = rig.prompted("go").await.unwrap();
    let waiting = until_state(&rig, agent.id, "Builder", AgentState::Waiting).await;
    assert_eq!(waiting.ended, None);
    assert_eq!(
        rig.store.read(agent.id).await.unwrap().record.state,
        AgentState::Waiting
    );
    release(hold).await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.turns), ("I see.", 2));
    let child = row(&rig, agent.id, "Builder").await;
    assert_eq!(child.state, AgentState::Completed);
    let ends = told_ends(&rig, agent.id, child.agent).await;
    assert_eq!((ends.len(), ends[0].result.as_str()), (1, "built\n"));
    assert_eq!(inbox(&rig, agent.id, agent.id).await, []);
}

/// A command that has ended is known by its id as long as its starter knows of it.
#[tokio::test]
async fn the_output_of_a_command_that_has_ended_can_be_looked_at() {
    let script = r#"
[[rule]]
when.user = "re:<task-id>(.*)</task-id>"
times = 1
reply = [{ tool = "TaskOutput", input = { task_id = "{{user.1}}" } }, { tool = "TaskStop", input = { task_id = "{{user.1}}" } }]
[[rule]]
when.tool = "its id is"
reply = [{ text = "It runs." }]
[[rule]]
when.tool = "re:."
reply = [{ text = "I saw it." }]
[[rule]]
reply = [{ tool = "Bash", input = { description = "Say", run_in_background = true, command = "read -r _ < hold; echo hello" } }]
"#;
    let rig = rig(script);
    let hold = pipe(&rig, "hold");
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "It runs.");
    release(hold).await;
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.turns), ("I saw it.", 2));
    let told = super::words(
        sent_by(&rig, "/main").last().unwrap()["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap(),
    );
    assert!(
        told[0].contains("(Say) has completed. Its output so far") && told[0].contains("\nhello\n"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("Nothing was stopped: command ")
            && told[1].contains("has completed already"),
        "{told:?}"
    );
}
