//! What a turn costs: beside a bare program that does the same work, and beside bare SQLite.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::program::Bench;
use super::server::Server;
use super::{Bar, Effort, Figure, Found, OF_CPU, OF_SPEED, median};

/// A reply of some sixty deltas.
const SCRIPT: &str = "[[rule]]\nreply = [{ text = \"TEXT\" }]\n";

/// Number of runs of fifty turns on each side.
const PAIRS: u32 = 17;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let rounds = if quick { 1 } else { 5 };
    let bench = Bench::new(binaries, "bench-runtime")?;
    let mut notes = Vec::new();
    let (first, cpu, rss) = bench.one_turn(
        &binaries.join("posse"),
        if quick { 10 } else { 40 },
        binaries,
    )?;

    let server = Server::start(
        binaries,
        &SCRIPT.replace("TEXT", &"A word or two. ".repeat(24)),
    )?;
    // One run takes a few milliseconds and swings with the machine: many pairs of neighbours, and the
    // median of their ratios.
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let side = |kind: &str| bench.measure("cpu_ms", &["turns", kind, &server.url, "DIR", "50"]);
        ours.push(side("posse")?);
        bare.push(side("bare")?);
    }
    notes.push(format!(
        "fifty turns, cpu ms: posse {ours:.1?}, bare {bare:.1?}"
    ));
    let ratios = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare);
    let fifty = median(ratios.collect());
    let mut growths = Vec::new();
    for _ in 0..rounds.min(3) {
        let at = |kilobytes: &str| bench.measure("cpu_ms_per_turn", &["growth", kilobytes, "DIR"]);
        let (small, large) = (at("10")?, at(if quick { "2000" } else { "10000" })?);
        notes.push(format!(
            "a turn apart from sending, cpu ms: {small:.3} at 10 kB, {large:.3} at 10 MB"
        ));
        growths.push(large / small);
    }
    let mut steps = Vec::new();
    for (key, agents, batches) in [
        ("steps_ratio_vs_bare_sqlite.1", "1", "4000"),
        ("steps_ratio_vs_bare_sqlite.16", "16", "1500"),
        ("steps_ratio_vs_bare_sqlite.256", "256", "300"),
    ] {
        let ratio = |_| -> Result<f64> {
            let side =
                |kind: &str| bench.measure("per_s", &["steps", kind, agents, batches, "DIR"]);
            let (ours, bare) = (side("posse")?, side("bare")?);
            notes.push(format!(
                "{agents} agents, steps/s: posse {ours:.0}, bare {bare:.0}"
            ));
            Ok(ours / bare)
        };
        steps.push((key, median((0..rounds).map(ratio).collect::<Result<_>>()?)));
    }
    let agents = if quick { "200" } else { "1000" };
    let many = bench.run(&["agents", &server.url, "DIR", agents, "10"])?;
    notes.push(format!("{agents} agents, 10 turns each: {many}"));
    let bars = [Bar::Least(0.4), Bar::Least(0.7), Bar::Least(0.8)];
    let steps = steps
        .into_iter()
        .zip(bars)
        .map(|((key, value), bar)| Figure::ratio(key, value, bar, OF_SPEED));
    Ok(Found {
        figures: [
            Figure::printed("first_request_ms", first, Bar::Most(25.0)),
            Figure::printed("turn_cpu_ms", cpu, Bar::Most(30.0)),
            Figure::printed("peak_rss_mb", rss, Bar::Most(30.0)),
            Figure::ratio(
                "fifty_turns_cpu_ratio_vs_bare",
                fifty,
                Bar::Most(1.3),
                OF_CPU,
            ),
            Figure::ratio(
                "cpu_per_turn_growth_10kb_to_10mb",
                median(growths),
                Bar::Most(1.2),
                OF_CPU,
            ),
        ]
        .into_iter()
        .chain(steps)
        .collect(),
        truths: vec![(
            "agents_completed",
            many["completed"] == agents.parse::<u64>()?,
        )],
        notes,
    })
}

impl Bench {
    /// `posse -p hello`: milliseconds to the first request, processor time and peak memory of it all.
    fn one_turn(&self, posse: &Path, rounds: u32, binaries: &Path) -> Result<(f64, f64, f64)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let home = self.directory.fresh()?;
        let mut first = Vec::new();
        for _ in 0..rounds {
            let mut command = Command::new(posse);
            command
                .arg("-p")
                .env("POSSE_HOME", &home)
                .current_dir(&home);
            first.push(super::startup::first_request(&mut command, &listener)?.0);
        }
        let server = Server::start(binaries, "[[rule]]\nreply = [{ text = \"hello\" }]\n")?;
        let (mut cpu, mut rss) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let mut command = Command::new(&self.program);
            command
                .arg("usage")
                .arg(posse)
                .args(["-p", "--base-url", &server.url, "hello"]);
            let output = command
                .env("POSSE_HOME", &home)
                .current_dir(&home)
                .output()?;
            let used: Value = serde_json::from_slice(&output.stdout)?;
            ensure!(used["success"] == true, "a turn failed: {used}");
            cpu.push(used["cpu_ms"].as_f64().context("cpu_ms")?);
            rss.push(used["rss_mb"].as_f64().context("rss_mb")?);
        }
        Ok((median(first), median(cpu), median(rss)))
    }
}
