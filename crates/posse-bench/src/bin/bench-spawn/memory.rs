//! Memory of sub-agents with an open reply.

use std::path::Path;

use serde_json::{Value, json};

use crate::Failed;
use crate::record;
use posse_testkit::test_runtime::TestRuntime;

pub(crate) async fn run(url: &str, directory: &Path, count: usize) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, count + 100)?;
    let mut warm = test_runtime.session();
    warm.say("warm up").await?;
    warm.end().await?;
    let seen = record::all(url).await?.len();
    let mut session = test_runtime.session();
    let before = resident_kb()?;
    session.say("go").await?;
    let live = session.end().await?.live;
    if live != count {
        return Err(format!("{live} are live instead of {count}").into());
    }
    // Two of the main agent, and one of each sub-agent.
    record::wait_for(url, seen + 2 + count).await?;
    let after = resident_kb()?;
    test_runtime.runtime.shut_down().await;
    Ok(json!({"kb_each": (after - before) / count as f64, "before_kb": before}))
}

/// Returns the resident memory of this process, in kilobytes.
pub(crate) fn resident_kb() -> Result<f64, Failed> {
    status_kb("VmRSS:")
}

/// Returns the peak memory since it was [reset](forget_peak).
pub(crate) fn peak_kb() -> Result<f64, Failed> {
    status_kb("VmHWM:")
}

/// Resets the peak to the current value.
pub(crate) fn forget_peak() -> Result<(), Failed> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn status_kb(name: &str) -> Result<f64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .ok_or("the kernel does not say")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
