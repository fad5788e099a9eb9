//! A process that is stopped for longer than its lease while its tool runs, taken over, and continued.

#![expect(clippy::disallowed_methods, reason = "it is about processes")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use posse_port::store::StoreError;
use posse_runtime::session::start_error::StartError;
use posse_store::Timing;
use posse_testkit::Rig;
use posse_testkit::rig::{prompt, until_end};

/// Its lease, in milliseconds.
const LEASE: u64 = 300;

#[tokio::test]
async fn what_a_stopped_process_had_is_taken_over_and_its_tools_are_gone() {
    let script = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "I go on." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "echo $$ > fifo; exec sleep 1000" } }]
"#;
    let mut rig = Rig::playing(script).unwrap();
    let fifo = rig.work().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_store-work"))
        .arg("agent")
        .arg(rig.place())
        .arg(rig.server.url())
        .arg(rig.work())
        .arg(LEASE.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let id = lines.next().unwrap().unwrap().parse().unwrap();
    // The tool's own word that it runs.
    let said = tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo))
        .await
        .unwrap()
        .unwrap();
    let tool = Pid::from_raw(said.trim().parse().unwrap());
    let host = Pid::from_raw(child.id() as i32);

    let timing = Timing {
        lease: std::time::Duration::from_millis(LEASE),
        ..Timing::default()
    };
    rig.store = rig.place().open_with(timing).unwrap();
    let runtime = rig.runtime().unwrap();
    let refused = runtime
        .resume(id, None, rig.setup.clone())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(refused, StartError::Store(StoreError::Held { .. })),
        "{refused:?}"
    );
    kill(host, Signal::SIGSTOP).unwrap();
    // It stays its own until the lease is over.
    let mut agent = loop {
        match runtime.resume(id, None, rig.setup.clone()).await {
            Err(StartError::Store(StoreError::Held { .. })) => tokio::task::yield_now().await,
            resumed => break resumed.unwrap(),
        }
    };
    // Its parent is stopped and has not seen it yet.
    let state = std::fs::read_to_string(format!("/proc/{tool}/stat")).unwrap_or_default();
    assert!(
        state.is_empty() || state.contains(") Z "),
        "its tool has been ended: {state}"
    );
    agent.handle.send(prompt("go on")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "I go on.");

    kill(host, Signal::SIGCONT).unwrap();
    let last = lines.next().unwrap().unwrap();
    assert!(last.starts_with("failed Fenced"), "{last}");
    assert!(child.wait().unwrap().success());
    let entries = rig.store.read(id).await.unwrap().entries.len();
    assert_eq!(
        entries, 5,
        "prompt, call, its unknown outcome, prompt, reply: nothing of the other's"
    );
}
