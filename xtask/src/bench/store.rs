//! What the store promises in numbers: how soon agents are woken, and that nothing grows with history.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::program::Bench;
use super::{Bar, Effort, Figure, Found, OF_SPEED, median};

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let pick = |few: &'static str, many: &'static str| if quick { few } else { many };
    let bench = Bench::new(binaries, "store-work")?;
    let mut notes = Vec::new();
    let mut note = |what: &str, found: &Value| notes.push(format!("{what}: {found}"));

    let within = bench.run(&["within", "DB", pick("1000", "9000")])?;
    note("woken in the same process, after durable", &within);
    let across = bench.run(&["across", "DB", pick("1000", "100000")])?;
    note("woken in another process, commit included", &across);
    let healed = bench.run(&["healed", "DB", "1000"])?;
    note("without bells", &healed);
    let inbox = bench.run(&["inbox", "DB"])?;
    note("a message sent, read and taken", &inbox);
    let claims = bench.run(&["claims", "DB", pick("20000", "100000")])?;
    note("a claim", &claims);
    let mut figures = vec![
        Figure::printed(
            "wake_inproc_p99_ms",
            number(&within, "p99_ms")?,
            Bar::Most(1.0),
        ),
        Figure::printed(
            "wake_process_p50_ms",
            number(&across, "p50_ms")?,
            Bar::Most(2.0),
        ),
        Figure::printed(
            "wake_process_p99_ms",
            number(&across, "p99_ms")?,
            Bar::Most(10.0),
        ),
        Figure::exact("missed", number(&across, "missed")?, Bar::Most(0.0)),
        Figure::ratio(
            "inbox_10k_growth",
            number(&inbox, "growth")?,
            Bar::Most(1.5),
            OF_SPEED,
        ),
        Figure::ratio(
            "claim_100k_vs_100",
            number(&claims, "ratio")?,
            Bar::Most(1.5),
            OF_SPEED,
        ),
    ];
    let runtime = Bench::new(binaries, "bench-runtime")?;
    let rounds = if quick { 1 } else { 5 };
    for (name, bench, words, keys) in [
        (
            "steps",
            &runtime,
            ["steps", "DIR"],
            ["steps_ratio.1", "steps_ratio.16", "steps_ratio.256"],
        ),
        (
            "claims",
            &bench,
            ["claiming", "DB"],
            ["claims_ratio.1", "claims_ratio.16", "claims_ratio.256"],
        ),
    ] {
        let sizes = [("1", "4000", 0.4), ("16", "1500", 0.7), ("256", "300", 0.8)];
        for (key, (agents, batches, least)) in keys.into_iter().zip(sizes) {
            let mut ratio = || -> Result<f64> {
                let [verb, place] = words;
                let side =
                    |kind: &str| bench.measure("per_s", &[verb, kind, agents, batches, place]);
                let (ours, bare) = (side("posse")?, side("bare")?);
                notes.push(format!(
                    "{agents} agents, {name}/s: posse {ours:.0}, bare {bare:.0}"
                ));
                Ok(ours / bare)
            };
            let ratios = (0..rounds).map(|_| ratio()).collect::<Result<_>>()?;
            figures.push(Figure::ratio(
                key,
                median(ratios),
                Bar::Least(least),
                OF_SPEED,
            ));
        }
    }
    let idle = runtime.run(&["idle", "DIR", pick("1000", "10000"), pick("10", "60")])?;
    notes.push(format!("idle: {idle}"));
    let (longest, sweep) = (number(&healed, "longest_ms")?, number(&healed, "sweep_ms")?);
    figures.push(Figure::printed(
        "healed_ms",
        longest,
        Bar::Most(sweep + 250.0),
    ));
    // What the sweeps of a host use in a minute, not its agents.
    let idle_cpu = number(&idle, "cpu_ms")?;
    figures.push(Figure::printed("idle_cpu_ms", idle_cpu, Bar::Most(30.0)));
    Ok(Found {
        figures,
        truths: vec![("idle_agents_share_one_watch", idle["watches"] == 1)],
        notes,
    })
}

fn number(found: &Value, key: &str) -> Result<f64> {
    found[key]
        .as_f64()
        .with_context(|| format!("{found} has no {key}"))
}
