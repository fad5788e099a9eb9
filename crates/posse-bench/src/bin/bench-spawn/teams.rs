//! Teams: the cost of starting many teammates, their cost while idle, and message latency.

mod across;
mod claims;
mod idle;
mod many;
mod words;

use posse_port::store::Page;
use std::path::Path;

use posse_protocol::{EventKind, MemberState, Outcome, PermissionMode, RealmId, Team};
use posse_testkit::test_runtime::{AgentRecord, TestRuntime};
use serde_json::Value;

use crate::Failed;

/// The name of the team that the script makes.
const TEAM: &str = "crew";

pub(crate) async fn run(words: &[&str]) -> Result<Value, Failed> {
    match words[..] {
        ["many", url, directory, count] => {
            many::run(url, Path::new(directory), count.parse()?).await
        }
        ["idle", url, directory, count, seconds] => {
            idle::run(url, Path::new(directory), count.parse()?, seconds.parse()?).await
        }
        ["words", url, directory, rounds, count] => {
            words::run(url, Path::new(directory), rounds.parse()?, count.parse()?).await
        }
        ["claims", url, directory, rounds, count] => {
            claims::run(url, Path::new(directory), rounds.parse()?, count.parse()?).await
        }
        ["across", url, directory, rounds, count] => {
            across::run(url, Path::new(directory), rounds.parse()?, count.parse()?).await
        }
        ["host", url, directory, session] => {
            across::host(url, Path::new(directory), session.parse()?).await
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

/// Starts a session whose main agent has made the script's team, and whose members are idle.
async fn crewed(test_runtime: &TestRuntime) -> Result<AgentRecord, Failed> {
    let mut session = test_runtime.session_in(PermissionMode::BypassPermissions);
    session.say("start").await?;
    loop {
        rest(&mut session).await?;
        let team = roster(test_runtime, &session).await?;
        let others = team
            .members
            .iter()
            .filter(|member| member.agent != team.lead);
        if others
            .clone()
            .all(|member| member.state == MemberState::Idle && member.waiting == 0)
        {
            return Ok(session);
        }
    }
}

/// Reads events until the main agent is done and no member is active. A member's last message may
/// still wait for it.
async fn rest(session: &mut AgentRecord) -> Result<(), Failed> {
    loop {
        if let EventKind::Ended(end) = session.event().await?.kind {
            match end.outcome {
                Outcome::Completed if end.live == 0 => return Ok(()),
                Outcome::Completed => {}
                other => return Err(format!("{other:?}").into()),
            }
        }
    }
}

fn realm(session: &AgentRecord) -> RealmId {
    RealmId::from(session.0.id.uuid())
}

/// The team as the store has it.
async fn roster(test_runtime: &TestRuntime, session: &AgentRecord) -> Result<Team, Failed> {
    let teams = test_runtime
        .store
        .teams(Some(realm(session)), Page::first(10))
        .await?;
    teams
        .into_iter()
        .next()
        .ok_or_else(|| "there is no team".into())
}
