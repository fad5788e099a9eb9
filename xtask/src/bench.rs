//! `cargo xtask bench NAME`: a table for people, then one JSON line.

mod attach;
mod feed;
mod fork;
mod hooks;
mod mcp;
mod model;
mod postgres;
mod program;
mod sandbox;
mod server;
mod spawn;
mod startup;
mod store;
mod team;
mod tui;
mod turn;
mod worktree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// How far ratios of processor time may miss their bar: a busy machine slows both sides alike.
const OF_CPU: f64 = 0.5;
/// How far ratios of speed may miss it: others take a core, or the disk, from one side and not from the other.
const OF_SPEED: f64 = 0.6;
/// How often a quick bench is run before a figure fails: what has become slow is slow each time, a machine that was
/// away for a moment is not.
const TRIES: usize = 3;

/// How long a bench may take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As the figures are published.
    Full,
    /// A sample: enough to see that nothing fell over.
    Quick,
}

/// A figure with its bar. A bar is where the figure should be on a quiet machine.
struct Figure {
    /// Its name; `outer.inner` is a member of an object.
    key: &'static str,
    value: f64,
    bar: Bar,
    judged: Judged,
}

impl Figure {
    /// A time or a size. It depends on the machine, so people compare it and no run fails for it.
    fn printed(key: &'static str, value: f64, bar: Bar) -> Self {
        let judged = Judged::Printed;
        Self {
            key,
            value,
            bar,
            judged,
        }
    }

    /// A count that is the same on every machine. A run fails if it misses the bar.
    fn exact(key: &'static str, value: f64, bar: Bar) -> Self {
        let judged = Judged::Within(0.0);
        Self {
            key,
            value,
            bar,
            judged,
        }
    }

    /// A ratio of two sides that took turns in this run. A run fails if it misses the bar by more than `margin`, a
    /// share of the bar.
    fn ratio(key: &'static str, value: f64, bar: Bar, margin: f64) -> Self {
        let judged = Judged::Within(margin);
        Self {
            key,
            value,
            bar,
            judged,
        }
    }

    /// Says how it compares with its bar.
    fn verdict(&self) -> Verdict {
        match self.judged {
            _ if self.bar.holds(self.value, 0.0) => Verdict::Held,
            Judged::Within(margin) if !self.bar.holds(self.value, margin) => Verdict::Failed,
            _ => Verdict::Missed,
        }
    }
}

/// What it means that a figure misses its bar.
#[derive(Clone, Copy)]
enum Judged {
    Printed,
    /// It fails beyond this share of the bar.
    Within(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Held,
    /// It is beyond the bar, and does not fail.
    Missed,
    Failed,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Held => "held",
            Self::Missed => "missed",
            Self::Failed => "FAILED",
        })
    }
}

/// What is good enough.
#[derive(Clone, Copy)]
enum Bar {
    Most(f64),
    Least(f64),
}

impl Bar {
    /// Returns true if `value` is good enough with a margin of this share. What is not a number never is.
    fn holds(self, value: f64, margin: f64) -> bool {
        match self {
            Self::Most(most) => value <= most * (1.0 + margin),
            Self::Least(least) => value >= least * (1.0 - margin),
        }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bar = match self.bar {
            Bar::Most(most) => format!("≤ {most:.3}"),
            Bar::Least(least) => format!("≥ {least:.3}"),
        };
        let margin = match self.judged {
            Judged::Printed => "printed".to_owned(),
            Judged::Within(0.0) => "exact".to_owned(),
            Judged::Within(margin) => format!("margin {:.0} %", margin * 100.0),
        };
        let (key, value, verdict) = (self.key, self.value, self.verdict());
        write!(
            f,
            "{key:<36} {value:>10.3}   bar {bar:<10} {margin:<12} {verdict}"
        )
    }
}

