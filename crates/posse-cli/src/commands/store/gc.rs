//! `posse store gc`.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::assemble::maintenance::{self, Collected, Unused};
use crate::config::age::milliseconds;
use crate::config::store::StoreLocation;
use crate::output::time::{age, moment, now_ms};
use crate::output::{count, size};
use crate::output::{json_line, print, say_to_person, tame};

/// Remove sessions and teams that have not been used for a long time.
///
/// A session is removed with all its agents, forks and teams, but only if none of them was used
/// since and no process hosts one. Others can use the store meanwhile. A file does not shrink; free
/// space is reused.
#[derive(clap::Args)]
pub(super) struct CollectGarbage {
    /// Time since last use, in seconds, minutes, hours, days or weeks: 90m, 12h, 30d, 8w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = milliseconds)]
    older_than: i64,
    /// Remove nothing, and list what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl CollectGarbage {
    pub(super) fn run(self, place: &StoreLocation) -> anyhow::Result<ExitCode> {
        let now = now_ms();
        let before = now.saturating_sub(self.older_than);
        let shown = if self.dry_run {
            let unused = maintenance::unused(place, before)?;
            if self.json {
                json_line(&would_go(&unused))
            } else {
                listed(&unused, now)
            }
        } else {
            let mut told = |so_far: Collected| {
                // A line for each session would bury everything else on the terminal.
                if so_far.sessions.is_multiple_of(100) {
                    say_to_person(&format!(
                        "{} removed",
                        count(so_far.sessions as usize, "session")
                    ));
                }
            };
            let gone = maintenance::collect(place, before, &mut told)?;
            let freed = match place {
                StoreLocation::File(_) => "of the file can be reused",
                StoreLocation::Server(_) => "of transcripts; the server reuses their space",
            };
            match (self.json, gone == Collected::default()) {
                (true, _) => json_line(&json!({
                    "sessions": gone.sessions, "agents": gone.agents, "teams": gone.teams,
                    "freed_bytes": gone.bytes, "dry_run": false,
                })),
                (false, true) => NOTHING.to_owned(),
                (false, false) => format!(
                    "removed {}; {} {freed}\n",
                    in_words(&gone),
                    size(gone.bytes)
                ),
            }
        };
        print(shown.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Printed if nothing was removed.
const NOTHING: &str = "nothing to remove\n";

/// Returns what was or would be removed.
fn in_words(gone: &Collected) -> String {
    format!(
        "{} ({}), {}",
        count(gone.sessions as usize, "session"),
        count(gone.agents as usize, "agent"),
        count(gone.teams as usize, "team"),
    )
}

/// Returns the sum of what would be removed.
fn sum(unused: &[Unused]) -> Collected {
    unused
        .iter()
        .fold(Collected::default(), |sum, it| Collected {
            sessions: sum.sessions + it.sessions,
            agents: sum.agents + it.agents,
            teams: sum.teams + it.teams.len() as u64,
            bytes: 0,
        })
}

fn would_go(unused: &[Unused]) -> Value {
    let Collected {
        sessions,
        agents,
        teams,
        ..
    } = sum(unused);
    let each = unused.iter().map(|it| {
        json!({
            "session_id": it.id.to_string(), "sessions": it.sessions, "agents": it.agents, "teams": it.teams,
            "used_at": moment(it.used_ms), "cwd": it.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
        })
    });
    let each: Value = each.collect();
    json!({"sessions": sessions, "agents": agents, "teams": teams, "dry_run": true, "unused": each})
}

/// Returns a line per realm, and their sum.
fn listed(unused: &[Unused], now: i64) -> String {
    if unused.is_empty() {
        return NOTHING.to_owned();
    }
    let line = |it: &Unused| {
        let mut what = Vec::new();
        if it.agents > 0 {
            what.push(format!(
                "{} ({})",
                count(it.sessions as usize, "session"),
                count(it.agents as usize, "agent")
            ));
        }
        what.extend(it.teams.iter().map(|team| format!("team {}", tame(team))));
        if what.is_empty() {
            what.push("remains of an earlier removal".into());
        }
        let place = it.cwd.as_ref().map_or_else(String::new, |cwd| {
            format!(", in {}", tame(&cwd.to_string_lossy()))
        });
        format!(
            "{}  {:>4}  {}{place}\n",
            it.id,
            age(now.saturating_sub(it.used_ms)),
            what.join(", ")
        )
    };
    let lines: String = unused.iter().map(line).collect();
    format!("{lines}would remove {}\n", in_words(&sum(unused)))
}
