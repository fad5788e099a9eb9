//! Teammates that do nothing.

use std::path::Path;
use std::time::Duration;

use posse_runtime::port::clock::{Clock as _, SystemClock};
use posse_testkit::house::House;
use posse_testkit::rig::farewell;
use serde_json::{Value, json};

use super::{crewed, roster};
use crate::memory::resident_kb;
use crate::{Failed, cpu_ms};

/// What they take in memory, and what the process does in so many seconds.
pub(super) async fn run(url: &str, directory: &Path, count: usize, seconds: u64) -> Result<Value, Failed> {
    let house = House::new(url, directory, count + 10)?;
    // As many as are measured: what a process keeps of them is not theirs.
    farewell(crewed(&house).await?.0).await;
    let before = resident_kb()?;
    let session = crewed(&house).await?;
    let after = resident_kb()?;
    let members = roster(&house, &session).await?.members.len();
    if members != count + 1 {
        return Err(format!("{members} are in the team").into());
    }
    let cpu = cpu_ms()?;
    SystemClock::default().sleep(Duration::from_secs(seconds)).await;
    let used = cpu_ms()? - cpu;
    Ok(json!({
        "kb_each": (after - before) / count as f64,
        "before_kb": before,
        "cpu_ms_per_min": used * 60.0 / seconds as f64,
    }))
}
