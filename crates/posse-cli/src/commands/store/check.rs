//! `posse store check`.

use std::process::ExitCode;

use serde_json::json;

use super::shown;
use crate::assemble::maintenance;
use crate::config::store::StoreLocation;
use crate::error::FAILED;
use crate::output::{json_line, print, say_to_person, tame};

/// Check the store for damage.
///
/// A file: all that SQLite itself can verify. Transcripts: every entry against its chain of
/// checksums, and what agents share against its hash. The rest has no checksums: for agents, forks,
/// mail, tasks and teams, counts and references are checked. Others can use the store meanwhile. If
/// something is wrong, lists it, one problem per line, and exits with 1.
#[derive(clap::Args)]
pub(super) struct CheckStore {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CheckStore {
    pub(super) fn run(self, place: &StoreLocation) -> anyhow::Result<ExitCode> {
        let mut told = |what: &str| say_to_person(&format!("checking {what}"));
        let health = maintenance::check(place, &mut told)?;
        let wrong = format!("{} is damaged", place.shown());
        let advice = "make a copy first (`posse store backup FILE`); `posse sessions export` saves \
                      what can be read of a session";
        if self.json {
            let mut object = json!({
                "store": place.shown(), "agents": health.agents, "entries": health.entries,
                "teams": health.teams, "tasks": health.tasks, "messages": health.messages,
                "misplaced": health.misplaced, "faults": health.faults,
            });
            if !health.faults.is_empty() {
                (object["error"], object["hint"]) = (json!(wrong), json!(advice));
            }
            print(json_line(&object).as_bytes())?;
        } else if health.faults.is_empty() {
            print(format!("{} is intact: {}\n", shown(place), in_words(&health)).as_bytes())?;
            if health.misplaced > 0 {
                print(format!("{}\n", in_one_database(health.misplaced)).as_bytes())?;
            }
        } else {
            for fault in &health.faults {
                print(format!("{}\n", tame(fault)).as_bytes())?;
            }
            crate::error::tell(&wrong, Some(advice));
        }
        Ok(if health.faults.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

/// Returns what agents of an older posse mean for the store.
fn in_one_database(misplaced: u64) -> String {
    format!(
        "agents with IDs of an older posse: {misplaced}; the store cannot be divided over several \
         databases until their sessions are removed"
    )
}

/// Returns the counts of what was checked.
fn in_words(health: &maintenance::Health) -> String {
    let counted = [
        (health.agents, "agent", "agents"),
        (health.entries, "entry", "entries"),
        (health.teams, "team", "teams"),
        (health.tasks, "task", "tasks"),
        (health.messages, "message", "messages"),
    ];
    let words = counted
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
    words.join(", ")
}
