//! How soon the screens of `posse` show what happens, and what they cost.

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

/// Agents on the board.
const AGENTS: &str = "1000";

/// Lines of the transcript in the pager.
const TRANSCRIPT: &str = "100000";

/// Sub-agents of the conversation that hear 50 tokens a second each.
const SUB_AGENTS: &str = "64";

/// How much is measured.
struct Amount {
    starts: &'static str,
    /// Seconds in which nothing happens.
    idle: &'static str,
    keys: &'static str,
    /// Tokens at each of the gaps.
    tokens: [&'static str; GAPS_MS.len()],
    /// Refreshes of the board.
    refreshes: &'static str,
    /// Times that the pager opens.
    opens: &'static str,
    /// Seconds of streaming sub-agents, and rounds of it.
    streaming: [&'static str; 2],
}

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let amount = match effort {
        Effort::Quick => Amount {
            starts: "7",
            idle: "3",
            keys: "130",
            tokens: ["302", "122", "62"],
            refreshes: "20",
            opens: "3",
            streaming: ["3", "1"],
        },
        Effort::Full => Amount {
            starts: "30",
            idle: "10",
            keys: "600",
            tokens: ["3002", "1202", "302"],
            refreshes: "100",
            opens: "15",
            streaming: ["10", "5"],
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
    tui.others(&amount)?;
    tui.board(&amount)?;
    tui.pager(&amount)?;
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

    /// Agents beside the one of the conversation, and agents of other processes.
    fn others(&mut self, amount: &Amount) -> Result<()> {
        let [seconds, rounds] = amount.streaming;
        let what =
            format!("{SUB_AGENTS} sub-agents with 50 tokens/s each, and `posse -p` in a pipe");
        let found = self.measure(&what, &["strip", SUB_AGENTS, seconds, rounds, "DIR"])?;
        let difference = number(&found, "difference_percent")?;
        self.print("strip_64_cpu_percent", difference, 5.0);
        let attach = self.measure("attach", &["attach", amount.starts, "DIR"])?;
        self.print("attach_ms", number(&attach, "p50_ms")?, 30.0);
        Ok(())
    }

    fn board(&mut self, amount: &Amount) -> Result<()> {
        let what = format!("a board of {AGENTS} agents");
        let board = self.measure(&what, &["board", AGENTS, amount.starts, "DIR"])?;
        let arguments = ["refresh", AGENTS, amount.refreshes, "DIR"];
        let refresh = self.measure("10 of them change", &arguments)?;
        self.print("board_1000_ms", number(&board, "p50_ms")?, 60.0);
        self.print("board_refresh_cpu_ms", number(&refresh, "cpu_ms")?, 2.0);
        Ok(())
    }

    fn pager(&mut self, amount: &Amount) -> Result<()> {
        let what = format!("a transcript of {TRANSCRIPT} lines");
        let found = self.measure(&what, &["pager", TRANSCRIPT, amount.opens, "DIR"])?;
        self.print("pager_100k_ms", number(&found["open"], "p50_ms")?, 150.0);
        self.print(
            "pager_search_ms",
            number(&found["search"], "p50_ms")?,
            100.0,
        );
        self.print("pager_rss_mb", number(&found, "rss_mb")?, 60.0);
        Ok(())
    }
}
