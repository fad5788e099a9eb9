//! Sub-agents that wait for a person.

use std::path::Path;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_protocol::{AgentId, EventKind};
use posse_runtime::live::setup::Approver;
use posse_testkit::test_runtime::{AgentRecord, TestRuntime};
use serde_json::{Value, json};

use crate::memory::resident_kb;
use crate::{Failed, cpu_ms};

/// Time that a question waits: longer than the measurement.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Measures memory and processor time of sub-agents that have asked and are not answered.
pub(crate) async fn run(
    url: &str,
    directory: &Path,
    count: usize,
    seconds: u64,
) -> Result<Value, Failed> {
    let mut test_runtime = TestRuntime::new(url, directory, 64)?;
    test_runtime.setup.approver = Approver::Anyone(PATIENCE);
    // The first ones cause the temporary memory of a start, so that the others only add what they keep.
    let first = asking(&test_runtime, count).await?;
    let before = resident_kb()?;
    let second = asking(&test_runtime, count).await?;
    let after = resident_kb()?;
    let cpu = cpu_ms()?;
    SystemClock::default()
        .sleep(Duration::from_secs(seconds))
        .await;
    let used = cpu_ms()? - cpu;
    drop((first, second));
    test_runtime.runtime.shut_down().await;
    Ok(json!({
        "kb_each": (after - before) / count as f64,
        "before_kb": before,
        "cpu_ms_per_min": used * 60.0 / seconds as f64,
    }))
}

/// Starts a session, and returns it when all its sub-agents wait for a person.
async fn asking(test_runtime: &TestRuntime, count: usize) -> Result<AgentRecord, Failed> {
    let mut session = test_runtime.session();
    session.say("go").await?;
    let mut asked: Vec<AgentId> = Vec::new();
    while asked.len() < count {
        let event = session.event().await?;
        match event.kind {
            EventKind::ApprovalRequested(_) => asked.push(event.agent),
            EventKind::Denied(denial) => return Err(format!("denied: {}", denial.why).into()),
            _ => {}
        }
    }
    Ok(session)
}
