//! `cargo xtask bench NAME`: a table for people, then one JSON line.

mod fork;
mod model;
mod postgres;
mod program;
mod server;
mod spawn;
mod startup;
mod store;
mod team;
mod turn;
mod worktree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

/// How often a quick bench is run before it fails: what has become slow is slow each time, a machine that was
/// away for a moment is not.
const TRIES: usize = 3;

/// How long a bench may take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As the figures are published.
    Full,
    /// Enough to see that nothing fell over: CI's machine is busy, so a figure fails only when it
    /// is three times its bar, and is so again whenever it is measured anew.
    Quick,
}

/// A figure with the bar it must reach.
struct Figure {
    /// Its name; `outer.inner` is a member of an object.
    key: &'static str,
    value: f64,
    bar: Bar,
}

/// What is good enough.
#[derive(Clone, Copy)]
enum Bar {
    Most(f64),
    Least(f64),
    /// At most so much. A quick run may take so much more besides: others use the disk that it waits for, or the bar is
    /// known to be missed.
    MostBeside(f64, f64),
}

impl Bar {
    /// Whether `value` is good enough; a bar with slack is so many times easier.
    fn reached(self, value: f64, slack: f64) -> bool {
        match self {
            Self::Most(most) => value <= most * slack,
            Self::Least(least) => value * slack >= least,
            Self::MostBeside(most, _) if slack == 1.0 => value <= most,
            Self::MostBeside(most, others) => value <= most * slack + others,
        }
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Most(most) | Self::MostBeside(most, _) => write!(f, "≤ {most:.3}"),
            Self::Least(least) => write!(f, "≥ {least:.3}"),
        }
    }
}

/// What a bench found.
struct Found {
    figures: Vec<Figure>,
    /// Things that must simply be so.
    truths: Vec<(&'static str, bool)>,
    notes: Vec<String>,
}

pub(crate) fn run(root: &Path, name: &str, effort: Effort) -> Result<ExitCode> {
    let binaries = build(root)?;
    let tries = if effort == Effort::Quick { TRIES } else { 1 };
    for _ in 1..tries {
        if once(&binaries, name, effort)? {
            return Ok(ExitCode::SUCCESS);
        }
        println!("measured again: it may have been the machine");
    }
    Ok(if once(&binaries, name, effort)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures once, prints what was found, and says whether it is good enough.
fn once(binaries: &Path, name: &str, effort: Effort) -> Result<bool> {
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
        _ => bail!(
            "there is no bench `{name}`; there are startup, model, turn, store, spawn, worktree, fork, team and postgres"
        ),
    };
    println!("load before {load}, after {}", self::load()?);
    for note in &found.notes {
        println!("{note}");
    }
    let mut line = Map::new();
    let mut good = true;
    let slack = if effort == Effort::Quick { 3.0 } else { 1.0 };
    for Figure { key, value, bar } in found.figures {
        let verdict = if bar.reached(value, 1.0) {
            "reached"
        } else {
            "MISSED"
        };
        println!("{key:<36} {value:>10.3}   bar {bar:>9}   {verdict}");
        good &= bar.reached(value, slack);
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
        good &= truth;
        line.insert(key.to_owned(), Value::from(truth));
    }
    line.insert("load".to_owned(), Value::from(load));
    println!("{}", Value::Object(line));
    Ok(good)
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
        .context("the load is no number")
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
