//! Idle teammates.

use std::path::Path;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_testkit::test_runtime::TestRuntime;
use serde_json::{Value, json};

use super::{crewed, roster};
use crate::memory::resident_kb;
use crate::{Failed, cpu_ms};

/// Number of teams started after the first, one after another. The first has already caused the
/// temporary memory of a start, so that these only add what they keep.
const MORE: usize = 3;

/// Measures the processor time of the process while teammates are idle, and their memory.
pub(super) async fn run(
    url: &str,
    directory: &Path,
    count: usize,
    seconds: u64,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, count + 10)?;
    let mut all = vec![crewed(&test_runtime).await?];
    let members = roster(&test_runtime, &all[0]).await?.members.len();
    if members != count + 1 {
        return Err(format!("{members} are in the team").into());
    }
    let cpu = cpu_ms()?;
    SystemClock::default()
        .sleep(Duration::from_secs(seconds))
        .await;
    let used = cpu_ms()? - cpu;
    let before = resident_kb()?;
    for _ in 0..MORE {
        all.push(crewed(&test_runtime).await?);
    }
    let after = resident_kb()?;
    Ok(json!({
        "kb_each": (after - before) / (MORE * count) as f64,
        "before_kb": before,
        "cpu_ms_per_min": used * 60.0 / seconds as f64,
    }))
}
