//! A process that runs a part of a team until a test kills it.
//!
//! STORE is a file or a URL; DIR holds all other files.
//!
//! - `lead URL STORE DIR`: the main agent of a new session, which is told to start; prints
//!   `session ID`, and `quiet` whenever no agent has work left;
//! - `lead URL STORE DIR SESSION`: the same for a session that another process has left;
//! - `host URL STORE DIR SESSION MOST`: up to MOST members of its teams that no host holds; prints
//!   `hosts N` when it has the first.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::StoreError;
use posse_protocol::{Command, EventKind, Outcome, PermissionMode};
use posse_runtime::session::start_error::StartError;
use posse_runtime::session::team::host::{Hosting, Members};
use posse_testkit::test_runtime::{self, AgentRecord, TestRuntime};

type Failed = Box<dyn Error + Send + Sync>;

/// Maximum number of agents of a process that work at once.
const RUNNING: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["lead", url, store, directory] => {
            let test_runtime = test_runtime(url, store, Path::new(directory))?;
            let session = test_runtime.session_in(PermissionMode::BypassPermissions);
            say(&format!("session {}", session.id()))?;
            session.say("start").await?;
            lead(session).await
        }
        ["lead", url, store, directory, id] => {
            let test_runtime = test_runtime(url, store, Path::new(directory))?;
            let session = resumed(&test_runtime, id).await?;
            say(&format!("session {id}"))?;
            // Also if nothing waits yet: mail wakes a resumed main agent only after it was told to
            // continue.
            session.0.handle.send(Command::Continue).await?;
            lead(session).await
        }
        ["host", url, store, directory, session, most] => {
            let test_runtime = test_runtime(url, store, Path::new(directory))?;
            let members = Members::Free {
                most: Some(most.parse()?),
            };
            let hosting = Hosting {
                session: session.parse()?,
                members,
            };
            let mut hosted = test_runtime
                .runtime
                .host(hosting, test_runtime.setup.clone())
                .await?;
            say(&format!("hosts {}", hosted.agents.len()))?;
            while hosted.events.recv().await.is_some() {}
            Err("nothing is left to host".into())
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

fn test_runtime(url: &str, store: &str, directory: &Path) -> Result<TestRuntime, Failed> {
    let work = directory.join("work");
    std::fs::create_dir_all(&work)?;
    TestRuntime::on(
        &store.parse()?,
        test_runtime::model(url)?,
        directory,
        &work,
        RUNNING,
    )
}

/// On a server, a killed process keeps its agents until the lease is over.
async fn resumed(test_runtime: &TestRuntime, id: &str) -> Result<AgentRecord, Failed> {
    let clock = SystemClock::default();
    loop {
        match test_runtime
            .runtime
            .resume(id.parse()?, None, test_runtime.setup.clone())
            .await
        {
            Err(StartError::Store(StoreError::Held { .. })) => {
                clock.sleep(Duration::from_millis(50)).await
            }
            resumed => return Ok(AgentRecord(resumed?)),
        }
    }
}

async fn lead(mut session: AgentRecord) -> Result<(), Failed> {
    // What stopped the last run, if something did: the end of the events does not say it.
    let mut fault = None;
    loop {
        let event = session.event().await;
        let event = event.map_err(|error| format!("{error}; the last fault: {fault:?}"))?;
        if let EventKind::Ended(end) = event.kind {
            if end.live == 0 {
                say("quiet")?;
            }
            fault = match end.outcome {
                Outcome::Paused(fault) | Outcome::Failed(fault) => Some(fault.message),
                _ => None,
            };
        }
    }
}

/// Prints and flushes a line: the parent process waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
