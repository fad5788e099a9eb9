//! `posse store check`.

use std::path::Path;
use std::process::ExitCode;

use posse_store::maintain;
use serde_json::json;

use super::shown;
use crate::hint::FAILED;
use crate::output::{json_line, print, say_to_person, tame};

/// Check that everything is what was written: the file, the checksums of all transcripts, and what must
/// hold between mail, tasks and teams.
///
/// Others can work meanwhile. Exits with 1 if something is wrong, and lists it.
#[derive(clap::Args)]
pub(super) struct Check {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self, path: &Path) -> anyhow::Result<ExitCode> {
        let health = maintain::check(path, &mut |what| say_to_person(&format!("looking at {what}")))?;
        if self.json {
            let object = json!({
                "store": path.to_string_lossy(), "agents": health.agents, "entries": health.entries,
                "faults": health.faults,
            });
            print(json_line(&object).as_bytes())?;
        } else if health.faults.is_empty() {
            let (agents, entries) = (health.agents, health.entries);
            let line = format!("{} is whole: {agents} agents, {entries} entries\n", shown(path));
            print(line.as_bytes())?;
        } else {
            for fault in &health.faults {
                print(format!("{}\n", tame(fault)).as_bytes())?;
            }
            let advice = "keep a copy (`posse store backup FILE`) before anything else; what can be read of a \
                          session, `posse sessions export` gives";
            crate::hint::tell(&format!("{} is not what it should be", path.display()), Some(advice));
        }
        Ok(if health.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
    }
}
