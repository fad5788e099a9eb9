//! Stopping: within a second, with nothing left running, and with a transcript that goes on.

use std::time::{Duration, Instant};

use posse_protocol::{Command, Delta, EventKind, Outcome, PermissionMode, RunEnd};
use posse_runtime::live::handle::Agent;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};

/// Interrupts the agent, and then goes on with its transcript in another runtime.
async fn interrupt(rig: &Rig, mut agent: Agent) -> RunEnd {
    let start = Instant::now();
    agent.handle.send(Command::Interrupt).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(end.outcome, Outcome::Interrupted);
    assert_eq!(
        marked(&agent.id.to_string()),
        Vec::<u32>::new(),
        "something lives on"
    );
    let id = agent.id;
    farewell(agent).await;
    let mut agent = rig.resumed(id).await.unwrap();
    agent.handle.send(prompt("go on")).await.unwrap();
    // The server refuses a conversation in which a call has no result.
    let (_, next) = until_end(&mut agent).await;
    assert_eq!(
        (next.outcome, next.text.as_str()),
        (Outcome::Completed, "on")
    );
    farewell(agent).await;
    end
}

/// Processes that a call of this agent started.
fn marked(agent: &str) -> Vec<u32> {
    let marker = format!("POSSE_CALL={agent}");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let found = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(marker.as_bytes()));
        found.then_some(pid)
    });
    processes.collect()
}

// proves TU-05 (part: stream; transcript; text so far)
// proves TU-01 (part: cancelled)
#[tokio::test]
async fn during_the_stream() {
    let script = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "on" }]
[[rule]]
reply = [{ text = "one" }, { tool = "Read", input = { file_path = "a" } }, { text = "two words" }]
fault = { kind = "stall", at = 1830 }
"#;
    let rig = Rig::playing(script).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    let mut seen = String::new();
    while !seen.contains("two") {
        if let EventKind::Delta(Delta::Text(more)) = agent.events.recv().await.unwrap().kind {
            seen.push_str(&more);
        }
    }
    interrupt(&rig, agent).await;
    rig.server.wait_for_requests(2).await;
    let sent = &crate::turns::bodies(&rig)[1]["messages"];
    assert_eq!(
        sent[1]["content"][0]["text"], "one",
        "what was seen was said: {sent}"
    );
    assert!(
        sent[1]["content"][2]["text"]
            .as_str()
            .unwrap()
            .starts_with("two"),
        "{sent}"
    );
    assert_eq!(
        sent[2]["content"][0]["tool_use_id"],
        sent[1]["content"][1]["id"]
    );
}

// proves TU-05 (part: tools; process groups; transcript)
#[tokio::test]
async fn during_a_command_that_forked_children() {
    let command =
        "(trap '' TERM; sleep 1000) & setsid sleep 1000 & sleep 1000 & echo up > ready; wait";
    let script = format!(
        "[[rule]]\nwhen.user = \"go on\"\nreply = [{{ text = \"on\" }}]\n\
         [[rule]]\nreply = [{{ tool = \"Bash\", input = {{ command = \"{command}\" }} }}]\n"
    );
    let mut rig = Rig::playing(&script).unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let ready = rig.work().join("ready");
    nix::unistd::mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let agent = rig.prompted("go").await.unwrap();
    tokio::task::spawn_blocking(move || std::fs::read(ready))
        .await
        .unwrap()
        .unwrap();
    // The shell and its children run, or are about to.
    while marked(&agent.id.to_string()).len() < 4 {}
    interrupt(&rig, agent).await;
    let sent = &crate::turns::bodies(&rig)[1]["messages"];
    let result = &sent[2]["content"][0];
    assert_eq!(result["is_error"], true);
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_lowercase()
            .contains("interrupted"),
        "{result}"
    );
}

// proves TU-05 (part: transcript)
#[tokio::test]
async fn during_the_wait_for_a_retry() {
    let script = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "on" }]
[[rule]]
fault = { kind = "status", status = 529, retry_after = "50" }
"#;
    let rig = Rig::playing(script).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    while !matches!(agent.events.recv().await.unwrap().kind, EventKind::Retry(_)) {}
    interrupt(&rig, agent).await;
}

/// What a broken attempt had said was declared void, and stays so.
#[tokio::test]
async fn void_words_are_not_stored() {
    let script = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "on" }]
[[rule]]
reply = [{ text = "void" }, { tool = "Read", input = { file_path = "a" } }, { text = "rest" }]
fault = { kind = "cut", at = 1500 }
"#;
    let rig = Rig::playing(script).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    while !matches!(agent.events.recv().await.unwrap().kind, EventKind::Retry(_)) {}
    interrupt(&rig, agent).await;
    let sent = crate::turns::bodies(&rig).pop().unwrap()["messages"].to_string();
    assert!(!sent.contains("void") && sent.contains("go on"), "{sent}");
}

/// Nobody reads the events, and still everything can be stopped.
#[tokio::test]
async fn a_reader_that_reads_nothing_does_not_hinder_the_end() {
    let words: String = (0..900)
        .map(|n| format!("{{ text = \"w{n} \" }}, "))
        .collect();
    let rig = Rig::playing(&format!("[[rule]]\nreply = [{words}]\n")).unwrap();
    let runtime = rig.runtime().unwrap();
    let agent = runtime.start(&rig.profile, rig.setup.clone());
    agent.handle.send(prompt("go")).await.unwrap();
    rig.server.wait_for_requests(1).await;
    runtime.shut_down().await;
    assert!(rig.store.take(agent.id).await.is_ok());
}

#[tokio::test]
async fn a_runtime_that_shuts_down_leaves_nothing_behind() {
    let script = "[[rule]]\nreply = [{ tool = \"Bash\", input = { command = \"echo up > ready; sleep 1000\" } }]\n";
    let mut rig = Rig::playing(script).unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let ready = rig.work().join("ready");
    nix::unistd::mkfifo(&ready, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let runtime = rig.runtime().unwrap();
    let agent = runtime.start(&rig.profile, rig.setup.clone());
    agent.handle.send(prompt("go")).await.unwrap();
    tokio::task::spawn_blocking(move || std::fs::read(ready))
        .await
        .unwrap()
        .unwrap();
    runtime.shut_down().await;
    assert_eq!(marked(&agent.id.to_string()), Vec::<u32>::new());
    // Nobody holds it any more, and its call has a result.
    let taken = rig.store.take(agent.id).await.unwrap();
    assert!(taken.transcript.open_calls.is_empty());
    assert_eq!(taken.transcript.entries.len(), 3);
}
