//! Sub-agents with worktrees of their own: what they wait for beyond what git takes to make them.
//!
//! One reply starts sixteen. What is told is the time from that reply to each one's first request, less the
//! same without worktrees, less what plain git takes that makes as many at once in the same repository.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::program::Bench;
use super::spawn::calls;
use super::{Bar, Effort, Figure, Found, median};

/// How many are started together.
const MANY: u32 = 16;

const SHARED: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "done" }]
[[rule]]
when.tool = "done"
reply = [{ text = "all done" }]
[[rule]]
reply = [MANY]
"#;

/// Nobody does anything before all are there, as far as a model's time to answer can see to that: but for a look, since
/// the first one's reply is waited for by the others.
const ISOLATED: &str = r#"
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [{ tool = "Glob", input = { pattern = "*.none" } }]
[[rule]]
when.agent = "re:^/main/"
when.tool = "made it"
reply = [{ text = "done" }]
[[rule]]
when.agent = "re:^/main/"
when.user = "re:piece \\d*[13579]\\."
delay_ms = DELAY
reply = [{ tool = "Bash", input = { command = "echo something >made.txt && echo made it" } }]
[[rule]]
when.agent = "re:^/main/"
delay_ms = DELAY
reply = [{ text = "done" }]
[[rule]]
when.tool = "done"
reply = [{ text = "all done" }]
[[rule]]
reply = [MANY]
"#;

/// How large all of it is.
struct Size {
    files: &'static str,
    rounds: usize,
    /// How long the model takes to answer sub-agents, in milliseconds.
    delay: &'static str,
}

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let size = match effort {
        Effort::Full => Size {
            files: "10000",
            rounds: 5,
            delay: "5000",
        },
        Effort::Quick => Size {
            files: "2000",
            rounds: 2,
            delay: "5000",
        },
    };
    let bench = Bench::in_memory(binaries, "bench-spawn")?;
    let repository = bench.directory.fresh()?.join("repository");
    let repository = repository.to_str().context("the place has an odd name")?;
    bench.run(&["worktrees", "prepare", repository, size.files])?;
    let shared = SHARED.replace("MANY", &calls(MANY, "piece", "run_in_background = false"));
    let how = r#"run_in_background = false, isolation = "worktree""#;
    let isolated = ISOLATED
        .replace("MANY", &calls(MANY, "piece", how))
        .replace("DELAY", size.delay);
    let many = MANY.to_string();
    let (mut rest, mut wrong) = (Vec::new(), Vec::new());
    let mut notes = vec![format!(
        "{MANY} at once in a repository of {} files, medians in ms",
        size.files
    )];
    for _ in 0..size.rounds {
        let plain = times(&bench.run(&["worktrees", "plain", repository, "DIR", &many])?)?;
        let alone = bench.asking(
            binaries,
            &shared,
            &["worktrees", "shared", "URL", repository, "DIR", &many],
        )?;
        let alone = times(&alone)?;
        let ours = bench.asking(
            binaries,
            &isolated,
            &["worktrees", "isolated", "URL", repository, "DIR", &many],
        )?;
        wrong.extend(
            ours["wrong"]
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string),
        );
        let ours = times(&ours)?;
        let made = bench.run(&["worktrees", "made", repository, "DIR", &many])?;
        notes.push(format!(
            "with worktrees {:.1}, without {:.1}, git alone {:.1}; posse without agents {:.1}, and {:.1} to remove one",
            median(ours.clone()),
            median(alone.clone()),
            median(plain.clone()),
            median(times(&made)?),
            made["released_ms_each"].as_f64().unwrap_or(f64::NAN),
        ));
        // The first of one side is compared with the first of the other, and so on.
        rest.extend(
            ours.iter()
                .zip(&alone)
                .zip(&plain)
                .map(|((ours, alone), plain)| ours - alone - plain),
        );
    }
    notes.extend(wrong.iter().cloned());
    Ok(Found {
        figures: vec![Figure::printed(
            "over_git_ms_p50",
            median(rest),
            Bar::Most(100.0),
        )],
        truths: vec![("n16_ok", wrong.is_empty())],
        notes,
    })
}

/// What each took, the least first.
fn times(found: &Value) -> Result<Vec<f64>> {
    let times: Option<Vec<f64>> = found["ms"]
        .as_array()
        .and_then(|all| all.iter().map(Value::as_f64).collect());
    times.with_context(|| format!("{found} has no times"))
}
