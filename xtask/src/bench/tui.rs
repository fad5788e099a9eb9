//! How soon the conversation of `posse` shows what happens, and what it costs.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::program::Bench;
use super::spawn::number;
use super::{Bar, Effort, Figure, Found};

/// Milliseconds between two tokens: a fast model, a usual one, a slow one.
const GAPS_MS: [&str; 3] = ["10", "30", "100"];

/// Lines of the long reply.
const LINES: &str = "8000";

/// How much is measured.
struct Amount {
    starts: &'static str,
    /// Seconds in which nothing happens.
    idle: &'static str,
    keys: &'static str,
    /// Tokens at each of the gaps.
    tokens: [&'static str; GAPS_MS.len()],
}

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let amount = match effort {
        Effort::Quick => Amount {
            starts: "7",
            idle: "3",
            keys: "130",
            tokens: ["302", "122", "62"],
        },
        Effort::Full => Amount {
            starts: "30",
            idle: "10",
            keys: "600",
            tokens: ["3002", "1202", "302"],
        },
    };
    let mut tui = Tui {
        bench: Bench::new(binaries, "bench-tui")?,
        notes: Vec::new(),
        figures: Vec::new(),
    };
    tui.alone(&amount)?;
    tui.keys(&amount)?;
    tui.tokens(&amount)?;
    tui.long_reply()?;
    let Tui { notes, figures, .. } = tui;
    Ok(Found {
        figures,
        truths: Vec::new(),
        notes,
    })
}

/// What was measured so far.
struct Tui {
    bench: Bench,
    notes: Vec<String>,
    figures: Vec<Figure>,
}

impl Tui {
    fn measure(&mut self, what: &str, arguments: &[&str]) -> Result<Value> {
        let found = self.bench.run(arguments)?;
        self.notes.push(format!("{what}: {found}"));
        Ok(found)
    }

    /// Adds a time or a size that should be at most `most`.
    fn print(&mut self, key: &'static str, value: f64, most: f64) {
        let figure = Figure::printed(key, value, Bar::Most(most));
        self.figures.push(figure);
    }

    /// Adds a count that fails if it is more than `most`.
    fn count(&mut self, key: &'static str, value: f64, most: f64) {
        let figure = Figure::exact(key, value, Bar::Most(most));
        self.figures.push(figure);
    }

    /// A conversation in which nothing happens.
    fn alone(&mut self, amount: &Amount) -> Result<()> {
        let start = self.measure("starts", &["start", amount.starts, "DIR"])?;
        let idle = self.measure("idle", &["idle", amount.idle, "DIR"])?;
        self.print("prompt_ms", number(&start, "p50_ms")?, 25.0);
        self.print("rss_mb", number(&idle, "rss_mb")?, 30.0);
        self.print("idle_cpu_ms", number(&idle, "cpu_ms")?, 10.0);
        self.count("idle_bytes", number(&idle, "bytes")?, 0.0);
        Ok(())
    }

    fn keys(&mut self, amount: &Amount) -> Result<()> {
        let keys = self.measure("keys", &["keys", amount.keys, "DIR"])?;
        let typing = ["typing", amount.keys, "DIR"];
        let streaming = self.measure("keys while 200 tokens/s arrive", &typing)?;
        self.print("key_p50_ms", number(&keys, "p50_ms")?, 1.0);
        self.print("key_p99_ms", number(&keys, "p99_ms")?, 5.0);
        self.print("key_streaming_p99_ms", number(&streaming, "p99_ms")?, 12.0);
        Ok(())
    }

    /// Times are those of a fast model; costs are the worst of all paces.
    fn tokens(&mut self, amount: &Amount) -> Result<()> {
        let (mut lost, mut bytes, mut cpu) = (0.0, 0.0_f64, 0.0_f64);
        for (gap, count) in GAPS_MS.into_iter().zip(amount.tokens) {
            let what = format!("a token each {gap} ms");
            let found = self.measure(&what, &["tokens", gap, count, "DIR"])?;
            if gap == GAPS_MS[0] {
                self.print("token_p50_ms", number(&found, "p50_ms")?, 8.0);
                self.print("token_p99_ms", number(&found, "p99_ms")?, 25.0);
            }
            lost += number(&found, "lost")?;
            bytes = bytes.max(number(&found, "bytes_per_token")?);
            cpu = cpu.max(number(&found, "cpu_ms_per_token")?);
        }
        self.count("tokens_lost", lost, 0.0);
        self.print("bytes_per_token", bytes, 60.0);
        self.print("cpu_ms_per_token", cpu, 0.15);
        Ok(())
    }

    /// The worse of a reply that arrives at once and one that takes two seconds.
    fn long_reply(&mut self) -> Result<()> {
        let (mut lost, mut cpu, mut rss) = (0.0, 0.0_f64, 0.0_f64);
        for gap_us in ["0", "250"] {
            let what = format!("a reply of {LINES} lines, one each {gap_us} µs");
            let found = self.measure(&what, &["long", LINES, gap_us, "DIR"])?;
            lost += number(&found, "lost")?;
            cpu = cpu.max(number(&found, "cpu_s")?);
            rss = rss.max(number(&found, "rss_mb")?);
        }
        self.count("long_reply_lost", lost, 0.0);
        self.print("long_reply_cpu_s", cpu, 0.25);
        self.print("long_reply_rss_mb", rss, 45.0);
        Ok(())
    }
}
