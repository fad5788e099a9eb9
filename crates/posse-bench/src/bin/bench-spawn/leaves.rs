//! The leaf work of posse: one reply starts many sub-agents, each of which makes two requests and
//! runs a command.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::record::{self, millis};
use crate::{Failed, cpu_ms, disk};
use posse_testkit::test_runtime::TestRuntime;

pub(crate) async fn run(url: &str, directory: &Path, count: u32) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, 64)?;
    let mut warm = test_runtime.session();
    warm.say("warm up").await?;
    warm.end().await?;
    disk::checkpoint(&test_runtime.home())?;
    let before = disk::allocated(&test_runtime.home())?;

    let mut session = test_runtime.session();
    let (cpu, clock) = (cpu_ms()?, Instant::now());
    session.say("go").await?;
    session.end().await?;
    let (cpu, wall) = (cpu_ms()? - cpu, clock.elapsed().as_secs_f64());

    let log = disk::checkpoint(&test_runtime.home())?;
    let after = disk::allocated(&test_runtime.home())?;
    let requests = record::of_session(url, &session.id()).await?;
    let expected = 2 + 2 * count as usize;
    if requests.len() != expected {
        return Err(format!("{} requests instead of {expected}", requests.len()).into());
    }
    let told = requests.first().ok_or("there was no request")?.ended()?;
    let mut first: Vec<f64> = Vec::new();
    for (at, request) in requests
        .iter()
        .enumerate()
        .filter(|(_, request)| !request.is_main())
    {
        if !requests[..at]
            .iter()
            .any(|before| before.agent() == request.agent())
        {
            first.push(millis(told, request.at_us));
        }
    }
    let each = f64::from(count);
    Ok(json!({
        "wall_s": wall,
        "cpu_ms": cpu,
        "first_child_request_ms": first.first(),
        "last_child_request_ms": first.last(),
        "disk_kb_each": (after as f64 - before as f64) / 1024.0 / each,
        "log_kb": log as f64 / 1024.0,
    }))
}