/// What a bench found.
struct Found {
    figures: Vec<Figure>,
    /// Things that must simply be so.
    truths: Vec<(&'static str, bool)>,
    notes: Vec<String>,
}

/// Measures, and fails if a count or a ratio is not good enough.
pub(crate) fn run(root: &Path, name: &str, effort: Effort) -> Result<ExitCode> {
    let binaries = build(root)?;
    let mut failed = once(&binaries, name, effort)?;
    let again = if effort == Effort::Quick {
        TRIES - 1
    } else {
        0
    };
    for _ in 0..again {
        if failed.is_empty() {
            break;
        }
        let names = failed.join(", ");
        println!("measured again, since it may have been the machine: {names}");
        let now = once(&binaries, name, effort)?;
        failed.retain(|key| now.contains(key));
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures once, prints what was found, and returns what failed.
fn once(binaries: &Path, name: &str, effort: Effort) -> Result<Vec<&'static str>> {
    let load = load()?;
    let found = match name {
        "startup" => startup::run(binaries, effort)?,
        "model" => model::run(binaries, effort)?,
        "turn" => turn::run(binaries, effort)?,
        "store" => store::run(binaries, effort)?,
        "spawn" => spawn::run(binaries, effort)?,
        "worktree" => worktree::run(binaries, effort)?,
        "fork" => fork::run(binaries, effort)?,
        "team" => team::run(binaries, effort)?,
        "postgres" => postgres::run(binaries, effort)?,
        "feed" => feed::run(binaries, effort)?,
        "tui" => tui::run(binaries, effort)?,
        "sandbox" => sandbox::run(binaries, effort)?,
        "hooks" => hooks::run(binaries, effort)?,
        "mcp" => mcp::run(binaries, effort)?,
        _ => bail!(
            "there is no bench `{name}`; there are startup, model, turn, store, spawn, worktree, fork, team, postgres, feed, tui, sandbox, hooks and mcp"
        ),
    };
    println!("load before {load}, after {}", self::load()?);
    for note in &found.notes {
        println!("{note}");
    }
    let mut line = Map::new();
    let mut failed = Vec::new();
    for figure in found.figures {
        println!("{figure}");
        if figure.verdict() == Verdict::Failed {
            failed.push(figure.key);
        }
        let Figure { key, value, .. } = figure;
        let value = Value::from((value * 1000.0).round() / 1000.0);
        match key.split_once('.') {
            Some((outer, inner)) => {
                let object = line
                    .entry(outer)
                    .or_insert_with(|| Value::Object(Map::new()));
                object[inner] = value;
            }
            None => drop(line.insert(key.to_owned(), value)),
        }
    }
    for (key, truth) in found.truths {
        println!("{key:<36} {truth:>10}");
        if !truth {
            failed.push(key);
        }
        line.insert(key.to_owned(), Value::from(truth));
    }
    line.insert("load".to_owned(), Value::from(load));
    println!("{}", Value::Object(line));
    Ok(failed)
}

/// Builds what is measured, and says where it is.
fn build(root: &Path) -> Result<PathBuf> {
    let built = crate::cargo(root)
        .args([
            "build",
            "--quiet",
            "--profile",
            "bench",
            "-p",
            "posse-cli",
            "-p",
            "posse-testkit",
            "-p",
            "posse-bench",
            "--bins",
        ])
        .status()?;
    ensure!(built.success(), "the bench build failed");
    let target =
        std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), PathBuf::from);
    Ok(target.join("release"))
}

/// The machine's load: a figure from a busy machine is an upper bound.
fn load() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    text.split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .context("the load is not a number")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Processor time of a process so far, all its threads, in milliseconds.
fn cpu_ms(pid: u32) -> Result<f64> {
    let mut nanos = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += text
            .split(' ')
            .next()
            .and_then(|ns| ns.parse::<f64>().ok())
            .unwrap_or(0.0);
    }
    Ok(nanos / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_and_ratios_fail() {
        let (most, least) = (Bar::Most(2.0), Bar::Least(2.0));
        assert_eq!(Figure::printed("a", 9.0, most).verdict(), Verdict::Missed);
        assert_eq!(Figure::printed("a", 2.0, most).verdict(), Verdict::Held);
        assert_eq!(Figure::exact("a", 2.1, most).verdict(), Verdict::Failed);
        assert_eq!(Figure::exact("a", 2.0, least).verdict(), Verdict::Held);
        assert_eq!(
            Figure::ratio("a", 2.9, most, 0.5).verdict(),
            Verdict::Missed
        );
        assert_eq!(
            Figure::ratio("a", 3.1, most, 0.5).verdict(),
            Verdict::Failed
        );
        assert_eq!(
            Figure::ratio("a", 1.1, least, 0.5).verdict(),
            Verdict::Missed
        );
        assert_eq!(
            Figure::ratio("a", 0.9, least, 0.5).verdict(),
            Verdict::Failed
        );
        assert_eq!(
            Figure::ratio("a", f64::NAN, least, 0.5).verdict(),
            Verdict::Failed
        );
    }
}
