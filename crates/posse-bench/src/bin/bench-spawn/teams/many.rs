//! Many teammates started by one reply.

use std::collections::BTreeSet;
use std::path::Path;

use posse_protocol::MemberState;
use posse_testkit::test_runtime::TestRuntime;
use serde_json::{Value, json};

use super::{crewed, roster};
use crate::Failed;
use crate::record::{self, millis};

/// Measures from the end of the reply that starts them to the first request of the last of them.
pub(super) async fn run(url: &str, directory: &Path, count: usize) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, count + 10)?;
    let session = crewed(&test_runtime).await?;
    let team = roster(&test_runtime, &session).await?;
    let idle = team
        .members
        .iter()
        .filter(|member| member.agent != team.lead);
    let idle = idle
        .filter(|member| member.state == MemberState::Idle && member.held)
        .count();
    let requests = record::of_session(url, &session.id()).await?;
    // The first makes the team.
    let told = requests
        .iter()
        .filter(|request| request.is_main())
        .nth(1)
        .ok_or("nobody was started")?;
    let mut seen = BTreeSet::new();
    let below = requests.iter().filter(|request| !request.is_main());
    let first = below.filter(|request| seen.insert(request.agent().to_owned()));
    let last = first
        .map(|request| request.at_us)
        .max()
        .ok_or("nobody has asked anything")?;
    let took = millis(told.ended()?, last);
    Ok(json!({
        "ok": idle == count && seen.len() == count,
        "idle": idle,
        "asked": seen.len(),
        "took_ms": took,
        "ms_each": took / count as f64,
    }))
}
