//! The same messages between two processes: the lead is here, its teammates are in another.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use posse_protocol::AgentId;
use posse_runtime::session::team::host::{Hosting, Members};
use posse_testkit::test_runtime::TestRuntime;
use serde_json::{Value, json};

use super::crewed;
use super::words::{MEMBERS, Waits, exchange};
use crate::Failed;
use crate::record;

pub(super) async fn run(
    url: &str,
    directory: &Path,
    rounds: u32,
    count: usize,
) -> Result<Value, Failed> {
    let (mut waits, mut next) = (Waits::default(), 0);
    for round in 0..rounds {
        let place = directory.join(round.to_string());
        let test_runtime = TestRuntime::new(url, &place, 64)?;
        let session = crewed(&test_runtime).await?;
        // Releases the members: the first process to ask gets them.
        test_runtime.runtime.shut_down().await;
        let id = session.id();
        drop((session, test_runtime));
        let mut child = start(url, &place, &id)?;
        let test_runtime = TestRuntime::new(url, &place, 64)?;
        let mut session = test_runtime.resumed(&id).await?;
        exchange(&mut session, count).await?;
        waits.take(&record::since(url, &id, &mut next).await?, count)?;
        child.kill()?;
        child.wait()?;
    }
    Ok(waits.told())
}

/// Starts the other process, and waits until it holds all members.
#[expect(clippy::disallowed_methods, reason = "it measures processes")]
fn start(url: &str, place: &Path, session: &str) -> Result<Child, Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["teams", "host", url]).arg(place).arg(session);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("stdout is piped")?).read_line(&mut line)?;
    match line.trim() == MEMBERS.to_string() {
        true => Ok(child),
        false => Err(format!("{line} members are in the other process").into()),
    }
}

/// Hosts the members of a session until it is killed.
pub(super) async fn host(url: &str, directory: &Path, session: AgentId) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let hosting = Hosting {
        session,
        members: Members::Free { most: None },
    };
    let mut hosted = test_runtime
        .runtime
        .host(hosting, test_runtime.setup.clone())
        .await?;
    println!("{}", hosted.agents.len());
    while hosted.events.recv().await.is_some() {}
    Ok(json!({}))
}
