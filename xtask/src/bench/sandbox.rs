//! What it costs to run commands in the sandbox, beside the same commands outside.

use std::path::Path;

use anyhow::Result;

use super::program::Bench;
use super::{Bar, Effort, Figure, Found, OF_SPEED};

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let rounds = if effort == Effort::Quick { "20" } else { "100" };
    let bench = Bench::new(binaries, "bench-sandbox")?;
    let posse = binaries.join("posse").display().to_string();
    let found = bench.run(&[&posse, rounds, "DIR"])?;
    let figure = |key: &str| found[key].as_f64().unwrap_or(f64::NAN);
    let (within, plain) = (figure("within_ms"), figure("plain_ms"));
    Ok(Found {
        figures: vec![
            Figure::printed("true_over_plain_ms", within - plain, Bar::Most(3.0)),
            Figure::ratio("true_over_plain", within / plain, Bar::Most(2.5), OF_SPEED),
            Figure::printed("n64_s", figure("at_once_s"), Bar::Most(0.6)),
            Figure::printed(
                "proxy_ms",
                figure("proxied_ms") - figure("direct_ms"),
                Bar::Most(0.3),
            ),
            Figure::printed("verdict_10kb_ms", figure("verdict_ms"), Bar::Most(2.0)),
        ],
        truths: Vec::new(),
        notes: vec![format!(
            "medians of {rounds}: {within:.1} ms in the sandbox, {plain:.1} ms outside, by the Bash tool"
        )],
    })
}
