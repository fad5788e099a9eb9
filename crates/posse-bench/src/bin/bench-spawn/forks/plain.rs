//! Plain sub-agents of one type, as posse really starts them.

use std::path::Path;

use serde_json::{Value, json};

use super::{bare, common};
use crate::{Failed, record};
use posse_testkit::test_runtime::posse;

#[expect(
    clippy::disallowed_methods,
    reason = "it measures posse as people run it"
)]
pub(crate) async fn run(url: &str, directory: &Path) -> Result<Value, Failed> {
    let work = directory.join("work");
    std::fs::create_dir_all(&work)?;
    let mut command = tokio::process::Command::new(posse()?);
    command
        .args(["-p", "--base-url", url, "go"])
        .env("POSSE_HOME", directory.join("home"))
        .current_dir(work);
    let output = command.output().await?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let requests = record::all(url).await?;
    let bodies: Vec<String> = requests
        .iter()
        .filter(|request| !request.is_main())
        .map(bare)
        .collect();
    let longest = bodies
        .iter()
        .map(String::len)
        .max()
        .ok_or("there were no sub-agents")?;
    let shared = common(&bodies);
    Ok(json!({
        "agents": bodies.len(),
        "bytes": longest,
        "differ_from": bodies[0].get(shared.saturating_sub(40)..).map(|rest| rest.chars().take(120).collect::<String>()),
        "share": shared as f64 / longest as f64,
    }))
}
